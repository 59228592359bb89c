"""Topic ``decisions``: what the owner of a shard decided, step by step.

A step's first record is ``StepTaken``; what follows up to the next one is its output, together with the
links, works and rejections that carry the step in their ids.
"""

import msgspec

from events import clusters, enums, shapes


class StepTaken(shapes.Event, frozen=True, kw_only=True):
    """One turn of a shard's owner: the whole basis of what it decided.

    ``ends`` are the offsets behind the last input taken, by topic; ``processed`` is how many waiting keys were
    decided; ``outputs`` how many records follow from it. Digests are BLAKE2b, 16 bytes, in hex; ``previous``
    is the digest of the step before (of its data bytes). ``declared`` has 17 characters for each output, in the order
    of their ids: the initial letter of its topic, and the first 12 bytes of its record's checksum in base64.
    """

    shard: shapes.Count
    number: shapes.Count
    term: shapes.Count
    time_ms: shapes.Instant
    release: str
    ends: dict[str, shapes.Count]
    processed: shapes.Count = 0
    outputs: shapes.Count = 0
    inputs_digest: str = ""
    outputs_digest: str = ""
    previous: str = ""
    declared: str = ""


class BindingDeclared(shapes.Event, frozen=True, kw_only=True):
    """What a template asks for: how many replicas, and what each of them needs.

    ``offset`` is where in the shard's specs the template stands, ``digest`` that of its manifest.
    ``replicas`` absent means that the kind has none, ``requests`` absent that a replica requires nothing.
    """

    key: str
    template: shapes.WorkloadRef
    uid: str
    generation: shapes.Count
    offset: shapes.Count
    digest: str
    replicas: shapes.Count | None = None
    requests: dict[str, str] | None = None


class ApplicationFailover(shapes.Shape, frozen=True, kw_only=True):
    """When a workload that is unhealthy in a cluster leaves it, and how.

    ``purge_mode`` is Gracefully, Directly or Never. ``grace_period_seconds`` holds for the first only; None stands for
    the engine's own. ``preserved`` is what is kept of its state.
    """

    toleration_seconds: shapes.Seconds
    purge_mode: str
    grace_period_seconds: int | None = None
    preserved: tuple[shapes.StateRule, ...] = ()


class SchedulePriority(shapes.Shape, frozen=True, kw_only=True):
    """Where a policy finds the priority of what it places: the ``source`` of the PriorityClass, and its ``name``."""

    source: str
    name: str = ""


class BindingClaimed(shapes.Event, frozen=True, kw_only=True):
    """The policy, and its version, that places the template from now on.

    Without ``failover`` a workload stays where it is, however unhealthy. With ``propagate_deps`` what it refers to
    goes wherever it goes. ``preserved`` is what is kept of its state when the cluster fails. Without
    ``schedule_priority`` the binding has no priority of its own, which counts as 0. ``deletes_last_copy``: a graceful
    eviction ends with its grace period even if it deletes the workload's last running copy.
    """

    key: str
    policy: shapes.PolicyRef
    permanent_id: str
    version: shapes.Count
    placement: msgspec.Raw
    suspended: bool = False
    suspended_on: tuple[str, ...] = ()
    conflict_resolution: enums.ConflictResolution = enums.ConflictResolution.ABORT
    preserve_on_deletion: bool = False
    purge_mode: str = ""
    failover: ApplicationFailover | None = None
    propagate_deps: bool = False
    preserved: tuple[shapes.StateRule, ...] = ()
    schedule_priority: SchedulePriority | None = None
    deletes_last_copy: bool = False


class PriorityResolved(shapes.Event, frozen=True, kw_only=True):
    """The priority that the binding has from now on, by the PriorityClass with this name; absent for none of its own.

    ``preemption_policy`` Never means that nobody has to make room for it. ``fault`` says why there is no such class;
    the priority is 0 until there is.
    """

    key: str
    priority: shapes.Whole | None = None
    preemption_policy: str = ""
    class_name: str = ""
    fault: str = ""


class BindingReleased(shapes.Event, frozen=True, kw_only=True):
    """The policy that placed the template is gone, or selects it no more; what runs stays."""

    key: str
    policy: shapes.PolicyRef
    reason: str


