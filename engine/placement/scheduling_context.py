"""Scheduling context of one attempt: the candidates of one group as columns, in name order.

All stages and the explanation read it; it does not change once it is created.
"""

import functools
from typing import Final, NamedTuple

import numpy as np

from engine.placement import compiled, encoded_columns, estimate, filters, previous_assignment, requests
from engine.placement import fleet as fleets

SCORE_OF_CURRENT: Final = 100
"""Score of a cluster in the previous assignment; all others have 0."""

_POSITION_BITS: Final = 16
_NUMBER_BITS: Final = 46
_POSITIONS_MASK: Final = (1 << _POSITION_BITS) - 1


class PreviousClusters(NamedTuple):
    """Candidates that are in the previous assignment, in the order of that assignment: positions and replicas."""

    positions: encoded_columns.Integers
    replicas: encoded_columns.Integers


NO_PREVIOUS: Final = PreviousClusters(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


class Context:
    """Candidates with free and running replicas; positions count from 0 in name order."""

    def __init__(
        self,
        request: requests.Request,
        masks: compiled.Compiled,
        group: compiled.Group,
        candidates: filters.Candidates,
        fleet: fleets.Fleet,
        free: encoded_columns.Integers | None = None,
    ) -> None:
        """Estimate the free replicas of the candidates, or use ``free``; the previous assignment is resolved lazily."""
        self.request = request
        self.masks = masks
        self.group = group
        self.candidates = candidates
        self.index = candidates.index
        self.names = fleet.name_column
        self.free = estimate.allocatable(request, candidates, fleet) if free is None else free
        self._fleet = fleet

    @functools.cached_property
    def previous(self) -> PreviousClusters:
        """The candidates that are in the previous assignment."""
        return (
            _previous_candidates(self._fleet.previous(self.request.current), self.candidates)
            if self.request.current
            else NO_PREVIOUS
        )

    @functools.cached_property
    def running(self) -> encoded_columns.Integers | None:
        """Running replicas in each candidate; None if there are none."""
        positions, numbers = self.previous
        if not len(positions):
            return None
        column = np.zeros(len(self.index), dtype=np.int64)
        # np.add.at, because an assignment may contain a cluster twice.
        np.add.at(column, positions, numbers)
        return column

    @functools.cached_property
    def available(self) -> encoded_columns.Integers:
        """Free plus running replicas."""
        return self.free if self.running is None else self.free + self.running

    @functools.cached_property
    def current(self) -> encoded_columns.Mask:
        """Mask of the candidates in the previous assignment, with or without replicas."""
        mask = np.zeros(len(self.index), dtype=np.bool_)
        mask[self.previous.positions] = True
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
        keys = numbers << _POSITION_BITS
        keys |= np.arange(last, -1, -1, dtype=np.int64)
        if len(self.previous.positions):
            keys += self.current.astype(np.int64) << (_POSITION_BITS + _NUMBER_BITS)
        keys.sort()
        return last - (keys[::-1] & _POSITIONS_MASK)


def _previous_candidates(
    assignment: previous_assignment.PreviousAssignment, candidates: filters.Candidates
) -> PreviousClusters:
    """Keep the clusters of the previous assignment that are candidates."""
    fleet_positions, replicas, whole = assignment
    if candidates.whole:
        if whole:
            return PreviousClusters(fleet_positions, replicas)
        positions, are_candidates = fleet_positions, fleet_positions >= 0
    else:
        positions = np.searchsorted(candidates.index, fleet_positions)
        are_candidates = np.append(candidates.index, len(candidates.pool.fits))[positions] == fleet_positions
    if are_candidates.all():
        return PreviousClusters(positions, replicas)
    return PreviousClusters(positions[are_candidates], replicas[are_candidates])
