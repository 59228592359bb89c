"""The scene of one attempt: the candidates of one group as columns, in name order.

Every stage reads it, and the explanation is made from it; nothing in it changes once it is set.
"""

import functools
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import numpy as np

from engine.placement import compiled, estimate, facts, filters, requests

if TYPE_CHECKING:
    from engine.placement import fleet as fleets

SCORE_OF_CURRENT: Final = 100
"""What a cluster scores for already being in the binding; all others score nothing."""

_PLACE_BITS: Final = 16
_ROOM_BITS: Final = 46
_PLACES: Final = (1 << _PLACE_BITS) - 1


FEW: Final = 24
"""Up to so many clusters plain Python is faster than the fixed cost of array operations."""


class Held(NamedTuple):
    """Candidates that are in the previous result, by position, and the replicas of each."""

    positions: list[int]
    replicas: list[int]


NOTHING: Final = Held([], [])


class Scene:
    """Candidates with their room and with what they run now; positions count from 0 in name order."""

    def __init__(
        self,
        request: requests.Request,
        masks: compiled.Compiled,
        group: compiled.Group,
        found: filters.Candidates,
        fleet: "fleets.Fleet",
    ) -> None:
        """Estimate the room of the candidates; the former clusters are looked up when a stage asks for them."""
        self.request = request
        self.masks = masks
        self.group = group
        self.found = found
        self.index = found.index
        self.names = fleet.name_column
        self.room = estimate.allocatable(request, found, fleet)
        self._places = fleet.places

    @functools.cached_property
    def held(self) -> Held:
        """The previous result's clusters that are candidates, in its order."""
        return _held(self.request, self.found, self._places) if self.request.current else NOTHING

    @functools.cached_property
    def own(self) -> facts.Integers | None:
        """Replicas that run now in each candidate; None where nothing is held."""
        positions, numbers = self.held
        if not positions:
            return None
        column = np.zeros(len(self.index), dtype=np.int64)
        if len(positions) > FEW:
            np.add.at(column, np.array(positions, dtype=np.int64), np.array(numbers, dtype=np.int64))
        else:
            for position, replicas in zip(positions, numbers, strict=True):
                column[position] += replicas
        return column

    @functools.cached_property
    def available(self) -> facts.Integers:
        """Free replicas and those that run there already."""
        return self.room if self.own is None else self.room + self.own

    @functools.cached_property
    def current(self) -> facts.Mask:
        """Candidates that are in the previous result, with or without replicas."""
        mask = np.zeros(len(self.index), dtype=np.bool_)
        if self.held.positions:
            mask[self.held.positions] = True
        return mask

    @functools.cached_property
    def tiers(self) -> facts.Integers | None:
        """Overflow tier of each candidate; None where there are no tiers."""
        overflowing = self.group.tiers is not None and self.request.is_workload
        return self.group.tiers[self.index] if overflowing and self.group.tiers is not None else None

    @functools.cached_property
    def order(self) -> facts.Integers:
        """Positions by tier, score descending, available replicas descending, name."""
        order = self.sorted_by(self.available)
        if self.tiers is not None:
            order = order[np.argsort(self.tiers[order], kind="stable")]
        return order

    def sorted_by(self, numbers: facts.Integers) -> facts.Integers:
        """Positions by score descending, numbers descending, name."""
        last = len(numbers) - 1
        keys = numbers << _PLACE_BITS
        keys |= np.arange(last, -1, -1, dtype=np.int64)
        if self.held.positions:
            keys += self.current.astype(np.int64) << (_PLACE_BITS + _ROOM_BITS)
        keys.sort()
        return last - (keys[::-1] & _PLACES)


def _held(request: requests.Request, found: filters.Candidates, known_places: dict[str, int]) -> Held:
    """Look up the previous result; there may be thousands of clusters in it, so pairs are made only where needed."""
    place_of = known_places.get
    places = [place_of(name) for name, _ in request.current]
    numbers = [replicas for _, replicas in request.current]
    if found.whole and None not in places:
        return Held(cast("list[int]", places), numbers)
    known = [(place, replicas) for place, replicas in zip(places, numbers, strict=True) if place is not None]
    if not found.whole and known:
        wanted = np.array([place for place, _ in known], dtype=np.int64)
        positions = np.searchsorted(found.index, wanted)
        inside = np.append(found.index, -1)[positions] == wanted
        known = [
            (position, replicas)
            for position, there, (_, replicas) in zip(positions.tolist(), inside.tolist(), known, strict=True)
            if there
        ]
    return Held([position for position, _ in known], [replicas for _, replicas in known])
