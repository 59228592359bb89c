"""Topic ``clusters``: membership, description, taints, capacity and health of the member clusters."""

from typing import Final

import msgspec

from events import enums, shapes, topics

DERIVED_CONDITIONS: Final = ("Ready", "CompleteAPIEnablements")
"""Types of the conditions that the engine derives from other reports."""


class Taint(shapes.Shape, frozen=True, kw_only=True):
    """A taint; if ``time_added_ms`` is absent, the fold sets it to the event's time."""

    key: str
    effect: str
    value: str = ""
    time_added_ms: shapes.Instant | None = None


class ApiKind(shapes.Shape, frozen=True, kw_only=True):
    """The kinds of one API group and version that a cluster serves.

    ``names`` are the plural names of ``kinds``, in the same order; if empty, they are derived from ``kinds``.
    """

    group_version: str
    kinds: tuple[str, ...]
    names: tuple[str, ...] = ()


class Quantities(shapes.Shape, frozen=True, kw_only=True):
    """Range of one resource in a grade of nodes, as Kubernetes quantities; an empty ``max`` means no upper bound."""

    name: str
    min: str
    max: str = ""


class ResourceGrade(shapes.Shape, frozen=True, kw_only=True):
    """One grade of a cluster's resource model: nodes with at least ``min`` of each resource."""

    grade: shapes.Whole
    ranges: tuple[Quantities, ...]


class GradeCount(shapes.Shape, frozen=True, kw_only=True):
    """Number of free nodes of a grade."""

    grade: shapes.Whole
    count: shapes.Whole


class SecretRef(shapes.Shape, frozen=True, kw_only=True):
    """The Secret with the credentials for a cluster's own API."""

    namespace: str
    name: str


class ClusterCondition(shapes.Shape, frozen=True, kw_only=True):
    """A condition of a cluster; without ``last_transition_ms`` the fold sets the time of the last status change."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_ms: shapes.Instant | None = None


class ClusterEvent(shapes.Event, frozen=True, kw_only=True):
    """Base of the events about one cluster."""

    name: str

    @property
    def record_key(self) -> str:
        return self.name


class ClusterWrite(ClusterEvent, frozen=True, kw_only=True):
    """Base of the events that write a Cluster object, which changes its version."""


@shapes.recorded("cluster-joined", topics.CLUSTERS)
class ClusterJoined(ClusterWrite, frozen=True, kw_only=True):
    """A cluster joins; if it is a member already, the event replaces everything but its capacity and health.

    ``managed_fields`` lists the field owners of the Cluster object; it has no influence on decisions.
    """

    labels: dict[str, str] = {}
    provider: str = ""
    region: str = ""
    zones: tuple[str, ...] = ()
    taints: tuple[Taint, ...] = ()
    apis: tuple[ApiKind, ...] = ()
    resource_models: tuple[ResourceGrade, ...] = ()
    sync_mode: enums.SyncMode = enums.SyncMode.PUSH
    api_endpoint: str = ""
    id: str = ""
    proxy_url: str = ""
    secret_ref: SecretRef | None = None
    impersonator_secret_ref: SecretRef | None = None
    kubernetes_version: str = ""
    annotations: dict[str, str] = {}
    managed_fields: tuple[shapes.FieldsOwner, ...] = ()
    expects: shapes.Count | None = None


@shapes.recorded("cluster-leaving", topics.CLUSTERS)
class ClusterLeaving(ClusterWrite, frozen=True, kw_only=True):
    """A request to remove a cluster: no bindings are scheduled to it, and its works are removed.

    Once it has no works left, the engine writes ``ClusterLeft``.
    """

    expects: shapes.Count | None = None


@shapes.recorded("cluster-left", topics.CLUSTERS)
class ClusterLeft(ClusterEvent, shapes.ObjectDeleted, frozen=True, kw_only=True):
    """A cluster has left, and its Cluster object is deleted.

    With a ``uid`` the event has no effect on a cluster that joined later with the same name.
    """

    uid: str = ""
    expects: shapes.Count | None = None


@shapes.recorded("cluster-labelled", topics.CLUSTERS)
class ClusterLabelled(ClusterWrite, frozen=True, kw_only=True):
    """All labels of a cluster; they replace the previous ones.

    ``managed_fields``, here and in the events below, replaces the field owners of the Cluster object; if
    empty, they do not change.
    """

    labels: dict[str, str]
    managed_fields: tuple[shapes.FieldsOwner, ...] = ()
    expects: shapes.Count | None = None


@shapes.recorded("cluster-described", topics.CLUSTERS)
class ClusterDescribed(ClusterWrite, frozen=True, kw_only=True):
    """Provider, region and zones of a cluster; they replace the previous ones."""

    provider: str = ""
    region: str = ""
    zones: tuple[str, ...] = ()
    managed_fields: tuple[shapes.FieldsOwner, ...] = ()
    expects: shapes.Count | None = None


@shapes.recorded("cluster-tainted", topics.CLUSTERS)
class ClusterTainted(ClusterWrite, frozen=True, kw_only=True):
    """A taint is added to a cluster; it replaces one with the same key and effect."""

    taint: Taint
    managed_fields: tuple[shapes.FieldsOwner, ...] = ()
    expects: shapes.Count | None = None


@shapes.recorded("cluster-untainted", topics.CLUSTERS)
class ClusterUntainted(ClusterWrite, frozen=True, kw_only=True):
    """The taint with this key and effect is removed from a cluster; with an empty effect, all taints with this key."""

    key: str
    effect: str = ""
    managed_fields: tuple[shapes.FieldsOwner, ...] = ()
    expects: shapes.Count | None = None


class NamespaceQuota(shapes.Shape, frozen=True, kw_only=True):
    """Amounts that a namespace's ResourceQuotas leave for further pods, by resource, as Kubernetes quantities."""

    namespace: str
    free: dict[str, str]


