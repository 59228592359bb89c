"""Where a workload runs now, as columns: the former result that a steady decision starts from.

A result is kept as (name, replicas) pairs, thousands of them for a workload that is everywhere; a decision wants places
in the fleet and numbers. What was turned into columns is kept beside the very tuple that it came from, and whoever has
just decided hands in the columns that the decision had, so that they need not be made from its pairs again.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from engine.placement import facts

Pairs: TypeAlias = tuple[tuple[str, int], ...]
"""Clusters and their replicas, in the result's own order."""

CELLS_MAX: Final = 2**22
"""Clusters of all results that are kept as columns, 16 bytes each; beyond it all are forgotten, and made anew."""

_NOWHERE: Final = -1


class Former(NamedTuple):
    """A former result: each cluster's place in the fleet (-1: it is not known any more), and its replicas.

    ``whole`` says that all are known.
    """

    places: facts.Integers
    replicas: facts.Integers
    whole: bool

    @property
    def known(self) -> facts.Integers:
        """The places of the clusters that are known."""
        return self.places if self.whole else self.places[self.places != _NOWHERE]


class Formers:
    """Former results over one arrangement of clusters, by the identity of their pairs."""

    def __init__(self, places: Mapping[str, int]) -> None:
        """Start with nothing kept; ``places`` are those of the clusters by name."""
        self._places = places
        self._kept: dict[int, tuple[Pairs, Former]] = {}
        self._cells = 0

    def of(self, pairs: Pairs) -> Former:
        """The columns of a former result; few are made in less time than it takes to look after them."""
        if len(pairs) <= facts.FEW:
            return self._made(pairs)
        kept = self._kept.get(id(pairs))
        if kept is not None:
            return kept[1]
        former = self._made(pairs)
        self._keep(pairs, former)
        return former

    def learn(self, pairs: Pairs, places: facts.Integers, replicas: facts.Integers) -> None:
        """Keep the columns that the pairs came from; neither may change afterwards."""
        if len(pairs) > facts.FEW:
            self._keep(pairs, Former(places, replicas, whole=True))

    def _made(self, pairs: Pairs) -> Former:
        place_of = self._places.get
        places = [place_of(name, _NOWHERE) for name, _ in pairs]
        replicas = [number for _, number in pairs]
        return Former(
            np.array(places, dtype=np.int64),
            np.array(replicas, dtype=np.int64),
            whole=_NOWHERE not in places,
        )

    def _keep(self, pairs: Pairs, former: Former) -> None:
        if self._cells + len(pairs) > CELLS_MAX:
            self._kept.clear()
            self._cells = 0
        # The pairs are kept beside their columns, so that no other tuple can get their identity.
        self._kept[id(pairs)] = (pairs, former)
        self._cells += len(pairs)
