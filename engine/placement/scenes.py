"""The scene of one attempt: the candidates of one group as columns, in name order.

Every stage reads it, and the explanation is made from it; nothing in it changes once it is set.
"""

import functools
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.placement import compiled, estimate, facts, filters, requests

if TYPE_CHECKING:
    from engine.placement import fleet as fleets

SCORE_OF_CURRENT: Final = 100
"""What a cluster scores for already being in the binding; all others score nothing."""

_PLACE_BITS: Final = 16
_ROOM_BITS: Final = 46
_PLACES: Final = (1 << _PLACE_BITS) - 1


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
    def held(self) -> list[tuple[int, int]]:
        """The previous result's clusters that are candidates: (position, replicas), in its order."""
        return _held(self.request, self.found, self._places) if self.request.current else []

    @functools.cached_property
    def own(self) -> facts.Integers | None:
        """Replicas that run now in each candidate; None where nothing is held."""
        if not self.held:
            return None
        column = np.zeros(len(self.index), dtype=np.int64)
        for position, replicas in self.held:
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
        if self.held:
            mask[[position for position, _ in self.held]] = True
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
        if self.held:
            keys += self.current.astype(np.int64) << (_PLACE_BITS + _ROOM_BITS)
        keys.sort()
        return last - (keys[::-1] & _PLACES)


def _held(
    request: requests.Request, found: filters.Candidates, known_places: dict[str, int]
) -> list[tuple[int, int]]:
    known = [(known_places[name], replicas) for name, replicas in request.current if name in known_places]
    if found.whole or not known:
        return known
    places = np.array([place for place, _ in known], dtype=np.int64)
    positions = np.searchsorted(found.index, places)
    inside = np.append(found.index, -1)[positions] == places
    return [
        (position, replicas)
        for position, there, (_, replicas) in zip(positions.tolist(), inside.tolist(), known, strict=True)
        if there
    ]
