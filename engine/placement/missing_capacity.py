"""Missing capacity: whether a workload could be scheduled if other replicas were evicted.

The answer comes from the division itself, with the capacity that would be free. For a cluster with a resource
model that capacity does not follow from the sums, so it is left unchanged there.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from engine.placement import attempts, capacity, encoded_columns, failures, requests, schedule

if TYPE_CHECKING:
    from engine.placement import fleet as fleets

_PODS: Final = "pods"


class Leaving(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Replicas whose eviction from a cluster is considered, and the requests of each."""

    cluster: str
    replicas: int
    requests: requests.Requests


class Shortage:
    """A workload that lacks capacity, in the group whose error the decision reports."""

    def __init__(self, request: requests.Request, fleet: "fleets.Fleet") -> None:
        """Try to schedule it; ``is_there`` tells whether capacity is what it lacks."""
        self._request = request
        self._fleet = fleet
        self._masks = fleet.compile(request.placement)
        self._group = schedule.first_group(request, self._masks)
        decision = schedule.schedule(request, fleet)
        self._attempt = attempts.Attempt(request, self._masks, self._group, fleet)
        self._candidates = self._attempt.found.index
        error = self._attempt.error
        self.is_there = (
            decision.reason == failures.UNSCHEDULABLE
            and error is not None
            and error.reason == failures.UNSCHEDULABLE
        )

    @property
    def clusters(self) -> tuple[str, ...]:
        """The clusters, in name order, where freed capacity would help."""
        models = self._fleet.nodes()
        modelled = frozenset(() if models is None else models.positions.tolist())
        names = self._fleet.name_column
        return tuple(str(names[place]) for place in self._candidates.tolist() if place not in modelled)

    @property
    def missing(self) -> int:
        """The number of replicas without capacity, at least 1."""
        context = self._attempt.context
        there = 0 if context is None else int(context.available.sum())
        return max(self._request.replicas - there, 1)

    def worth(self, leaving: Leaving) -> int:
        """Return how many of the workload's replicas fit into the capacity that ``leaving`` alone would free."""
        found = leaving.replicas
        amounts = dict(leaving.requests)
        for resource, amount in self._request.requests or ():
            found = min(found, leaving.replicas * amounts.get(resource, 0) // amount)
        return found

    def is_over_without(self, leaving: Iterable[Leaving]) -> bool:
        """Return whether the workload could be scheduled if all of these were evicted."""
        room = self._capacity_without(_freed(leaving))
        return attempts.Attempt(self._request, self._masks, self._group, self._fleet, room).error is None

    def _capacity_without(self, freed: Mapping[str, Mapping[str, int]]) -> encoded_columns.Integers | None:
        context = self._attempt.context
        if context is None:
            return None
        room = context.free.copy()
        for position, place in enumerate(self._candidates.tolist()):
            units = freed.get(str(self._fleet.name_column[place]))
            if units is not None:
                room[position] = max(room[position], self._replicas(place, units))
        return room

    def _replicas(self, place: int, freed: Mapping[str, int]) -> int:
        """Return how many replicas a cluster could hold with the freed units added."""
        found = int(self._fleet.pods[place]) + freed[_PODS]
        for resource, amount in self._request.requests or ():
            column = self._fleet.units(resource)
            free = 0 if column is None else int(column[place]) + freed.get(resource, 0)
            found = min(found, free // amount)
        return min(found, capacity.ROOM_MAX)


def _freed(leaving: Iterable[Leaving]) -> dict[str, dict[str, int]]:
    """Freed units by cluster and resource; each replica also frees one pod."""
    found: dict[str, dict[str, int]] = {}
    for each in leaving:
        units = found.setdefault(each.cluster, {_PODS: 0})
        units[_PODS] += each.replicas
        for resource, amount in each.requests:
            if resource != _PODS:
                units[resource] = units.get(resource, 0) + each.replicas * amount
    return found
