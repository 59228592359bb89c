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
"""Most clusters of all cached assignments, 16 bytes each; beyond it the cache is cleared."""

_NOWHERE: Final = -1


class PreviousAssignment(NamedTuple):
    """A previous assignment: each cluster's fleet position (-1: no longer known) and its replicas.

    ``whole`` means that all clusters are known.
    """

    positions: encoded_columns.Integers
    replicas: encoded_columns.Integers
    whole: bool

    @property
    def known(self) -> encoded_columns.Integers:
        """The positions of the known clusters."""
        return self.positions if self.whole else self.positions[self.positions != _NOWHERE]


class PreviousAssignments:
    """Previous assignments over one order of clusters, by the identity of their pairs."""

    def __init__(self, places: Mapping[str, int]) -> None:
        """``places`` are the clusters' positions by name."""
        self._positions = places
        self._kept: dict[int, tuple[Pairs, PreviousAssignment]] = {}
        self._cells = 0

    def of(self, pairs: Pairs) -> PreviousAssignment:
        """Return the columns of a previous assignment; short ones are not cached, since computing them is cheaper."""
        if len(pairs) <= encoded_columns.FEW:
            return self._made(pairs)
        kept = self._kept.get(id(pairs))
        if kept is not None:
            return kept[1]
        former = self._made(pairs)
        self._keep(pairs, former)
        return former

    def learn(
        self, pairs: Pairs, places: encoded_columns.Integers, replicas: encoded_columns.Integers
    ) -> None:
        """Cache the columns from which the pairs were made; neither may change afterwards."""
        if len(pairs) > encoded_columns.FEW:
            self._keep(pairs, PreviousAssignment(places, replicas, whole=True))

    def _made(self, pairs: Pairs) -> PreviousAssignment:
        place_of = self._positions.get
        places = [place_of(name, _NOWHERE) for name, _ in pairs]
        replicas = [number for _, number in pairs]
        return PreviousAssignment(
            np.array(places, dtype=np.int64),
            np.array(replicas, dtype=np.int64),
            whole=_NOWHERE not in places,
        )

    def _keep(self, pairs: Pairs, former: PreviousAssignment) -> None:
        if self._cells + len(pairs) > CELLS_MAX:
            self._kept.clear()
            self._cells = 0
        # Keep a reference to the tuple: the cache is keyed by id(), which CPython reuses after collection.
        self._kept[id(pairs)] = (pairs, former)
        self._cells += len(pairs)