class BindingWithdrawn(shapes.Event, frozen=True, kw_only=True):
    """The template is gone, and with it the binding."""

    key: str
    reason: str


class ScheduleDecided(shapes.Event, frozen=True, kw_only=True):
    """Where the binding goes now.

    ``available`` are the free replicas of the chosen clusters as the decision saw them, ``excluded`` the
    number of other clusters by reason. ``mode`` is Steady or Fresh.
    """

    key: str
    generation: shapes.Count
    trigger: str
    mode: str
    clusters: tuple[shapes.TargetCluster, ...]
    affinity: str = ""
    available: dict[str, shapes.Whole] = {}
    excluded: dict[str, shapes.Count] = {}


class ScheduleFailed(shapes.Event, frozen=True, kw_only=True):
    """Why the binding can't go anywhere (``reason``, ``message``), and what that changes.

    ``emptied`` says that the former clusters were given up; ``retried`` that it is tried again when a fact
    that blocked it changes, not before ``retry_at_ms``.
    """

    key: str
    generation: shapes.Count
    trigger: str
    mode: str
    reason: str
    message: str
    emptied: bool = False
    retried: bool = False
    attempts: shapes.Count = 0
    retry_at_ms: shapes.Instant = 0
    excluded: dict[str, shapes.Count] = {}


class DispatchedWork(shapes.Shape, frozen=True, kw_only=True):
    """What a cluster was told: ``applied``, ``removed`` or ``suspended``; replicas -1 for kinds without.

    ``overrides``, ``labels`` and ``reading`` are those of the work.
    """

    cluster: str
    told: str
    replicas: shapes.Whole = -1
    overrides: tuple[shapes.OverrideRef, ...] = ()
    labels: dict[str, str] = {}
    reading: shapes.Reading | None = None


class BindingDispatched(shapes.Event, frozen=True, kw_only=True):
    """The works of the binding that went out in this step."""

    key: str
    digest: str
    works: tuple[DispatchedWork, ...]


class RescheduleTriggered(shapes.Event, frozen=True, kw_only=True):
    """A rebalancer asks for a fresh decision."""

    key: str
    rebalancer: str
    uid: str
    generation: shapes.Count
    at_ms: shapes.Instant


class EvictionStarted(shapes.Event, frozen=True, kw_only=True):
    """The binding leaves a cluster; gracefully, what runs there is kept until its replacement is healthy.

    ``grace_period_seconds`` None stands for the engine's own; ``suppress_deletion`` keeps it until somebody decides.
    ``labels`` preserve the state that was last reported from there, for a cluster that is not among
    ``clusters_before``, those of the binding at that time; ``not_preserved`` says, by label, why there is none.
    ``by`` is the binding that it has to make room for; ``held`` keeps it out of the cluster for the whole grace
    period, or until a rebalancer asks.
    """

    key: str
    cluster: str
    reason: str
    producer: str
    purge_mode: str
    created_ms: shapes.Instant
    replicas: shapes.Count = 0
    grace_period_seconds: int | None = None
    suppress_deletion: bool | None = None
    labels: dict[str, str] = {}
    clusters_before: tuple[str, ...] = ()
    not_preserved: dict[str, str] = {}
    by: str = ""
    held: bool = False


class EvictionFinished(shapes.Event, frozen=True, kw_only=True):
    """The eviction is over; the cluster may be chosen again."""

    key: str
    cluster: str
    reason: str


class ClusterSilenced(shapes.Event, frozen=True, kw_only=True):
    """Nothing was heard of a cluster for longer than was promised; the cluster's health follows as an input."""

    name: str
    heard_ms: shapes.Instant
    grace_seconds: shapes.Seconds


class ClusterJudged(shapes.Event, frozen=True, kw_only=True):
    """What policies make of a cluster's condition: taints that come and taints that go, which follow as inputs.

    ``status`` is that of the condition Ready, ``version`` that of the cluster which was looked at.
    """

    name: str
    status: str
    version: shapes.Count
    added: tuple[clusters.Taint, ...] = ()
    removed: tuple[clusters.Taint, ...] = ()


class ClusterVacated(shapes.Event, frozen=True, kw_only=True):
    """No shard has a work left in a cluster that is leaving; that it has left follows as an input."""

    name: str
    uid: str