@shapes.recorded("capacity-reported", topics.CLUSTERS)
class CapacityReported(ClusterEvent, frozen=True, kw_only=True):
    """Allocatable and allocated resources of a cluster, and those about to be allocated, as Kubernetes quantities.

    ``modelings`` are its free nodes by grade. ``nodes`` is the number of all nodes, ``nodes_ready`` that of ready
    nodes. ``quotas`` has an entry for each namespace whose pods a ResourceQuota limits.
    """

    allocatable: dict[str, str]
    allocated: dict[str, str] = {}
    allocating: dict[str, str] = {}
    modelings: tuple[GradeCount, ...] = ()
    nodes: shapes.Count | None = None
    nodes_ready: shapes.Count = 0
    quotas: tuple[NamespaceQuota, ...] = ()


@shapes.recorded("cluster-health-changed", topics.CLUSTERS)
class ClusterHealthChanged(ClusterEvent, frozen=True, kw_only=True):
    """Whether the control plane of a cluster answers; also a heartbeat of its reporter.

    A reporter that sets ``grace_seconds`` must report again within that time; without it, no timeout applies. If no
    report follows the one at ``heard_ms`` in time, the engine writes the event with ``silent``, which sets the
    cluster's health to Unknown. The event with ``silent`` has no effect if a newer report precedes it in the log.
    """

    ready: bool
    reason: str = ""
    message: str = ""
    grace_seconds: shapes.Seconds = 0
    silent: bool = False
    heard_ms: shapes.Instant = 0


@shapes.recorded("cluster-apis-reported", topics.CLUSTERS)
class ClusterApisReported(ClusterWrite, frozen=True, kw_only=True):
    """All kinds that a cluster serves; they replace the previous ones."""

    apis: tuple[ApiKind, ...]


@shapes.recorded("cluster-conditions-reported", topics.CLUSTERS)
class ClusterConditionsReported(ClusterEvent, frozen=True, kw_only=True):
    """Conditions of a cluster that clients report; they replace the previously reported ones.

    The engine derives the conditions Ready and CompleteAPIEnablements itself, so these are not among them.
    """

    conditions: tuple[ClusterCondition, ...] = ()


@shapes.recorded("member-object-applied", topics.CLUSTERS)
class MemberObjectApplied(ClusterEvent, frozen=True, kw_only=True):
    """A client of a simulated member's API wrote an object there: the whole object, with the status if it wrote one."""

    manifest: msgspec.Raw


@shapes.recorded("member-object-deleted", topics.CLUSTERS)
class MemberObjectDeleted(ClusterEvent, frozen=True, kw_only=True):
    """A client of a simulated member's API deleted an object there; deleting a Namespace deletes all objects in it.

    ``orphans``: the pods and ReplicaSets that the object owns stay.
    """

    object: shapes.WorkloadRef
    orphans: bool = False


@shapes.recorded("member-pod-deleted", topics.CLUSTERS)
class MemberPodDeleted(ClusterEvent, frozen=True, kw_only=True):
    """A client of a simulated member's API deleted a pod of a workload there; a new pod takes its slot."""

    owner: shapes.WorkloadRef
    slot: shapes.Count


MemberWrite = MemberObjectApplied | MemberObjectDeleted | MemberPodDeleted
"""A write of a client in a simulated member."""
