"""Topic ``links``: requests and answers between shards."""

from events import keys, shapes, topics


class _BindingLink(shapes.Event, frozen=True, kw_only=True):
    """Base of the links to the owner shard of the binding ``key``."""

    key: str

    @property
    def record_key(self) -> str:
        return self.key


@shapes.recorded("reschedule-asked", topics.LINKS)
class RescheduleRequested(shapes.Event, frozen=True, kw_only=True):
    """A rebalancer requests a fresh decision from the workload's owner shard.

    ``generation`` is the rebalancer's generation that added the workload; ``at_ms`` becomes ``rescheduleTriggeredAt``.
    """

    rebalancer: str
    uid: str
    generation: shapes.Count
    at_ms: shapes.Instant
    key: str
    workload: shapes.WorkloadRef

    @property
    def record_key(self) -> str:
        return self.key

    @property
    def related(self) -> tuple[str, ...]:
        return (keys.rebalancer_key(self.rebalancer),)


@shapes.recorded("reschedule-answered", topics.LINKS)
class RescheduleAnswered(shapes.Event, frozen=True, kw_only=True):
    """The answer of the workload's owner shard, in the same step as its decision."""

    rebalancer: str
    uid: str
    generation: shapes.Count
    workload: shapes.WorkloadRef
    result: str
    reason: str = ""

    @property
    def record_key(self) -> str:
        return keys.rebalancer_key(self.rebalancer)

    @property
    def related(self) -> tuple[str, ...]:
        return (self.workload.binding_key,)


class _DependencyLink(shapes.Event, frozen=True, kw_only=True):
    """Base of the links about an object and a workload that depends on it."""

    dependency: shapes.WorkloadRef
    by: str
    number: shapes.Count

    @property
    def record_key(self) -> str:
        return self.dependency.binding_key

    @property
    def related(self) -> tuple[str, ...]:
        return (self.by,)


@shapes.recorded("dependency-needed", topics.LINKS)
class DependencyNeeded(_DependencyLink, frozen=True, kw_only=True):
    """The clusters in which a workload needs an object of its namespace; they replace those of its earlier links.

    ``by`` is the key of the workload's binding, ``number`` the step of its shard; a link is ignored unless its number
    is higher than that of the previous one. ``overwrites`` and ``preserves`` are those of the workload's policy:
    whether works take over objects that exist already, and whether a deleted object stays in its clusters.
    """

    clusters: tuple[str, ...]
    overwrites: bool = False
    preserves: bool = False


@shapes.recorded("dependency-dropped", topics.LINKS)
class DependencyDropped(_DependencyLink, frozen=True, kw_only=True):
    """A workload no longer needs the object anywhere; with ``preserved``, members keep what already runs."""

    preserved: bool = False


@shapes.recorded("room-asked", topics.LINKS)
class CapacityRequested(shapes.Event, frozen=True, kw_only=True):
    """Request for a shard's preemption candidates in these clusters, for a binding that lacks capacity.

    ``key`` is the requesting binding's, ``number`` the step of its shard. A newer request replaces an older one.
    """

    shard: shapes.Count
    key: str
    number: shapes.Count
    priority: shapes.Whole
    clusters: tuple[str, ...]

    @property
    def record_key(self) -> str:
        return keys.capacity_key(self.shard)

    @property
    def subject(self) -> str:
        return self.key


@shapes.recorded("room-offered", topics.LINKS)
class CapacityOffered(_BindingLink, frozen=True, kw_only=True):
    """The answer to ``CapacityRequested``: a limited number of the shard's bindings of lower priority, lowest first."""

    number: shapes.Count
    shard: shapes.Count
    occupants: tuple[shapes.Occupant, ...] = ()


@shapes.recorded("preemption-asked", topics.LINKS)
class PreemptionRequested(_BindingLink, frozen=True, kw_only=True):
    """Request to evict a binding from a cluster in favour of the binding ``by`` of higher priority.

    It is ignored if the binding has fewer ``replicas`` there by now, if its priority is no longer lower, or
    after ``until_ms``.
    """

    cluster: str
    replicas: shapes.Replicas
    by: str
    priority: shapes.Whole
    until_ms: shapes.Instant

    @property
    def related(self) -> tuple[str, ...]:
        return (self.by,)


@shapes.recorded("cluster-cleared", topics.LINKS)
class ClusterCleared(shapes.Event, frozen=True, kw_only=True):
    """A shard reports to the owner shard of a leaving cluster that it has no work left there.

    ``uid`` identifies the cluster: one that joins later with the same name has another uid.
    """

    cluster: str
    uid: str
    shard: shapes.Count

    @property
    def record_key(self) -> str:
        return self.cluster


@shapes.recorded("quota-asked", topics.LINKS)
class QuotaRequested(shapes.Event, frozen=True, kw_only=True):
    """A claim of the binding ``key`` on its namespace's overall quotas.

    A claim with a higher ``number`` replaces it. The fields are as in ``quota_decisions.QuotaClaimed``.
    """

    namespace: str
    key: str
    number: shapes.Count
    used: dict[str, shapes.Count] = {}
    wanted: dict[str, shapes.Count] = {}

    @property
    def record_key(self) -> str:
        return keys.quota_key(self.namespace)

    @property
    def subject(self) -> str:
        return self.key


@shapes.recorded("quota-answered", topics.LINKS)
class QuotaAnswered(_BindingLink, frozen=True, kw_only=True):
    """The answer to ``QuotaRequested``: the claim is granted, or refused with a ``fault``.

    A refused claim is granted by a second answer when the quotas suffice.
    """

    number: shapes.Count
    fault: str = ""


@shapes.recorded("group-asked", topics.LINKS)
class GroupRequested(shapes.Event, frozen=True, kw_only=True):
    """A claim of the binding ``key`` on clusters; its group keeps bindings ``apart`` or together.

    A claim with a higher ``number`` replaces it. The other fields are as in ``group_decisions.GroupClaimed``.
    """

    group: str
    key: str
    number: shapes.Count
    apart: bool = False
    placed: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()

    @property
    def record_key(self) -> str:
        return self.group

    @property
    def subject(self) -> str:
        return self.key


@shapes.recorded("group-answered", topics.LINKS)
class GroupAnswered(_BindingLink, frozen=True, kw_only=True):
    """The answer to ``GroupRequested``, repeated when it changes; see ``group_decisions.GroupVerdict``."""

    group: str
    number: shapes.Count
    granted: bool = False
    bound: bool = False
    others: tuple[str, ...] = ()
