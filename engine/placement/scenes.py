"""The scene of one attempt: the candidates of one group as columns, in name order.

Every stage reads it, and the explanation is made from it; nothing in it changes once it is set.
"""

import functools
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from engine.placement import compiled, estimate, facts, filters, formers, requests

if TYPE_CHECKING:
    from engine.placement import fleet as fleets

SCORE_OF_CURRENT: Final = 100
"""What a cluster scores for already being in the binding; all others score nothing."""

_PLACE_BITS: Final = 16
_ROOM_BITS: Final = 46
_PLACES: Final = (1 << _PLACE_BITS) - 1


class Held(NamedTuple):
    """Candidates that are in the previous result, by position in its own order, and the replicas of each."""

    positions: facts.Integers
    replicas: facts.Integers


NOTHING: Final = Held(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


class Scene:
    """Candidates with their room and with what they run now; positions count from 0 in name order."""

    def __init__(
        self,
        request: requests.Request,
        masks: compiled.Compiled,
        group: compiled.Group,
        found: filters.Candidates,
        fleet: "fleets.Fleet",
        room: facts.Integers | None = None,
    ) -> None:
        """Estimate the room of the candidates, or take ``room``; former clusters are looked up when asked for."""
        self.request = request
        self.masks = masks
        self.group = group
        self.found = found
        self.index = found.index
        self.names = fleet.name_column
        self.room = estimate.allocatable(request, found, fleet) if room is None else room
        self._fleet = fleet

    @functools.cached_property
    def held(self) -> Held:
        """The previous result's clusters that are candidates, in its order."""
        return (
            _held(self._fleet.former(self.request.current), self.found) if self.request.current else NOTHING
        )

    @functools.cached_property
    def own(self) -> facts.Integers | None:
        """Replicas that run now in each candidate; None where nothing is held."""
        positions, numbers = self.held
        if not len(positions):
            return None
        column = np.zeros(len(self.index), dtype=np.int64)
        # A result may name a cluster twice.
        np.add.at(column, positions, numbers)
        return column

    @functools.cached_property
    def available(self) -> facts.Integers:
        """Free replicas and those that run there already."""
        return self.room if self.own is None else self.room + self.own

    @functools.cached_property
    def current(self) -> facts.Mask:
        """Candidates that are in the previous result, with or without replicas."""
        mask = np.zeros(len(self.index), dtype=np.bool_)
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
        if len(self.held.positions):
            keys += self.current.astype(np.int64) << (_PLACE_BITS + _ROOM_BITS)
        keys.sort()
        return last - (keys[::-1] & _PLACES)


def _held(before: formers.Former, found: filters.Candidates) -> Held:
    """Keep of the former result what is a candidate."""
    places, replicas, whole = before
    if found.whole:
        if whole:
            return Held(places, replicas)
        positions, inside = places, places >= 0
    else:
        positions = np.searchsorted(found.index, places)
        inside = np.append(found.index, len(found.pool.fits))[positions] == places
    if inside.all():
        return Held(positions, replicas)
    return Held(positions[inside], replicas[inside])
