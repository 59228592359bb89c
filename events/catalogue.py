"""Catalogue of all event types: name, version, struct and topic.

Structs are looked up here; a class path is never read from data.
"""

import re
from typing import Final

from msgspec import Struct

from events import clusters, decisions, health, links, policies, rejections, shapes, specs, topics, works

_NAMESPACE: Final = "io.reballast"


class EventType(Struct, frozen=True, kw_only=True):
    """One event type; ``name`` is the CloudEvents type without its version."""

    name: str
    version: int
    struct: type[shapes.Event]
    topic: str

    @property
    def type(self) -> str:
        """The CloudEvents type: ``io.reballast.template-applied.v1``."""
        return f"{self.name}.v{self.version}"


def _name_of(struct: type[shapes.Event]) -> str:
    return f"{_NAMESPACE}." + re.sub(r"(?<!^)(?=[A-Z])", "-", struct.__name__).lower()


_BY_TOPIC: Final[dict[str, tuple[type[shapes.Event], ...]]] = {
    topics.SPECS: (
        specs.TemplateApplied,
        specs.TemplateDeleted,
        specs.RebalancerApplied,
        specs.RebalancerDeleted,
        specs.TemplateStatusWritten,
        specs.DeletionAllowed,
    ),
    topics.POLICIES: (
        policies.PolicyApplied,
        policies.PolicyDeleted,
        policies.NamespaceApplied,
        policies.NamespaceDeleted,
        policies.InterpreterApplied,
        policies.InterpreterDeleted,
        policies.ConfigurationApplied,
        policies.ConfigurationDeleted,
        policies.ConfigurationStatusWritten,
        policies.PriorityClassDeclared,
        policies.PriorityClassGone,
    ),
    topics.CLUSTERS: (
        clusters.ClusterJoined,
        clusters.ClusterLeaving,
        clusters.ClusterLeft,
        clusters.ClusterLabelled,
        clusters.ClusterDescribed,
        clusters.ClusterTainted,
        clusters.ClusterUntainted,
        clusters.CapacityReported,
        clusters.ClusterHealthChanged,
    ),
    topics.HEALTH: (health.WorkloadReported, health.WorkloadGone),
    topics.DECISIONS: (
        decisions.StepTaken,
        decisions.BindingDeclared,
        decisions.BindingClaimed,
        decisions.BindingReleased,
        decisions.BindingWithdrawn,
        decisions.ScheduleDecided,
        decisions.ScheduleFailed,
        decisions.BindingDispatched,
        decisions.RescheduleTriggered,
        decisions.EvictionStarted,
        decisions.EvictionFinished,
        decisions.ClusterSilenced,
        decisions.ClusterJudged,
        decisions.ClusterVacated,
        decisions.RebalanceStarted,
        decisions.WorkloadRebalanced,
        decisions.RebalanceFinished,
        decisions.RebalancerExpired,
        decisions.StatusAggregated,
        decisions.DependenciesDistributed,
        decisions.BindingRequired,
        decisions.PriorityResolved,
        decisions.RoomWanted,
        decisions.PreemptionDecided,
    ),
    topics.LINKS: (
        links.RescheduleAsked,
        links.RescheduleAnswered,
        links.DependencyNeeded,
        links.DependencyDropped,
        links.RoomAsked,
        links.RoomOffered,
        links.PreemptionAsked,
        links.ClusterCleared,
    ),
    topics.WORKS: (works.WorkApplied, works.WorkRemoved, works.WorkSuspended),
    topics.REJECTIONS: (rejections.InputRejected,),
}

EVENT_TYPES: Final[tuple[EventType, ...]] = tuple(
    EventType(name=_name_of(struct), version=1, struct=struct, topic=topic)
    for topic, structs in _BY_TOPIC.items()
    for struct in structs
)

BY_TYPE: Final[dict[str, EventType]] = {entry.type: entry for entry in EVENT_TYPES}
BY_STRUCT: Final[dict[type[shapes.Event], EventType]] = {entry.struct: entry for entry in EVENT_TYPES}
