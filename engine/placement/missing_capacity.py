"""Missing capacity: whether a workload could be scheduled if replicas of other workloads were evicted.

The division is computed with the capacity that would be free. In two kinds of clusters an eviction would not help:
those with a resource model, because the sums do not show on which nodes capacity is freed, and those whose
ResourceQuotas limit the namespace.
"""

import functools
from collections.abc import Iterable, Mapping

import msgspec

from engine.kubeapi.values import quantity
from engine.placement import attempts, capacity, encoded_columns, failures, requests, schedule
from engine.placement import fleet as fleets


class Victim(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Replicas that may be evicted from a cluster, and the resource requests of one replica."""

    cluster: str
    replicas: int
    requests: requests.Requests


class Shortage:
    """The missing capacity of a workload, in the first affinity group that is tried; decisions report its error."""

    def __init__(self, request: requests.Request, fleet: fleets.Fleet) -> None:
        """Try to schedule the binding; ``exists`` is true if only capacity is missing."""
        self._request = request
        self._fleet = fleet
        self._masks = fleet.compile(request.placement)
        self._group = schedule.first_group(request, self._masks)
        decision = schedule.schedule(request, fleet)
        self._attempt = attempts.Attempt(request, self._masks, self._group, fleet)
        self._candidates = self._attempt.candidates.index
        self._limited = frozenset(name for name, _ in request.replica_limits)
        error = self._attempt.error
        self.exists = (
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
        helped = (str(names[position]) for position in self._candidates.tolist() if position not in modelled)
        return tuple(name for name in helped if name not in self._limited)

    @functools.cached_property
    def _candidate_at(self) -> dict[str, int]:
        """The index of each candidate in ``_candidates``, by the name of the cluster."""
        names = self._fleet.name_column
        return {str(names[index]): position for position, index in enumerate(self._candidates.tolist())}

    @property
    def missing(self) -> int:
        """The number of replicas without capacity, at least 1."""
        context = self._attempt.context
        available = 0 if context is None else int(context.available.sum())
        return max(self._request.replicas - available, 1)

    def replicas_gained(self, victim: Victim) -> int:
        """Return how many of the workload's replicas fit into the capacity that ``victim`` alone would free."""
        replicas = victim.replicas
        amounts = dict(victim.requests)
        for resource, amount in self._request.requests or ():
            replicas = min(replicas, victim.replicas * amounts.get(resource, 0) // amount)
        return replicas

    def is_resolved_without(self, victims: Iterable[Victim]) -> bool:
        """Return whether the workload could be scheduled if all ``victims`` were evicted."""
        free = self._capacity_without(_freed_units(victims))
        return attempts.Attempt(self._request, self._masks, self._group, self._fleet, free).error is None

    def _capacity_without(self, freed: Mapping[str, Mapping[str, int]]) -> encoded_columns.Integers | None:
        context = self._attempt.context
        if context is None:
            return None
        free = context.free.copy()
        for name, units in freed.items():
            position = self._candidate_at.get(name)
            if position is not None and name not in self._limited:
                fleet_position = int(self._candidates[position])
                free[position] = max(free[position], self._free_replicas(fleet_position, units))
        return free

    def _free_replicas(self, position: int, freed: Mapping[str, int]) -> int:
        """Return how many replicas a cluster could hold with the freed units added."""
        replicas = int(self._fleet.pods[position]) + freed[quantity.PODS]
        for resource, amount in self._request.requests or ():
            column = self._fleet.units(resource)
            free = 0 if column is None else int(column[position]) + freed.get(resource, 0)
            replicas = min(replicas, free // amount)
        return min(replicas, capacity.FREE_MAX)


def _freed_units(victims: Iterable[Victim]) -> dict[str, dict[str, int]]:
    """Freed units by cluster and resource; each replica also frees one pod."""
    units_of: dict[str, dict[str, int]] = {}
    for victim in victims:
        units = units_of.setdefault(victim.cluster, {quantity.PODS: 0})
        units[quantity.PODS] += victim.replicas
        for resource, amount in victim.requests:
            if resource != quantity.PODS:
                units[resource] = units.get(resource, 0) + victim.replicas * amount
    return units_of
