"""Cache of decisions, keyed by the parts of a request that a decision depends on.

A decision is a pure function of its request and the clusters, so it can be reused until a fact of a cluster
changes. Many workloads differ only in their names: when a cluster fails, thousands of bindings with equal
requests leave it.
"""

from typing import Final

from engine.placement import compiled, decisions, division, encoded_columns, requests, schedule
from engine.placement import fleet as fleets

DECISIONS_MAX: Final = 4_096
"""Maximum number of cached decisions; a full cache is cleared."""

CELLS_MAX: Final = 2**20
"""Maximum of (number of cached decisions) * (number of clusters in the fleet)."""


class DecisionCache:
    """Decisions over one fleet by request, dropped when any fact of a cluster changes."""

    def __init__(self, fleet: fleets.Fleet) -> None:
        self._fleet = fleet
        self._changes = fleet.changes
        self._decisions: dict[tuple[object, ...], decisions.Decision] = {}

    def __len__(self) -> int:
        return len(self._decisions)

    def decide(self, request: requests.Request) -> decisions.Decision:
        """Return `schedule.schedule(request, fleet)`, cached. The decision is shared: callers must not modify it."""
        fleet = self._fleet
        if len(request.current) > encoded_columns.FEW_CLUSTERS:
            # Comparing a long previous assignment costs more than deciding again.
            return schedule.schedule(request, fleet)
        # ``changes`` also increases when capacity changes, because a decision reads free replicas.
        if fleet.changes != self._changes:
            self._changes = fleet.changes
            self._decisions.clear()
        key = _cache_key(request, fleet.compile(request.placement))
        decision = self._decisions.get(key)
        if decision is None:
            if len(self._decisions) >= min(DECISIONS_MAX, CELLS_MAX // max(len(fleet), 1)):
                self._decisions.clear()
            decision = self._decisions[key] = schedule.schedule(request, fleet)
        return decision


def _cache_key(request: requests.Request, masks: compiled.Compiled) -> tuple[object, ...]:
    """The key of a request: everything that a decision reads.

    Instead of the uid the key has the tie-breaking order that follows from it. Instead of the placement it has the
    placement's masks, because equal placements share one `Compiled`.
    """
    return (
        masks,
        request.resource.api_version,
        request.resource.kind,
        division.breaks_ties_descending(request.resource.uid),
        request.replicas,
        request.requests,
        request.components,
        request.current,
        request.evicting,
        request.observed_affinity,
        request.fresh,
        request.empty_workload_propagation,
        request.trigger,
        request.replica_limits,
        request.excluded_by_groups,
        request.allowed_by_groups,
        request.prioritized,
    )
