"""State of one shard: bindings, rebalancers, watched clusters and the keys that wait to be decided.

It is changed only by inputs (``intake``, ``affected_keys``), by decisions (``apply_decisions``), and by ``settle``
functions at the end of a key or step. It holds plain data only, so a snapshot is one encoding of it.
"""

from typing import Final

import msgspec
from msgspec import Struct

from engine.deciders.ledgers import GroupMember, Ledger, QuotaClaim, WorkloadGroup
from engine.domain import bindings, rebalancers
from engine.objects import workloads
from engine.objects.priorities import PriorityClass
from events.cluster_decisions import ClusterJudged
from events.decisions import ClaimRefused, DependenciesDistributed
from events.imported_placements import ImportedPlacement
from events.links import CapacityRequested, PreemptionRequested, RescheduleRequested
from events.shapes import Occupant, OverrideRef, Reading, WorkloadRef
from events.tracing import NO_TRACE, Trace

# Reasons for which a key waits to be decided (bit flags).
SPEC: Final = 1
POLICY: Final = 2
CLUSTER: Final = 4
TIMER: Final = 8
HEALTH: Final = 16
REQUESTED: Final = 32
CAPACITY: Final = 64
OVERRIDE: Final = 128
REQUIRED: Final = 256
PRIORITY: Final = 512
QUOTA: Final = 1024
GROUP: Final = 2048
TERM: Final = 4096
ORPHANED: Final = 8192
REPORTED: Final = HEALTH | CAPACITY
"""Flags that only reports of member clusters set; keys with any other flag are decided first (``waiting_keys.pop``)."""


class Template(Struct, frozen=True, gc=False):
    """Fields of a template that deciders need; the manifest stays in the specs partition at ``offset``.

    ``digest`` covers the whole manifest, so a changed label alone also produces a new work.
    """

    ref: WorkloadRef
    labels: dict[str, str]
    uid: str
    generation: int
    offset: int
    digest: str
    size: workloads.Size
    custom: bytes = b""
    """Manifest of a custom kind; read again when an interpreter of the kind is applied or deleted."""
    dependencies: tuple[WorkloadRef, ...] = ()
    """Objects that the template refers to."""
    priority_class: PriorityClass | None = None
    """Content of the class if the template is a PriorityClass."""
    overwrites: bool = False
    """Works of the template take over existing objects, whatever conflictResolution the policy has."""
    imported: ImportedPlacement | None = None
    """The placement of the workload in the control plane from which it was imported."""
    is_imported: bool = False
    """Whether ``imported`` is new, so that the next scheduling decision takes it over."""


class Declared(Struct, frozen=True, gc=False):
    """The template as the last ``binding-declared`` decision recorded it."""

    ref: WorkloadRef
    uid: str
    generation: int
    offset: int
    digest: str
    replicas: int | None
    requests: workloads.Requests | None


class Report(Struct, frozen=True, gc=False):
    """The newest report of a member cluster; (term, step) is the version of the reported work.

    ``unhealthy_ms`` is the time of the first step that saw the workload unhealthy (0: healthy). ``fault`` is
    the reason why the work could not be applied. ``values`` maps the JSON paths that the work requested to
    their values. ``generation`` and ``observed_generation`` are those of the object in the member,
    ``template_generation`` is that of the template in the newest work that the member has applied. ``status`` is the
    whole status, as JSON, of a custom kind.
    """

    term: int
    step: int
    replicas: int
    updated: int
    ready: int
    available: int
    healthy: bool
    unhealthy_ms: int = 0
    fault: str = ""
    values: dict[str, str] = {}
    generation: int = 0
    observed_generation: int = 0
    template_generation: int = 0
    status: str = ""

    def __hash__(self) -> int:
        """Return a hash without the fields that are dictionaries, so that equal reports can be stored once."""
        return hash((self.term, self.step, self.replicas, self.ready))


class Dispatched(Struct, frozen=True, gc=False):
    """The newest work sent to a cluster; ``replicas`` is -1 for kinds without replicas.

    ``first`` is the version (term, step) of the first work since the binding came to the cluster. Reports of
    older versions describe a work that has been removed since and are ignored. ``generation`` is that of the
    template whose content was last sent to the cluster; suspending the work does not change it.
    """

    digest: str
    replicas: int
    term: int
    step: int
    suspended: bool
    overrides: tuple[OverrideRef, ...] = ()
    labels: dict[str, str] = {}
    reading: Reading | None = None
    first: tuple[int, int] = (0, 0)
    overwrites: bool = False
    generation: int = 0
    completions: int | None = None

    def __hash__(self) -> int:
        """Return a hash without the fields that are dictionaries, so that equal works can be stored once."""
        return hash((self.digest, self.replicas, self.term, self.step))


class Removal(Struct, frozen=True, gc=False):
    """An unconfirmed removal of a work in step ``version`` (term, step); ``is_withdrawn``: the template was deleted."""

    version: tuple[int, int]
    is_withdrawn: bool


