"""Whether a scheduling pass is needed, for which reason, and in which mode.

The rules of Karmada's scheduler: the first reason that applies is reported. A divided workload is not rescheduled
because labels, taints, APIs or capacity of its clusters changed.
"""

from collections.abc import Iterable
from typing import Final

from engine.objects import placements
from engine.objects.placements import SchedulingType
from engine.placement import compiled, requests
from engine.placement import fleet as fleets

PLACEMENT_CHANGED: Final = "PlacementChanged"
REPLICAS_CHANGED: Final = "ReplicasChanged"
RESCHEDULE_TRIGGERED: Final = "RescheduleTriggered"
NON_WORKLOAD: Final = "NonWorkload"
CLUSTER_TERMINATING: Final = "ClusterTerminating"
NONE: Final = "None"


def trigger(request: requests.Request, applied: placements.Placement | None, fleet: fleets.Fleet) -> str:
    """Return why a scheduling pass is needed, or "None" if it is not; ``request.trigger`` is not read.

    ``applied`` is the placement recorded by the last pass, None if there was none. ``request.fresh`` means
    that a reschedule was requested after the last success.
    """
    if placement_changed(request.placement, applied, request.observed_affinity):
        return PLACEMENT_CHANGED
    if _replicas_changed(request):
        return REPLICAS_CHANGED
    if request.fresh:
        return RESCHEDULE_TRIGGERED
    if not request.is_workload and not request.components:
        return NON_WORKLOAD
    if compiled.strategy(request.placement.replica_scheduling) == compiled.Strategy.DUPLICATED:
        return SchedulingType.DUPLICATED
    if _any_terminating((name for name, _ in request.current), fleet):
        return CLUSTER_TERMINATING
    return NONE


def is_fresh(reschedule_triggered_s: int | None, last_scheduled_s: int | None) -> bool:
    """Return whether a reschedule was requested strictly after the last success; seconds since 1970."""
    if reschedule_triggered_s is None or last_scheduled_s is None:
        return False
    return reschedule_triggered_s > last_scheduled_s


def placement_changed(
    placement: placements.Placement, applied: placements.Placement | None, observed_affinity: str
) -> bool:
    """Return whether the placement has changed; changes of groups other than ``observed_affinity`` do not count."""
    if applied is None:
        return True
    if applied == placement:
        return False
    if (
        applied.cluster_affinity != placement.cluster_affinity
        or applied.cluster_tolerations != placement.cluster_tolerations
        or applied.spread_constraints != placement.spread_constraints
        or applied.replica_scheduling != placement.replica_scheduling
    ):
        return True
    applied_term = _term(applied, observed_affinity)
    return applied_term is None or applied_term != _term(placement, observed_affinity)


def _term(placement: placements.Placement, name: str) -> placements.ClusterAffinityTerm | None:
    """The affinity group with this name; None if there is none or the name is empty."""
    return next((term for term in placement.cluster_affinities if name and term.affinity_name == name), None)


def _replicas_changed(request: requests.Request) -> bool:
    preference = request.placement.replica_scheduling
    if preference is None:
        return False
    if preference.replica_scheduling_type == SchedulingType.DUPLICATED:
        return any(replicas != request.replicas for _, replicas in request.current)
    if preference.replica_scheduling_type == SchedulingType.DIVIDED:
        return sum(replicas for _, replicas in request.current) != request.replicas
    return False


def _any_terminating(names: Iterable[str], fleet: fleets.Fleet) -> bool:
    """Whether any of the clusters is being deleted; unknown clusters are ignored."""
    if all(compiled.presence(fleet).values):
        return False
    clusters = (fleet.get(name) for name in names)
    return any(
        cluster is not None and cluster.metadata.deletion_timestamp is not None for cluster in clusters
    )
