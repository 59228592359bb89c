"""Catalogue of all event types: name, version, struct and topic.

Readers find the struct of an event here; they never take the name of a class from data.
"""

from typing import Final

from msgspec import Struct

from events import (
    cluster_decisions,
    clusters,
    decisions,
    group_decisions,
    health,
    links,
    observations,
    policies,
    quota_decisions,
    rebalance_decisions,
    rejections,
    shapes,
    specs,
    topics,
    works,
)

_NAMESPACE: Final = "io.reballast"


class EventType(Struct, frozen=True, kw_only=True):
    """One event type.

    ``type`` is the CloudEvents type, such as ``io.reballast.template-applied.v1``; ``name`` is the middle part.
    """

    name: str
    version: int
    struct: type[shapes.Event]
    topic: str
    type: str


_BY_TOPIC: Final[dict[str, dict[str, type[shapes.Event]]]] = {
    topics.SPECS: {
        "template-applied": specs.TemplateApplied,
        "template-deleted": specs.TemplateDeleted,
        "rebalancer-applied": specs.RebalancerApplied,
        "rebalancer-deleted": specs.RebalancerDeleted,
        "template-status-written": specs.TemplateStatusWritten,
        "deletion-allowed": specs.DeletionAllowed,
        "suspension-written": specs.SuspensionWritten,
    },
    topics.POLICIES: {
        "policy-applied": policies.PolicyApplied,
        "policy-deleted": policies.PolicyDeleted,
        "namespace-applied": policies.NamespaceApplied,
        "namespace-deleted": policies.NamespaceDeleted,
        "interpreter-applied": policies.InterpreterApplied,
        "interpreter-deleted": policies.InterpreterDeleted,
        "configuration-applied": policies.ConfigurationApplied,
        "configuration-deleted": policies.ConfigurationDeleted,
        "configuration-status-written": policies.ConfigurationStatusWritten,
        "priority-class-declared": policies.PriorityClassDeclared,
        "priority-class-gone": policies.PriorityClassGone,
    },
    topics.CLUSTERS: {
        "cluster-joined": clusters.ClusterJoined,
        "cluster-leaving": clusters.ClusterLeaving,
        "cluster-left": clusters.ClusterLeft,
        "cluster-labelled": clusters.ClusterLabelled,
        "cluster-described": clusters.ClusterDescribed,
        "cluster-tainted": clusters.ClusterTainted,
        "cluster-untainted": clusters.ClusterUntainted,
        "capacity-reported": clusters.CapacityReported,
        "cluster-health-changed": clusters.ClusterHealthChanged,
        "cluster-apis-reported": clusters.ClusterApisReported,
        "cluster-conditions-reported": clusters.ClusterConditionsReported,
        "member-object-applied": clusters.MemberObjectApplied,
        "member-object-deleted": clusters.MemberObjectDeleted,
        "member-pod-deleted": clusters.MemberPodDeleted,
    },
    topics.HEALTH: {
        "workload-reported": health.WorkloadReported,
        "workload-gone": health.WorkloadGone,
    },
    topics.DECISIONS: {
        "step-taken": decisions.StepTaken,
        "binding-declared": decisions.BindingDeclared,
        "binding-claimed": decisions.BindingClaimed,
        "binding-suspended": decisions.BindingSuspended,
        "template-marked": decisions.TemplateMarked,
        "claim-refused": decisions.ClaimRefused,
        "binding-released": decisions.BindingReleased,
        "binding-withdrawn": decisions.BindingWithdrawn,
        "schedule-decided": decisions.ScheduleDecided,
        "schedule-failed": decisions.ScheduleFailed,
        "binding-dispatched": decisions.BindingDispatched,
        "reschedule-triggered": decisions.RescheduleTriggered,
        "eviction-started": decisions.EvictionStarted,
        "eviction-finished": decisions.EvictionFinished,
        "cluster-silenced": cluster_decisions.ClusterSilenced,
        "cluster-judged": cluster_decisions.ClusterJudged,
        "cluster-vacated": cluster_decisions.ClusterVacated,
        "rebalance-started": rebalance_decisions.RebalanceStarted,
        "workload-rebalanced": rebalance_decisions.WorkloadRebalanced,
        "rebalance-finished": rebalance_decisions.RebalanceFinished,
        "rebalancer-expired": rebalance_decisions.RebalancerExpired,
        "status-aggregated": decisions.StatusAggregated,
        "dependencies-distributed": decisions.DependenciesDistributed,
        "binding-required": decisions.BindingRequired,
        "priority-resolved": decisions.PriorityResolved,
        "room-wanted": decisions.CapacityWanted,
        "preemption-decided": decisions.PreemptionDecided,
        "quota-claimed": quota_decisions.QuotaClaimed,
        "quota-decided": quota_decisions.QuotaDecided,
        "group-claimed": group_decisions.GroupClaimed,
        "group-decided": group_decisions.GroupDecided,
    },
    topics.LINKS: {
        "reschedule-asked": links.RescheduleRequested,
        "reschedule-answered": links.RescheduleAnswered,
        "dependency-needed": links.DependencyNeeded,
        "dependency-dropped": links.DependencyDropped,
        "room-asked": links.CapacityRequested,
        "room-offered": links.CapacityOffered,
        "preemption-asked": links.PreemptionRequested,
        "cluster-cleared": links.ClusterCleared,
        "quota-asked": links.QuotaRequested,
        "quota-answered": links.QuotaAnswered,
        "group-asked": links.GroupRequested,
        "group-answered": links.GroupAnswered,
    },
    topics.WORKS: {
        "work-applied": works.WorkApplied,
        "work-removed": works.WorkRemoved,
        "work-suspended": works.WorkSuspended,
    },
    topics.REJECTIONS: {
        "input-rejected": rejections.InputRejected,
    },
    topics.OBSERVATIONS: {
        "object-observed": observations.ObjectObserved,
        "object-vanished": observations.ObjectVanished,
        "control-plane-restored": observations.ControlPlaneRestored,
        "decision-compared": observations.DecisionCompared,
        "decision-made": observations.DecisionMade,
        "kubernetes-event-written": observations.KubernetesEventWritten,
        "kubernetes-event-deleted": observations.KubernetesEventDeleted,
    },
}
"""Structs by topic and recorded name. Names are literals, so that a renamed class does not change the log."""

EVENT_TYPES: Final[tuple[EventType, ...]] = tuple(
    EventType(
        name=f"{_NAMESPACE}.{name}",
        version=1,
        struct=struct,
        topic=topic,
        type=f"{_NAMESPACE}.{name}.v1",
    )
    for topic, structs in _BY_TOPIC.items()
    for name, struct in structs.items()
)

BY_TYPE: Final[dict[str, EventType]] = {entry.type: entry for entry in EVENT_TYPES}
BY_STRUCT: Final[dict[type[shapes.Event], EventType]] = {entry.struct: entry for entry in EVENT_TYPES}
STEP_TAKEN: Final = BY_STRUCT[decisions.StepTaken].type


def types_of(*structs: type[shapes.Event]) -> frozenset[str]:
    """Return the CloudEvents types of some events."""
    return frozenset(BY_STRUCT[struct].type for struct in structs)
