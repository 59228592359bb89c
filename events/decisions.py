"""Topic ``decisions``: the decisions of each shard's owner, step by step.

A step begins with ``StepTaken``. The records up to the next one are its outputs, together with the links,
works and rejections whose ids name the step.
"""

import msgspec
from msgspec import field

from events import enums, shapes, topics


@shapes.recorded("step-taken", topics.DECISIONS)
class StepTaken(shapes.Event, frozen=True, kw_only=True):
    """One step of a shard's owner: the inputs, time and rules that its decisions depend on.

    ``ends`` has, by topic, the offset after the last input folded. ``processed`` is the number of queued keys that
    were decided, ``outputs`` the number of records that follow from the step. Digests are BLAKE2b of 16 bytes, in hex;
    ``previous`` is that of the data bytes of the previous step. ``declared`` has a mark of 17 characters for each
    output, in the order of their ids: the first letter of its topic and the first 12 bytes of its record's checksum in
    base64.
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


class BindingDecision(shapes.Event, frozen=True, kw_only=True):
    """Base of the decisions about a binding."""

    key: str

    @property
    def subject(self) -> str:
        return self.key


@shapes.recorded("binding-declared", topics.DECISIONS)
class BindingDeclared(BindingDecision, frozen=True, kw_only=True):
    """Replicas of a template and the resource requests of each replica.

    ``offset`` is the template's offset in the shard's partition of ``specs``, ``digest`` that of its
    manifest. ``replicas`` is None for kinds without replicas, ``requests`` None if a replica has no
    requirements, and empty if it only has requirements of its node. ``node_claim`` has these, as Karmada's NodeClaim;
    it is empty in records of releases before 0.6.0.
    """

    template: shapes.WorkloadRef
    uid: str
    generation: shapes.Count
    offset: shapes.Count
    digest: str
    replicas: shapes.Count | None = None
    requests: dict[str, str] | None = None
    node_claim: shapes.Object = {}


class ApplicationFailover(shapes.Shape, frozen=True, kw_only=True):
    """When an unhealthy workload is evicted from a cluster, and how.

    ``purge_mode`` is Gracefully, Directly or Never. ``grace_period_seconds`` applies to Gracefully only; None
    means the engine's default. ``preserved`` are the status values that are passed on to the workload's new clusters.
    """

    toleration_seconds: shapes.Seconds
    purge_mode: str
    grace_period_seconds: int | None = None
    preserved: tuple[shapes.StateRule, ...] = ()


class SchedulePriority(shapes.Shape, frozen=True, kw_only=True):
    """The ``source`` and ``name`` of the PriorityClass that a policy sets for its workloads."""

    source: str
    name: str = ""


@shapes.recorded("binding-claimed", topics.DECISIONS)
class BindingClaimed(BindingDecision, frozen=True, kw_only=True):
    """The policy that places the template from now on, and its version.

    Without ``failover`` an unhealthy workload is never evicted. With ``propagate_deps`` the objects that the template
    refers to are propagated to its clusters. ``preserved`` are the status values kept at a cluster failover. Without
    ``schedule_priority`` the binding has priority 0. With ``deletes_last_copy`` a graceful eviction ends with
    its grace period even if that deletes the workload's last running copy. ``preempted`` is the policy that claimed
    the template before, if this one took it over by preemption. ``scheduler`` is the policy's ``schedulerName``, empty
    for default-scheduler. ``resumed``: the policy sets ``suspension.dispatching`` to false.
    """

    policy: shapes.PolicyRef
    permanent_id: str
    version: shapes.Count
    placement: msgspec.Raw
    suspended: bool = False
    suspended_on: tuple[str, ...] = ()
    conflict_resolution: enums.ConflictResolution = enums.ConflictResolution.ABORT
    preserve_on_deletion: bool | None = None
    purge_mode: str = ""
    failover: ApplicationFailover | None = None
    propagate_deps: bool = False
    preserved: tuple[shapes.StateRule, ...] = ()
    schedule_priority: SchedulePriority | None = None
    deletes_last_copy: bool = False
    preempted: shapes.PolicyRef | None = None
    scheduler: str = ""
    resumed: bool = False


@shapes.recorded("binding-suspended", topics.DECISIONS)
class BindingSuspended(BindingDecision, frozen=True, kw_only=True):
    """A client suspends or resumes the binding: its ``scheduling``, or the ``dispatching`` of its works."""

    scheduling: bool = False
    dispatching: bool = False


@shapes.recorded("template-marked", topics.DECISIONS)
class TemplateMarked(BindingDecision, frozen=True, kw_only=True):
    """The labels and annotations of the template name ``policy`` from now on.

    With ``preempted``, ``policy`` is lazy and takes the template over from ``preempted`` at the template's next write.
    Without it, either ``policy`` claims the template already, and its labels replace those of a lazy policy; or no
    policy claims the template, and ``policy`` is lazy and claims it at the template's next write.
    """

    policy: shapes.PolicyRef
    permanent_id: str
    preempted: shapes.PolicyRef | None = None


@shapes.recorded("claim-refused", topics.DECISIONS)
class ClaimRefused(BindingDecision, frozen=True, kw_only=True):
    """The policy that selects the template can't be applied; the binding stays as it is.

    ``fault`` is the reason: a PriorityClass or override policy that the policy names does not exist.
    """

    template: shapes.WorkloadRef
    uid: str
    policy: shapes.PolicyRef
    fault: str


@shapes.recorded("priority-resolved", topics.DECISIONS)
class PriorityResolved(BindingDecision, frozen=True, kw_only=True):
    """The binding's priority from now on (None if the policy sets none), and the PriorityClass it comes from.

    With the ``preemption_policy`` Never the binding does not preempt others. ``fault`` is set if the class does not
    exist; until it does, the priority is 0.
    """

    priority: shapes.Whole | None = None
    preemption_policy: str = ""
    class_name: str = ""
    fault: str = ""


@shapes.recorded("binding-released", topics.DECISIONS)
class BindingReleased(BindingDecision, frozen=True, kw_only=True):
    """The policy that claimed or marked the template is deleted or no longer selects it; running workloads stay."""

    policy: shapes.PolicyRef
    reason: str


@shapes.recorded("binding-withdrawn", topics.DECISIONS)
class BindingWithdrawn(BindingDecision, frozen=True, kw_only=True):
    """The template is deleted, and the binding with it."""

    reason: str


class GroupFailure(shapes.Shape, frozen=True, kw_only=True):
    """The reason why an affinity group was not chosen; ``index`` is its index in ``clusterAffinities``."""

    index: shapes.Count
    message: str


@shapes.recorded("schedule-decided", topics.DECISIONS)
class ScheduleDecided(BindingDecision, frozen=True, kw_only=True):
    """The clusters of the binding from now on.

    ``available`` are the chosen clusters' available replicas before the decision, ``excluded`` the number of
    other clusters by reason. ``mode`` is Steady or Fresh. ``failed`` are the affinity groups that were tried before.
    """

    generation: shapes.Count
    trigger: str
    mode: str
    clusters: tuple[shapes.TargetCluster, ...]
    affinity: str = ""
    available: dict[str, shapes.Whole] = {}
    excluded: dict[str, shapes.Count] = {}
    failed: tuple[GroupFailure, ...] = ()


@shapes.recorded("schedule-failed", topics.DECISIONS)
class ScheduleFailed(BindingDecision, frozen=True, kw_only=True):
    """The binding cannot be scheduled, with ``reason`` and ``message``.

    ``emptied`` means that its previous clusters were removed. ``retried`` means that scheduling is retried
    when a fact that blocked it changes, but not before ``retry_at_ms``. ``failed`` are the affinity groups that were
    tried.
    """

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
    failed: tuple[GroupFailure, ...] = ()


class DispatchedWork(shapes.Shape, frozen=True, kw_only=True):
    """A work of a binding in one cluster; ``state`` is ``applied``, ``removed`` or ``suspended``.

    ``replicas`` is -1 for kinds without replicas. ``overrides``, ``labels``, ``reading``, ``overwrites`` and
    ``completions`` are as in ``works.WorkApplied``; those of a suspended work are what the cluster would get.
    """

    cluster: str
    state: str = field(name="told")
    replicas: shapes.Whole = -1
    overrides: tuple[shapes.OverrideRef, ...] = ()
    labels: dict[str, str] = {}
    reading: shapes.Reading | None = None
    overwrites: bool = False
    completions: shapes.Count | None = None


@shapes.recorded("binding-dispatched", topics.DECISIONS)
class BindingDispatched(BindingDecision, frozen=True, kw_only=True):
    """The works of the binding that were written in this step."""

    digest: str
    works: tuple[DispatchedWork, ...]


@shapes.recorded("reschedule-triggered", topics.DECISIONS)
class RescheduleTriggered(BindingDecision, frozen=True, kw_only=True):
    """A rebalancer requests a fresh scheduling decision for the binding."""

    rebalancer: str
    uid: str
    generation: shapes.Count
    at_ms: shapes.Instant


@shapes.recorded("eviction-started", topics.DECISIONS)
class EvictionStarted(BindingDecision, frozen=True, kw_only=True):
    """The eviction of a binding from a cluster; a graceful one keeps the workload until its replacement is healthy.

    ``grace_period_seconds`` None means the engine's default. ``suppress_deletion`` keeps the workload in the cluster
    until a user allows its deletion. ``labels`` hold the preserved state that the cluster last reported; works in
    clusters outside ``clusters_before`` get these labels. ``not_preserved`` has, by label, the reason why a value is
    missing. ``by`` is the key of the binding that preempts this one. With ``held`` the cluster cannot be chosen for the
    whole grace period, or until a rebalancer requests a fresh decision.
    """

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


@shapes.recorded("eviction-finished", topics.DECISIONS)
class EvictionFinished(BindingDecision, frozen=True, kw_only=True):
    """The eviction is over; the cluster may be chosen again."""

    cluster: str
    reason: str


class MemberStatus(shapes.Shape, frozen=True, kw_only=True):
    """The status of a workload in one cluster, as last reported.

    ``message`` is the reason why the newest work is not applied. ``values`` are the status values that the work
    requested, by path. ``generation`` and ``observed_generation`` are as reported; ``template_generation`` is that of
    the template in the newest work that the cluster has applied, 0 if no generation was reported. ``status`` is the
    whole status as reported; empty if the statuses of all clusters together would be too long.
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
    generation: shapes.Count = 0
    observed_generation: shapes.Count = 0
    template_generation: shapes.Count = 0
    status: str = ""