class RebalanceStarted(shapes.Event, frozen=True, kw_only=True):
    """A generation of a rebalancer was taken up; ``asked`` are the workloads that are asked for now."""

    name: str
    uid: str
    generation: shapes.Count
    at_ms: shapes.Instant
    asked: tuple[shapes.WorkloadRef, ...] = ()
    dropped: tuple[shapes.WorkloadRef, ...] = ()


class WorkloadRebalanced(shapes.Event, frozen=True, kw_only=True):
    """What became of one workload: Successful, or Failed with a reason."""

    name: str
    uid: str
    generation: shapes.Count
    workload: shapes.WorkloadRef
    result: str
    reason: str = ""


class RebalanceFinished(shapes.Event, frozen=True, kw_only=True):
    """All workloads of this generation have a result."""

    name: str
    uid: str
    generation: shapes.Count
    finish_ms: shapes.Instant


class RebalancerExpired(shapes.Event, frozen=True, kw_only=True):
    """Its time to live after the finish is over: the rebalancer is gone."""

    name: str
    uid: str
    generation: shapes.Count


class MemberStatus(shapes.Shape, frozen=True, kw_only=True):
    """How a workload stands in one cluster, as its report says; ``message`` is why its newest work is not applied.

    ``values`` are those of its status that its work asked for, by path.
    """

    cluster: str
    applied: bool
    health: enums.Health = enums.Health.UNKNOWN
    replicas: shapes.Count = 0
    updated: shapes.Count = 0
    ready: shapes.Count = 0
    available: shapes.Count = 0
    message: str = ""
    values: dict[str, str] = {}


class StatusAggregated(shapes.Event, frozen=True, kw_only=True):
    """How the workload stands over all clusters; ``observed_generation`` is the template's.

    ``fields`` are values of the members' statuses put together as the kind's interpreter declares it, by path.
    """

    key: str
    members: tuple[MemberStatus, ...]
    observed_generation: shapes.Count = 0
    fully_applied: bool = False
    fields: dict[str, shapes.Whole | str] = {}


class DependenciesDistributed(shapes.Event, frozen=True, kw_only=True):
    """What the workload needs beside itself, and where: all of it, which the objects' own shards are told by links.

    Without ``dependencies`` it needs nothing any more.
    """

    key: str
    dependencies: tuple[shapes.WorkloadRef, ...] = ()
    clusters: tuple[str, ...] = ()


class RequiredBy(shapes.Shape, frozen=True, kw_only=True):
    """The binding of a workload, and the clusters in which that needs the object; none where it needs it no more."""

    namespace: str
    name: str
    clusters: tuple[str, ...] = ()

    @property
    def by(self) -> str:
        """The key of that binding."""
        return f"{self.namespace}/{self.name}"


class BindingRequired(shapes.Event, frozen=True, kw_only=True):
    """Who needs the object otherwise than before, and where; the binding goes to all of these clusters.

    Whoever is not named needs it as before.
    """

    key: str
    required_by: tuple[RequiredBy, ...]

    def fold(self, required: dict[str, tuple[str, ...]]) -> None:
        """Changes the clusters in which others need the object, by their bindings' keys."""
        for each in self.required_by:
            if each.clusters:
                required[each.by] = each.clusters
            else:
                required.pop(each.by, None)


class RoomWanted(shapes.Event, frozen=True, kw_only=True):
    """The binding finds no room, and asks all shards who of lower priority has some, by links.

    ``number`` is that of the shard's step, which the answers repeat; ``missing`` the replicas without room;
    ``clusters`` those where room would count. It asks again at ``again_ms`` at the earliest; ``attempt``
    counts how often it did.
    """

    key: str
    number: shapes.Count
    priority: shapes.Whole
    missing: shapes.Count
    clusters: tuple[str, ...]
    again_ms: shapes.Instant
    attempt: shapes.Count = 1


class PreemptionDecided(shapes.Event, frozen=True, kw_only=True):
    """Who has to make room for the binding, after all shards have answered; without ``victims`` nobody, and why.

    Whoever is to leave is asked by a link, which holds until ``again_ms``; before that the binding asks nobody else.
    """

    key: str
    number: shapes.Count
    again_ms: shapes.Instant
    victims: tuple[shapes.Occupant, ...] = ()
    reason: str = ""
