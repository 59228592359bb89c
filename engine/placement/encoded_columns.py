"""Facts of many clusters as dictionary-encoded columns.

Thousands of clusters have few distinct zones, taints or label values. A column keeps the distinct values and,
for each cluster, the code of its value. A predicate is evaluated once per value; one array lookup then gives the
result of each cluster.
"""

from collections.abc import Callable, Hashable, Iterable
from typing import Final, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from engine.objects.clusters import ClusterManifest

Value = TypeVar("Value", bound=Hashable)
Mask = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

FEW_CLUSTERS: Final = 24
"""Up to this many clusters, plain Python is faster than array operations."""


class Column(Generic[Value]):
    """One fact of every cluster, in name order."""

    __slots__ = ("codes", "values")

    def __init__(self, facts: Iterable[Value]) -> None:
        """Number the distinct facts in the order of their first appearance."""
        code_of: dict[Value, int] = {}
        codes = [code_of.setdefault(fact, len(code_of)) for fact in facts]
        self.codes: Integers = np.array(codes, dtype=np.int64)
        self.values: list[Value] = list(code_of)

    def mask(self, predicate: Callable[[Value], bool]) -> Mask:
        """Return the mask of the clusters whose value satisfies the predicate."""
        return np.array([predicate(value) for value in self.values], dtype=np.bool_)[self.codes]

    def numbers(self, number_of: Callable[[Value], int]) -> Integers:
        """Return a number per cluster, computed from its value."""
        return np.array([number_of(value) for value in self.values], dtype=np.int64)[self.codes]


class ClusterColumns(Protocol):
    """The clusters of a fleet as columns, without their capacity; placements are compiled from them."""

    positions: dict[str, int]

    def __len__(self) -> int: ...

    def column(self, fact: str, read: Callable[[ClusterManifest], Value]) -> Column[Value]:
        """Return one fact of all clusters as a column, cached under the name ``fact``."""
        ...