@shapes.recorded("status-aggregated", topics.DECISIONS)
class StatusAggregated(BindingDecision, frozen=True, kw_only=True):
    """The status of the workload over all clusters; ``observed_generation`` is the template's generation.

    ``fields`` are values aggregated from the members' statuses as the kind's interpreter declares, by path. With
    ``whole``, the status of a single member becomes that of the workload; of several, the conditions are merged.
    """

    members: tuple[MemberStatus, ...]
    observed_generation: shapes.Count = 0
    fully_applied: bool = False
    fields: dict[str, shapes.Whole | str] = {}
    whole: bool = False


@shapes.recorded("dependencies-distributed", topics.DECISIONS)
class DependenciesDistributed(BindingDecision, frozen=True, kw_only=True):
    """All objects that the workload depends on, and their clusters; links notify the objects' owner shards.

    Without ``dependencies`` the workload depends on nothing from now on. ``overwrites`` and ``preserves`` are as in
    ``links.DependencyNeeded``.
    """

    dependencies: tuple[shapes.WorkloadRef, ...] = ()
    clusters: tuple[str, ...] = ()
    overwrites: bool = False
    preserves: bool = False


class RequiredBy(shapes.Shape, frozen=True, kw_only=True):
    """A binding that depends on the object, and the clusters in which it needs the object; empty once it needs none.

    ``overwrites`` and ``preserves`` are those of the binding's policy.
    """

    namespace: str
    name: str
    clusters: tuple[str, ...] = ()
    overwrites: bool = False
    preserves: bool = False

    @property
    def by(self) -> str:
        """The key of the dependent binding."""
        return f"{self.namespace}/{self.name}"


@shapes.recorded("binding-required", topics.DECISIONS)
class BindingRequired(BindingDecision, frozen=True, kw_only=True):
    """Changes of the bindings that depend on this object, or of the clusters in which they need it.

    Bindings that are not listed depend on the object as before.
    """

    required_by: tuple[RequiredBy, ...]

    def fold(self, required: dict[str, RequiredBy]) -> None:
        """Apply the changes to ``required``, which maps the key of each dependent binding to its entry."""
        for requirement in self.required_by:
            if requirement.clusters:
                required[requirement.by] = requirement
            else:
                required.pop(requirement.by, None)
