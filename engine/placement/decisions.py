"""What a decision says: the chosen clusters as columns, the condition, and what is to be written.

The columns become Python objects when somebody looks; a decision over thousands of clusters does not build them twice.
Whoever needs no (name, replicas) pairs reads two columns instead, which is several times cheaper.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from engine.placement import compiled, explain

SUCCESS: Final = "Success"
SCHEDULED_MESSAGE: Final = "Binding has been scheduled successfully."
ALIKE_MAX: Final = 16
"""Results with the same number everywhere that are kept for one set of clusters."""

Columns: TypeAlias = tuple[Sequence[str], Sequence[int]]
"""Names of clusters, and beside each name its replicas."""

Result = TypeVar("Result")


class Chosen:
    """The chosen clusters in name order: names by index into a shared column, replicas, free replicas."""

    __slots__ = (
        "_available",
        "_columns",
        "_index",
        "_names",
        "_pairs",
        "_positions",
        "_replicas",
        "_room",
        "_told",
    )

    def __init__(
        self,
        names: npt.NDArray[np.object_],
        index: npt.NDArray[np.int64],
        replicas: npt.NDArray[np.int64] | int,
        available: npt.NDArray[np.int64] | None,
        *,
        positions: npt.NDArray[np.int64] | None = None,
        told: compiled.Told | None = None,
    ) -> None:
        """Keep the columns; ``index`` points into ``names``, an int stands for the same number everywhere.

        ``available`` is None where there is nothing to count; ``positions`` point from the chosen clusters into it
        (None: it has exactly these). None of the arrays may change afterwards. ``told`` is what decisions for exactly
        these clusters share.
        """
        self._names = names
        self._index = index
        self._replicas = replicas
        self._room = available
        self._positions = positions
        self._told = told
        self._columns: Columns | None = None
        self._pairs: tuple[tuple[str, int], ...] | None = None
        self._available: dict[str, int] | None = None

    def __len__(self) -> int:
        """How many clusters are chosen."""
        return len(self._index)

    def columns(self) -> Columns:
        """Names in their order, and beside them replicas; shared, so neither may be edited."""
        if self._columns is None:
            self._columns = (self._name_list(), self._numbers())
        return self._columns

    def numbers(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Places in the fleet, and beside them replicas, as arrays; shared, so neither may be edited."""
        given = self._replicas
        everywhere = np.full(len(self), given, dtype=np.int64) if isinstance(given, int) else given
        return self._index, everywhere

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
                room = self._room if self._positions is None else self._room[self._positions]
                self._available = dict(zip(self._name_list(), room.tolist(), strict=True))
        return self._available

    def _build_pairs(self) -> tuple[tuple[str, int], ...]:
        def build() -> tuple[tuple[str, int], ...]:
            return tuple(zip(*self.columns(), strict=True))

        if self._told is None or not isinstance(self._replicas, int):
            return build()
        return _kept(self._told.pairs, self._replicas, build)

    def _numbers(self) -> Sequence[int]:
        number = self._replicas
        if not isinstance(number, int):
            return number.tolist()
        if self._told is None:
            return (number,) * len(self)
        return _kept(self._told.numbers, number, lambda: (number,) * len(self))

    def _name_list(self) -> Sequence[str]:
        if self._told is None:
            return self._names[self._index].tolist()
        if self._told.names is None:
            self._told.names = tuple(self._names[self._index].tolist())
        return self._told.names


def _kept(known: dict[int, Result], number: int, build: Callable[[], Result]) -> Result:
    """A result with the same number everywhere, built where it is not known."""
    found = known.get(number)
    if found is None:
        if len(known) >= ALIKE_MAX:
            known.clear()
        found = known[number] = build()
    return found


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
    def columns(self) -> Columns:
        """The same as two columns, names and replicas: cheaper than pairs where there are thousands of clusters."""
        if self.chosen is None:
            return tuple(name for name, _ in self.current), tuple(replicas for _, replicas in self.current)
        return self.chosen.columns()

    @property
    def available(self) -> dict[str, int]:
        """Free replicas of the chosen clusters, as the decision saw them; nothing where nothing was chosen."""
        return {} if self.chosen is None else self.chosen.available()


def nothing(names: npt.NDArray[np.object_]) -> Chosen:
    """No clusters at all."""
    return Chosen(names, np.zeros(0, dtype=np.int64), 0, None)
