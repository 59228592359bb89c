"""The previous assignment of a workload as columns, from which a steady decision starts.

An assignment is a tuple of (name, replicas) pairs, thousands of them for a large workload; a decision needs
fleet positions and numbers. Columns are cached by the identity of the tuple. A caller that has just decided
adds the decision's own columns, so that they need not be computed from the pairs.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from engine.placement import encoded_columns

Pairs: TypeAlias = tuple[tuple[str, int], ...]
"""Clusters and their replicas, in the order of the assignment."""

CELLS_MAX: Final = 2**22
"""Maximum number of clusters in all cached assignments together (16 bytes per cluster); a full cache is cleared."""

_UNKNOWN: Final = -1


class PreviousAssignment(NamedTuple):
    """A previous assignment: each cluster's fleet position (-1: no longer known) and its replicas.

    ``whole`` means that all clusters are known.
    """

    positions: encoded_columns.Integers
    replicas: encoded_columns.Integers
    whole: bool

    @property
    def known_positions(self) -> encoded_columns.Integers:
        """The positions of the known clusters."""
        return self.positions if self.whole else self.positions[self.positions != _UNKNOWN]


class PreviousAssignments:
    """Cache of previous assignments as columns, by the identity of their pairs; valid for one order of clusters."""

    def __init__(self, positions: Mapping[str, int]) -> None:
        """``positions`` are the clusters' positions by name."""
        self._positions = positions
        self._cached: dict[int, tuple[Pairs, PreviousAssignment]] = {}
        self._cells = 0

    def columns(self, pairs: Pairs) -> PreviousAssignment:
        """Return the columns of a previous assignment; short ones are not cached, since computing them is cheaper."""
        if len(pairs) <= encoded_columns.FEW_CLUSTERS:
            return self._build(pairs)
        cached = self._cached.get(id(pairs))
        if cached is not None:
            return cached[1]
        assignment = self._build(pairs)
        self._cache(pairs, assignment)
        return assignment

    def cache_columns(
        self, pairs: Pairs, positions: encoded_columns.Integers, replicas: encoded_columns.Integers
    ) -> None:
        """Cache the columns from which the pairs were made; neither may change afterwards."""
        if len(pairs) > encoded_columns.FEW_CLUSTERS:
            self._cache(pairs, PreviousAssignment(positions, replicas, whole=True))

    def _build(self, pairs: Pairs) -> PreviousAssignment:
        position_of = self._positions.get
        positions = [position_of(name, _UNKNOWN) for name, _ in pairs]
        replicas = [count for _, count in pairs]
        return PreviousAssignment(
            np.array(positions, dtype=np.int64),
            np.array(replicas, dtype=np.int64),
            whole=_UNKNOWN not in positions,
        )

    def _cache(self, pairs: Pairs, assignment: PreviousAssignment) -> None:
        if self._cells + len(pairs) > CELLS_MAX:
            self._cached.clear()
            self._cells = 0
        # Keep a reference to the tuple: the cache is keyed by id(), which CPython reuses after collection.
        self._cached[id(pairs)] = (pairs, assignment)
        self._cells += len(pairs)
