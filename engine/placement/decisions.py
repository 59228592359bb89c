"""What a decision says: the chosen clusters as columns, the condition, and what is to be written.

The columns become Python tuples when somebody looks; a decision over thousands of clusters does not build them twice.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from engine.placement import explain

SUCCESS: Final = "Success"
SCHEDULED_MESSAGE: Final = "Binding has been scheduled successfully."
ALIKE_MAX: Final = 16
"""Results with the same number everywhere that are kept for one set of clusters."""


class Chosen:
    """The chosen clusters in name order: names by index into a shared column, replicas, free replicas."""

    __slots__ = ("_alike", "_available", "_index", "_names", "_pairs", "_replicas", "_room")

    def __init__(
        self,
        names: npt.NDArray[np.object_],
        index: npt.NDArray[np.int64],
        replicas: npt.NDArray[np.int64] | int,
        available: npt.NDArray[np.int64] | None,
        alike: dict[int, tuple[tuple[str, int], ...]] | None = None,
    ) -> None:
        """Keep the columns; ``index`` points into ``names``, an int stands for the same number everywhere.

        ``available`` is None where there is nothing to count. None of the arrays may change afterwards. ``alike``
        are results for exactly these clusters with the same number in each, shared between decisions.
        """
        self._names = names
        self._index = index
        self._replicas = replicas
        self._room = available
        self._alike = alike
        self._pairs: tuple[tuple[str, int], ...] | None = None
        self._available: dict[str, int] | None = None

    def __len__(self) -> int:
        """How many clusters are chosen."""
        return len(self._index)

    def pairs(self) -> tuple[tuple[str, int], ...]:
        """(name, replicas) in name order."""
        if self._pairs is None:
            self._pairs = self._build_pairs()
        return self._pairs

    def available(self) -> dict[str, int]:
        """Free replicas of each chosen cluster, as the decision saw them; nothing for what has no replicas."""
        if self._available is None:
            if self._room is None:
                self._available = {}
            else:
                self._available = dict(zip(self._name_list(), self._room.tolist(), strict=True))
        return self._available

    def _build_pairs(self) -> tuple[tuple[str, int], ...]:
        if not isinstance(self._replicas, int):
            return tuple(zip(self._name_list(), self._replicas.tolist(), strict=True))
        alike = {} if self._alike is None else self._alike
        known = alike.get(self._replicas)
        if known is None:
            known = tuple(zip(self._name_list(), [self._replicas] * len(self), strict=True))
            if len(alike) >= ALIKE_MAX:
                alike.clear()
            alike[self._replicas] = known
        return known

    def _name_list(self) -> list[str]:
        return self._names[self._index].tolist()


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """One decision; see the properties for the chosen clusters.

    ``status``, ``reason`` and ``message`` are those of the Scheduled condition, all empty where nothing was to be done.
    ``changed`` says that the clusters are to be written (emptied, where none fits), ``records_placement`` that the
    placement counts as applied, ``retry`` that the same request may succeed later. ``excluded`` counts clusters by the
    reason for which they are out, in the last group that was tried; it is shared and must not be edited.
    """

    current: tuple[tuple[str, int], ...]
    chosen: Chosen | None
    trigger: str
    fresh: bool
    affinity_name: str
    status: str = ""
    reason: str = ""
    message: str = ""
    retry: bool = False
    records_placement: bool = False
    excluded: Mapping[str, int] = {}
    explanation: explain.Explanation | None = None

    @property
    def changed(self) -> bool:
        """Whether the binding's clusters are written (they may be written with what they were)."""
        return self.chosen is not None

    @property
    def clusters(self) -> tuple[tuple[str, int], ...]:
        """Where the binding is afterwards: the result in name order, or what it was in its own order."""
        return self.current if self.chosen is None else self.chosen.pairs()

    @property
    def available(self) -> dict[str, int]:
        """Free replicas of the chosen clusters, as the decision saw them; nothing where nothing was chosen."""
        return {} if self.chosen is None else self.chosen.available()


def nothing(names: npt.NDArray[np.object_]) -> Chosen:
    """No clusters at all."""
    return Chosen(names, np.zeros(0, dtype=np.int64), 0, None)
