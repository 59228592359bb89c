"""Topic ``links``: what one shard asks of, or tells, another."""

from events import shapes


class RescheduleAsked(shapes.Event, frozen=True, kw_only=True):
    """A rebalancer asks the workload's shard for a fresh decision.

    ``generation`` is the one in which the workload was added, ``at_ms`` the instant that
    ``rescheduleTriggeredAt`` shows.
    """

    rebalancer: str
    uid: str
    generation: shapes.Count
    at_ms: shapes.Instant
    key: str
    workload: shapes.WorkloadRef


class RescheduleAnswered(shapes.Event, frozen=True, kw_only=True):
    """The workload's shard answers, in the same step as its decision."""

    rebalancer: str
    uid: str
    generation: shapes.Count
    workload: shapes.WorkloadRef
    result: str
    reason: str = ""


class DependencyNeeded(shapes.Event, frozen=True, kw_only=True):
    """A workload needs an object of its namespace in these clusters: its whole need, in place of all it said before.

    ``by`` is the key of the workload's binding, ``number`` that of its shard's step: of several needs of one binding
    the one with the highest number counts.
    """

    dependency: shapes.WorkloadRef
    by: str
    number: shapes.Count
    clusters: tuple[str, ...]


class DependencyDropped(shapes.Event, frozen=True, kw_only=True):
    """A workload needs the object nowhere any more; ``preserved`` leaves what runs there to the clusters."""

    dependency: shapes.WorkloadRef
    by: str
    number: shapes.Count
    preserved: bool = False


class RoomAsked(shapes.Event, frozen=True, kw_only=True):
    """A binding that finds no room asks a shard who of lower priority has some in these clusters.

    ``key`` is the asking binding's, ``number`` that of its shard's step: of several questions the newest counts.
    """

    shard: shapes.Count
    key: str
    number: shapes.Count
    priority: shapes.Whole
    clusters: tuple[str, ...]


class RoomOffered(shapes.Event, frozen=True, kw_only=True):
    """What a shard answers the binding with this key: its own bindings of lower priority, the lowest first, not all."""

    key: str
    number: shapes.Count
    shard: shapes.Count
    occupants: tuple[shapes.Occupant, ...] = ()


class PreemptionAsked(shapes.Event, frozen=True, kw_only=True):
    """The binding with this key is to leave a cluster for one of higher priority, ``by``.

    It need not where it has fewer ``replicas`` there by now, or is no less important; after ``until_ms``
    nobody needs to.
    """

    key: str
    cluster: str
    replicas: shapes.Replicas
    by: str
    priority: shapes.Whole
    until_ms: shapes.Instant


class ClusterCleared(shapes.Event, frozen=True, kw_only=True):
    """A shard tells the home of a cluster that is leaving that it has no work left there.

    ``uid`` is the cluster's: one that joins later by the same name is another.
    """

    cluster: str
    uid: str
    shard: shapes.Count
