"""Topic ``clusters``: membership, description, taints, capacity and health of the member clusters."""

from events import enums, shapes


class Taint(shapes.Shape, frozen=True, kw_only=True):
    """A taint; if ``time_added_ms`` is absent, the fold sets it to the event's time."""

    key: str
    effect: str
    value: str = ""
    time_added_ms: shapes.Instant | None = None


class ApiKind(shapes.Shape, frozen=True, kw_only=True):
    """The kinds of one API group and version that a cluster serves."""

    group_version: str
    kinds: tuple[str, ...]


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


class ClusterEvent(shapes.Event, frozen=True, kw_only=True):
    """Base of the events about one cluster."""

    name: str

    @property
    def record_key(self) -> str:
        return self.name


class ClusterJoined(ClusterEvent, frozen=True, kw_only=True):
    """A cluster is a member from now on; said again, it replaces everything but reports and health.

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


class ClusterLeaving(ClusterEvent, frozen=True, kw_only=True):
    """A cluster is to leave: nothing comes to it, and what it was given goes; then it is no member any more.

    A request to remove the cluster: no new bindings are scheduled to it, its works are removed, and once none
    is left the engine writes ``ClusterLeft``.
    """

    expects: shapes.Count | None = None


class ClusterLeft(ClusterEvent, frozen=True, kw_only=True):
    """A cluster is no member any more; with a ``uid`` only the one that has it.

    The Cluster object is deleted. ``uid`` protects a cluster that joined later with the same name.
    """

    uid: str = ""
    expects: shapes.Count | None = None


class ClusterLabelled(ClusterEvent, frozen=True, kw_only=True):
    """All labels that the cluster has now.

    ``managed_fields``, here and in the events below, replaces the field owners of the Cluster object; if
    empty, they do not change.
    """

    labels: dict[str, str]
    managed_fields: tuple[shapes.FieldsOwner, ...] = ()
    expects: shapes.Count | None = None


class ClusterDescribed(ClusterEvent, frozen=True, kw_only=True):
    """Where the cluster stands now.

    Provider, region and zones of the cluster; replaces all three.
    """

    provider: str = ""
    region: str = ""
    zones: tuple[str, ...] = ()
    managed_fields: tuple[shapes.FieldsOwner, ...] = ()
    expects: shapes.Count | None = None


class ClusterTainted(ClusterEvent, frozen=True, kw_only=True):
    """The cluster has this taint now; it replaces one with the same key and effect."""

    taint: Taint
    managed_fields: tuple[shapes.FieldsOwner, ...] = ()
    expects: shapes.Count | None = None


class ClusterUntainted(ClusterEvent, frozen=True, kw_only=True):
    """The cluster has no taint with this key (and effect, where one is named) any more.

    Removes the taint with this key and effect, or all taints with this key if ``effect`` is empty.
    """

    key: str
    effect: str = ""
    managed_fields: tuple[shapes.FieldsOwner, ...] = ()
    expects: shapes.Count | None = None


class CapacityReported(ClusterEvent, frozen=True, kw_only=True):
    """What the cluster has, has given away, and is about to give away, as Kubernetes quantities.

    The resource summary of the cluster, by resource. ``modelings`` are its free nodes by grade. ``nodes`` is
    the number of all nodes, ``nodes_ready`` that of ready nodes.
    """

    allocatable: dict[str, str]
    allocated: dict[str, str] = {}
    allocating: dict[str, str] = {}
    modelings: tuple[GradeCount, ...] = ()
    nodes: shapes.Count | None = None
    nodes_ready: shapes.Count = 0


class ClusterHealthChanged(ClusterEvent, frozen=True, kw_only=True):
    """Whether the cluster's own control plane answers; said again, it tells that who watches the cluster is alive.

    Also a heartbeat: a reporter that sets ``grace_seconds`` must report again within that time; without it,
    no timeout applies. The engine itself writes the event with ``silent`` when the last report, at
    ``heard_ms``, is older than that: the cluster's health is then Unknown, and any report received in between
    overrides the event.
    """

    ready: bool
    reason: str = ""
    message: str = ""
    grace_seconds: shapes.Seconds = 0
    silent: bool = False
    heard_ms: shapes.Instant = 0