class Terms(Struct, frozen=True, gc=False):
    """The clusters in which a binding needs an object, and whether its policy overwrites and preserves objects."""

    clusters: tuple[str, ...] = ()
    overwrites: bool = False
    preserves: bool = False


NOT_NEEDED: Final = Terms()


class Need(Struct, frozen=True, gc=False):
    """The need of a binding for an object on which it depends; dropped if ``terms`` has no clusters.

    ``number`` is that of the binding's newest link; links with lower numbers are ignored. ``preserved``: a dropped need
    leaves the object in its clusters. ``applied`` are the terms of the last decision on this need.
    """

    ref: WorkloadRef
    number: int
    terms: Terms
    preserved: bool = False
    applied: Terms = NOT_NEEDED


class Binding(bindings.Binding, kw_only=True, gc=False):
    """A template, its claim and its clusters; ``declared`` is None before the first claim or need and after withdrawal.

    ``fresh``: a rebalancer requested a reschedule, and no decision has succeeded since. ``blocked``: the last
    decision failed and is to be retried; ``ready_to_retry``: since then a fact changed that may have caused the
    failure. ``distributed`` is the last decision on its dependencies (None: no dependencies). ``timer_ms`` is
    when the binding must be decided again even without a new input (0: never). ``refused`` is the last refusal to
    apply a policy, until the template is declared, claimed or released. ``evicted`` are the clusters from which a
    taint evicted the binding, each with the time of the last eviction in milliseconds since 1970. ``suspending`` is the
    suspension that a client requested since the last step. ``reschedule_requests`` are rebalancers' requests that are
    not answered yet; ``delayed`` are those that are answered once the binding's decision no longer waits
    (``ShardState.awaits``). ``shown`` is the digest of the last status.
    """

    key: str
    template: Template | None = None
    declared: Declared | None = None
    refused: ClaimRefused | None = None
    fresh: bool = False
    blocked: bool = False
    attempts: int = 0
    retry_at_ms: int = 0
    ready_to_retry: bool = False
    reschedule_requests: tuple[RescheduleRequested, ...] = ()
    delayed: tuple[RescheduleRequested, ...] = ()
    reports: dict[str, Report] = {}
    works: dict[str, Dispatched] = {}
    shown: str = ""
    timer_ms: int = 0
    distributed: DependenciesDistributed | None = None
    evicted: tuple[tuple[str, int], ...] = ()
    suspending: bindings.Suspension | None = None

    @property
    def priority(self) -> int:
        """Priority of the binding, where a higher one comes first; 0 if none is resolved, as in Karmada."""
        return 0 if self.rank is None or self.rank.priority is None else self.rank.priority

    @property
    def is_waiting(self) -> bool:
        """Whether the last write of the template is not declared yet, or its policy cannot be applied."""
        return self.refused is not None or self.has_undeclared_write

    @property
    def has_undeclared_write(self) -> bool:
        """Whether the last write of the template is not declared yet."""
        template, declared = self.template, self.declared
        return template is not None and declared is not None and template.digest != declared.digest

    @property
    def preserves(self) -> bool:
        """Whether deleting the template leaves the workload in its clusters: set by the last policy that claimed it."""
        claim = self.last_claim
        return claim is not None and bool(claim.preserve_on_deletion)

    @property
    def deletes_last_copy(self) -> bool:
        """Whether an eviction may delete the last running copy: set by the last policy that claimed the template."""
        claim = self.last_claim
        return claim is not None and claim.deletes_last_copy


class CapacityRequest(Struct, gc=False):
    """A request of a binding that lacks capacity, to all shards, for bindings that it could preempt.

    ``number`` is the number of the step that sent it, ``offers`` are the answers by shard. Once ``is_decided``, the
    victims are chosen; ``has_victims`` is False if there are none. The binding sends no further request before
    ``again_ms``. ``attempt`` is the number of requests that it has sent so far.
    """

    number: int
    again_ms: int
    attempt: int
    offers: dict[int, tuple[Occupant, ...]] = {}
    is_decided: bool = False
    has_victims: bool = False

    @property
    def due_ms(self) -> int:
        """Time at which to schedule the binding again after a preemption; 0 (never) if there are no victims."""
        return self.again_ms if self.has_victims else 0


class Rebalancer(rebalancers.Rebalancer, kw_only=True, gc=False):
    """A WorkloadRebalancer; ``version`` is the write version of its last write."""

    key: str
    name: str
    uid: str
    generation: int
    created_ms: int
    edited_ms: int
    version: int
    workloads: tuple[WorkloadRef, ...]
    ttl_seconds: int | None
    answers: list[rebalancers.Observed] = []
    timer_ms: int = 0


