"""Scheduling context of one attempt: the candidates of one group as columns, in name order.

All stages and the explanation read it; it does not change once it is created.
"""

import functools
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from engine.placement import compiled, encoded_columns, estimate, filters, previous_assignment, requests

if TYPE_CHECKING:
    from engine.placement import fleet as fleets

SCORE_OF_CURRENT: Final = 100
"""Score of a cluster in the previous assignment; all others have 0."""

_PLACE_BITS: Final = 16
_ROOM_BITS: Final = 46
_PLACES: Final = (1 << _PLACE_BITS) - 1


class Held(NamedTuple):
    """The candidates in the previous assignment, as positions in its own order, with their replicas."""

    positions: encoded_columns.Integers
    replicas: encoded_columns.Integers


NOTHING: Final = Held(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


class Context:
    """Candidates with free and running replicas; positions count from 0 in name order."""

    def __init__(
        self,
        request: requests.Request,
        masks: compiled.Compiled,
        group: compiled.Group,
        found: filters.Candidates,
        fleet: "fleets.Fleet",
        room: encoded_columns.Integers | None = None,
    ) -> None:
        """Estimate the free replicas of the candidates, or use ``room``; the previous assignment is resolved lazily."""
        self.request = request
        self.masks = masks
        self.group = group
        self.found = found
        self.index = found.index
        self.names = fleet.name_column
        self.free = estimate.allocatable(request, found, fleet) if room is None else room
        self._fleet = fleet

    @functools.cached_property
    def held(self) -> Held:
        """The clusters of the previous assignment that are candidates, in its order."""
        return (
            _held(self._fleet.previous(self.request.current), self.found) if self.request.current else NOTHING
        )

    @functools.cached_property
    def own(self) -> encoded_columns.Integers | None:
        """Running replicas in each candidate; None if there are none."""
        positions, numbers = self.held
        if not len(positions):
            return None
        column = np.zeros(len(self.index), dtype=np.int64)
        # np.add.at, because an assignment may contain a cluster twice.
        np.add.at(column, positions, numbers)
        return column

    @functools.cached_property
    def available(self) -> encoded_columns.Integers:
        """Free plus running replicas."""
        return self.free if self.own is None else self.free + self.own

    @functools.cached_property
    def current(self) -> encoded_columns.Mask:
        """Mask of the candidates in the previous assignment, with or without replicas."""
        mask = np.zeros(len(self.index), dtype=np.bool_)
        mask[self.held.positions] = True
        return mask

    @functools.cached_property
    def tiers(self) -> encoded_columns.Integers | None:
        """Overflow tier of each candidate; None if there are no tiers."""
        overflowing = self.group.tiers is not None and self.request.is_workload
        return self.group.tiers[self.index] if overflowing and self.group.tiers is not None else None

    @functools.cached_property
    def order(self) -> encoded_columns.Integers:
        """Positions by tier, then score descending, available replicas descending, name."""
        order = self.sorted_by(self.available)
        if self.tiers is not None:
            order = order[np.argsort(self.tiers[order], kind="stable")]
        return order

    def sorted_by(self, numbers: encoded_columns.Integers) -> encoded_columns.Integers:
        """Return positions by score descending, then ``numbers`` descending, then name.

        Sorts packed integers of score, number and inverted position, so the numbers must stay below 2**46.
        """
        last = len(numbers) - 1
        keys = numbers << _PLACE_BITS
        keys |= np.arange(last, -1, -1, dtype=np.int64)
        if len(self.held.positions):
            keys += self.current.astype(np.int64) << (_PLACE_BITS + _ROOM_BITS)
        keys.sort()
        return last - (keys[::-1] & _PLACES)


def _held(before: previous_assignment.PreviousAssignment, found: filters.Candidates) -> Held:
    """Keep the clusters of the previous assignment that are candidates."""
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
