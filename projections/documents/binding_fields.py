"""Fields of ResourceBinding and ClusterResourceBinding, as Karmada declares them."""

from typing import TypedDict

import msgspec
from msgspec import Struct

from events.kube_fields import Condition
from projections.documents import member_statuses
from projections.documents.objects import WorkloadReference


class Target(Struct, frozen=True, gc=False, omit_defaults=True):
    """A cluster with its replicas; 0 is left out, as in Karmada."""

    name: str
    replicas: int = 0


class TargetCluster(TypedDict, total=False):
    name: str
    replicas: int


class Snapshot(TypedDict):
    """A dependent binding and its clusters."""

    namespace: str
    name: str
    clusters: list[TargetCluster]


class Task(TypedDict, total=False):
    fromCluster: str
    replicas: int
    reason: str
    producer: str
    purgeMode: str
    gracePeriodSeconds: int
    suppressDeletion: bool
    message: str
    preservedLabelState: dict[str, str]
    clustersBeforeFailover: list[str]
    creationTimestamp: str | None


class Requirements(TypedDict, total=False):
    nodeClaim: msgspec.Raw
    resourceRequest: dict[str, str]
    namespace: str


class WorkloadGroups(TypedDict, total=False):
    affinityGroup: str
    antiAffinityGroup: str


class Priority(TypedDict, total=False):
    priority: int | None
    preemptionPolicy: str


class PreservationRule(TypedDict):
    aliasLabelName: str
    jsonPath: str


class Preservation(TypedDict):
    rules: list[PreservationRule]


class DecisionConditions(TypedDict):
    tolerationSeconds: int


class ApplicationFailover(TypedDict, total=False):
    decisionConditions: DecisionConditions
    purgeMode: str
    statePreservation: Preservation
    gracePeriodSeconds: int


class ClusterFailover(TypedDict, total=False):
    purgeMode: str
    statePreservation: Preservation


class Failover(TypedDict, total=False):
    application: ApplicationFailover
    cluster: ClusterFailover


class DispatchingOnClusters(TypedDict):
    clusterNames: list[str]


class Suspension(TypedDict, total=False):
    scheduling: bool
    dispatching: bool
    dispatchingOnClusters: DispatchingOnClusters


class BindingSpec(TypedDict, total=False):
    """The spec of a binding."""

    resource: WorkloadReference
    replicas: int
    replicaRequirements: Requirements
    placement: msgspec.Raw
    clusters: list[Target]
    rescheduleTriggeredAt: str | None
    gracefulEvictionTasks: list[Task]
    requiredBy: list[Snapshot]
    schedulePriority: Priority
    workloadAffinityGroups: WorkloadGroups
    suspension: Suspension
    conflictResolution: str
    schedulerName: str
    propagateDeps: bool
    preserveResourcesOnDeletion: bool
    failover: Failover


class BindingStatus(TypedDict, total=False):
    """The status of a binding."""

    conditions: list[Condition]
    schedulerObservedGeneration: int
    lastScheduledTime: str | None
    schedulerObservingAffinityName: str
    aggregatedStatus: list[member_statuses.AggregatedItem]