class Watch(Struct, gc=False):
    """Health tracking of one cluster in its owner shard, from the cluster's first report on.

    - ``status``: the condition Ready (empty: not reported yet).
    - ``since_ms``: start of this condition as reported; ``known_ms``: time of the first step that knew it (0: none).
    - ``heard_ms``: time of the last report.
    - ``silent_ms``: time at which the cluster counts as silent (0: never), ``grace_ms`` after the last report or the
      start of the term.
    - ``silenced_ms``: the ``heard_ms`` at which the cluster was last recorded as silent.
    - ``judged``: last decision on the cluster's taints; ``act_ms``: time of the next one even without a new report.
    - ``queued_ms``: time since which the cluster waits for others to be emptied first (0: it does not wait).
    """

    key: str
    name: str
    status: str
    since_ms: int
    heard_ms: int
    silent_ms: int = 0
    silenced_ms: int = -1
    judged: ClusterJudged | None = None
    act_ms: int = 0
    timer_ms: int = 0
    known_ms: int = 0
    queued_ms: int = 0
    grace_ms: int = 0

    @property
    def due_ms(self) -> int:
        """Time of the next check of this cluster; 0 for never."""
        waits = self.silent_ms if self.silenced_ms != self.heard_ms else 0
        return min((due for due in (waits, self.act_ms) if due), default=0)


class Departure(Struct, gc=False):
    """State of a leaving cluster in a shard.

    ``is_told``: this shard has reported to the cluster's owner shard that none of its works is left there.
    The owner shard collects these reports in ``cleared``: the cluster's uid by reporting shard. ``is_decided``: the
    owner shard has decided that the cluster is vacated.
    """

    cause: "Cause"
    is_told: bool = False
    cleared: dict[int, str] = {}
    is_decided: bool = False


class Cause(Struct, frozen=True, gc=False):
    """The input that caused a decision: its position, correlation id (``story``), trace and time."""

    position: str = ""
    story: str = ""
    trace: Trace = NO_TRACE
    at_ms: int = 0


class Waiting(Struct, frozen=True, gc=False):
    """Why a key waits: flags, priority, the newest input that queued it, and the time of the oldest input that did."""

    flags: int
    cause: Cause
    since_ms: int
    priority: int = 0


class ShardState(Struct):
    """State of a shard. ``number``, ``term`` and ``digest`` are those of its last step.

    - ``began_ms``: time of the first step of the current term; reports may have been missed before it.
    - ``placements``: those of policies, by digest; ``placements_kept``: their number after the last drop of unused
      ones, stored so that a shard from a snapshot drops them in the same steps as a shard from the whole log.
    - ``touched``: keys queued by the inputs of the current turn.
    - ``waiting``: keys to be decided, in order; ``reported``: those that only member reports queued.
    - ``needs``: by key of the needed object (which may not exist yet), then by key of the binding that needs it.
    - ``capacity_requests``: those of this shard's bindings; ``unanswered_requests``: those of all shards' bindings to
      which this shard has not responded.
    - ``preemptions``: evictions of this shard's bindings that other bindings request.
    - ``removals``: removed works not confirmed as gone, by cluster and key.
    - ``departures``: leaving clusters.
    - ``quota_claims``: claims of this shard's bindings on overall quotas; ``ledgers``: all claims on the quotas that
      this shard owns, by ``keys.quota_key``.
    - ``seats``: seats of this shard's bindings in groups of workloads, by binding and group; ``groups``: the groups
      that this shard owns, by ``keys.group_key``.
    - ``is_crowd``: the result of ``cluster_health.too_many_not_ready`` at the last check.
    """

    shard: int
    number: int = 0
    term: int = 0
    time_ms: int = 0
    began_ms: int = 0
    digest: str = ""
    bindings: dict[str, Binding] = {}
    rebalancers: dict[str, Rebalancer] = {}
    placements: dict[str, msgspec.Raw] = {}
    placements_kept: int = 0
    watches: dict[str, Watch] = {}
    touched: dict[str, Waiting] = {}
    waiting: dict[str, Waiting] = {}
    reported: dict[str, Waiting] = {}
    needs: dict[str, dict[str, Need]] = {}
    capacity_requests: dict[str, CapacityRequest] = {}
    unanswered_requests: dict[str, CapacityRequested] = {}
    preemptions: dict[str, list[PreemptionRequested]] = {}
    removals: dict[str, dict[str, Removal]] = {}
    departures: dict[str, Departure] = {}
    quota_claims: dict[str, QuotaClaim] = {}
    ledgers: dict[str, Ledger] = {}
    seats: dict[str, dict[str, GroupMember]] = {}
    groups: dict[str, WorkloadGroup] = {}
    is_crowd: bool = False

    def awaits(self, key: str) -> bool:
        """Whether a change of a binding waits for an answer by the owner of overall quotas or of a group."""
        claim = self.quota_claims.get(key)
        seats = self.seats.get(key)
        is_quota_open = claim is not None and bool(claim.wanted) and not (claim.is_granted or claim.fault)
        return is_quota_open or (
            seats is not None and any(seat.wanted and not seat.is_answered for seat in seats.values())
        )
