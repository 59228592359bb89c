"""Room that is lacking: whether a workload would find its place if others left.

The answer is the division's own, over the room that there would be. What a cluster with a resource model would have
free nobody can tell from its sums, so there it stays as it is.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from engine.placement import attempts, capacity, facts, failures, requests, schedule

if TYPE_CHECKING:
    from engine.placement import fleet as fleets

_PODS: Final = "pods"


class Leaving(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Replicas that would leave a cluster, and what each of them asks for."""

    cluster: str
    replicas: int
    requests: requests.Requests


class Shortage:
    """A workload whose replicas find too little room, in the group of clusters whose error is told."""

    def __init__(self, request: requests.Request, fleet: "fleets.Fleet") -> None:
        """Try to place it; ``is_there`` says whether room is what it lacks."""
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
        """Where room would count, in name order."""
        models = self._fleet.nodes()
        modelled = frozenset(() if models is None else models.places.tolist())
        names = self._fleet.name_column
        return tuple(str(names[place]) for place in self._candidates.tolist() if place not in modelled)

    @property
    def missing(self) -> int:
        """How many replicas find no room, at least."""
        scene = self._attempt.scene
        there = 0 if scene is None else int(scene.available.sum())
        return max(self._request.replicas - there, 1)

    def worth(self, leaving: Leaving) -> int:
        """For how many of the workload's replicas there is room in what would leave, by itself."""
        found = leaving.replicas
        amounts = dict(leaving.requests)
        for resource, amount in self._request.requests or ():
            found = min(found, leaving.replicas * amounts.get(resource, 0) // amount)
        return found

    def is_over_without(self, leaving: Iterable[Leaving]) -> bool:
        """Whether the workload would find its place if all of these left."""
        room = self._room_without(_freed(leaving))
        return attempts.Attempt(self._request, self._masks, self._group, self._fleet, room).error is None

    def _room_without(self, freed: Mapping[str, Mapping[str, int]]) -> facts.Integers | None:
        scene = self._attempt.scene
        if scene is None:
            return None
        room = scene.room.copy()
        for position, place in enumerate(self._candidates.tolist()):
            units = freed.get(str(self._fleet.name_column[place]))
            if units is not None:
                room[position] = max(room[position], self._replicas(place, units))
        return room

    def _replicas(self, place: int, freed: Mapping[str, int]) -> int:
        """How many replicas a cluster would hold with so much more room."""
        found = int(self._fleet.pods[place]) + freed[_PODS]
        for resource, amount in self._request.requests or ():
            column = self._fleet.units(resource)
            free = 0 if column is None else int(column[place]) + freed.get(resource, 0)
            found = min(found, free // amount)
        return min(found, capacity.ROOM_MAX)


def _freed(leaving: Iterable[Leaving]) -> dict[str, dict[str, int]]:
    """What would be free, by cluster and resource; pods are counted as such."""
    found: dict[str, dict[str, int]] = {}
    for each in leaving:
        units = found.setdefault(each.cluster, {_PODS: 0})
        units[_PODS] += each.replicas
        for resource, amount in each.requests:
            if resource != _PODS:
                units[resource] = units.get(resource, 0) + each.replicas * amount
    return found
