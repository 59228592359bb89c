"""The result of a decision: chosen clusters as columns, the Scheduled condition, and what to write.

Columns become Python objects when they are read, and only once. Callers that do not need (name, replicas)
pairs read names and replicas as two lists, which is several times cheaper.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from engine.placement import compiled, explanations

SUCCESS: Final = "Success"
SCHEDULED_MESSAGE: Final = "Binding has been scheduled successfully."
CACHED_MAX: Final = 16
"""Maximum number of results that a pool caches, one for each number of replicas per cluster."""

Columns: TypeAlias = tuple[Sequence[str], Sequence[int]]
"""Names of clusters, and their replicas in the same order."""

Result = TypeVar("Result")


class Chosen:
    """The chosen clusters in name order, as columns: replicas, free replicas, and indexes into an array of names."""

    __slots__ = (
        "_available",
        "_cache",
        "_columns",
        "_free",
        "_index",
        "_names",
        "_pairs",
        "_positions",
        "_replicas",
    )

    def __init__(
        self,
        names: npt.NDArray[np.object_],
        index: npt.NDArray[np.int64],
        replicas: npt.NDArray[np.int64] | int,
        available: npt.NDArray[np.int64] | None,
        *,
        positions: npt.NDArray[np.int64] | None = None,
        cache: compiled.PoolCache | None = None,
    ) -> None:
        """``index`` points into ``names``; an integer ``replicas`` applies to all chosen clusters.

        ``available`` has the free replicas (None: not estimated); ``positions`` are the chosen clusters' indexes into
        ``available`` (None: it has exactly the chosen clusters). The arrays must not change afterwards. ``cache`` holds
        results for exactly these clusters.
        """
        self._names = names
        self._index = index
        self._replicas = replicas
        self._free = available
        self._positions = positions
        self._cache = cache
        self._columns: Columns | None = None
        self._pairs: tuple[tuple[str, int], ...] | None = None
        self._available: dict[str, int] | None = None

    def __len__(self) -> int:
        return len(self._index)

    def columns(self) -> Columns:
        """Return names and replicas in name order; shared, so callers must not modify them."""
        if self._columns is None:
            self._columns = (self._name_list(), self._numbers())
        return self._columns

    def numbers(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return fleet positions and replicas as arrays; shared, so callers must not modify them."""
        replicas = self._replicas
        column = np.full(len(self), replicas, dtype=np.int64) if isinstance(replicas, int) else replicas
        return self._index, column

    def pairs(self) -> tuple[tuple[str, int], ...]:
        """Return (name, replicas) in name order."""
        if self._pairs is None:
            self._pairs = self._build_pairs()
        return self._pairs

    def available(self) -> dict[str, int]:
        """Return the free replicas of each chosen cluster at the decision; empty for templates without replicas."""
        if self._available is None:
            if self._free is None:
                self._available = {}
            else:
                free = self._free if self._positions is None else self._free[self._positions]
                self._available = dict(zip(self._name_list(), free.tolist(), strict=True))
        return self._available

    def _build_pairs(self) -> tuple[tuple[str, int], ...]:
        def build() -> tuple[tuple[str, int], ...]:
            return tuple(zip(*self.columns(), strict=True))

        if self._cache is None or not isinstance(self._replicas, int):
            return build()
        return _cached(self._cache.pairs, self._replicas, build)

    def _numbers(self) -> Sequence[int]:
        number = self._replicas
        if not isinstance(number, int):
            return number.tolist()
        if self._cache is None:
            return (number,) * len(self)
        return _cached(self._cache.numbers, number, lambda: (number,) * len(self))

    def _name_list(self) -> Sequence[str]:
        if self._cache is None:
            return self._names[self._index].tolist()
        if self._cache.names is None:
            self._cache.names = tuple(self._names[self._index].tolist())
        return self._cache.names


def _cached(cache: dict[int, Result], number: int, build: Callable[[], Result]) -> Result:
    """Return the cached result for this number of replicas in every cluster; build it if it is missing."""
    result = cache.get(number)
    if result is None:
        if len(cache) >= CACHED_MAX:
            cache.clear()
        result = cache[number] = build()
    return result


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """One decision; the properties give the chosen clusters.

    - ``status``, ``reason``, ``message``: those of the Scheduled condition; empty if there was nothing to do.
    - ``changed``: the binding's clusters must be written (none if no cluster fits).
    - ``records_placement``: the placement is recorded as applied.
    - ``retry``: Karmada tries the same request again.
    - ``is_open``: the decision failed but may succeed later, because some clusters passed the filters of a tried group.
    - ``excluded``: number of clusters by the reason of their exclusion; shared, so callers must not modify it.
    - ``failed``: the affinity groups that failed, by index, each with its message; empty without groups.
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
    is_open: bool = False
    records_placement: bool = False
    excluded: Mapping[str, int] = {}
    failed: tuple[tuple[int, str], ...] = ()
    explanation: explanations.Explanation | None = None

    @property
    def changed(self) -> bool:
        """Whether the binding's clusters must be written, even if they are the same as before."""
        return self.chosen is not None

    @property
    def clusters(self) -> tuple[tuple[str, int], ...]:
        """The binding's clusters after the decision: the result in name order, or the unchanged previous assignment."""
        return self.current if self.chosen is None else self.chosen.pairs()

    @property
    def columns(self) -> Columns:
        """``clusters`` as two columns, names and replicas; cheaper than pairs for thousands of clusters."""
        if self.chosen is None:
            return tuple(name for name, _ in self.current), tuple(replicas for _, replicas in self.current)
        return self.chosen.columns()

    @property
    def available(self) -> dict[str, int]:
        """Free replicas of the chosen clusters at the time of the decision; empty if nothing was chosen."""
        return {} if self.chosen is None else self.chosen.available()


def nothing(names: npt.NDArray[np.object_]) -> Chosen:
    """Return a result without clusters."""
    return Chosen(names, np.zeros(0, dtype=np.int64), 0, None)
