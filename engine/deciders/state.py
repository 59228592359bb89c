"""What a shard keeps: its bindings, its rebalancers, and what waits to be decided.

Only ``evolve`` and ``intake`` change it. Everything is plain data, so that a snapshot is one encoding of it.
"""

from typing import Final

import msgspec
from msgspec import Struct

from engine.deciders import evicting
from engine.objects import workloads
from engine.objects.dependencies import Dependency
from engine.objects.priorities import PriorityClass
from events.decisions import (
    ApplicationFailover,
    ClusterJudged,
    DependenciesDistributed,
    PriorityResolved,
    SchedulePriority,
)
from events.links import PreemptionAsked, RoomAsked
from events.shapes import Occupant, OverrideRef, PolicyRef, Reading, StateRule, WorkloadRef
from events.tracing import NO_TRACE, Trace

# Why a key waits to be decided; several reasons add up.
SPEC: Final = 1
POLICY: Final = 2
CLUSTER: Final = 4
TIMER: Final = 8
HEALTH: Final = 16
ASKED: Final = 32
ROOM: Final = 64
OVERRIDE: Final = 128
REQUIRED: Final = 256
PRIORITY: Final = 512
REPORTED: Final = HEALTH | ROOM
"""News from the members: it can wait while there is something to decide."""


class Template(Struct, frozen=True, gc=False):
    """What the engine keeps of a template; its manifest stays in the log at ``offset`` of the shard's specs.

    ``digest`` covers the whole manifest, so that a change of a label alone reaches the members too.
    """

    ref: WorkloadRef
    labels: dict[str, str]
    uid: str
    generation: int
    offset: int
    digest: str
    size: workloads.Size
    custom: bytes = b""
    """The spec of a custom kind, which is read again when an interpreter for it comes or goes."""
    dependencies: tuple[Dependency, ...] = ()
    """What it refers to."""
    priority_class: PriorityClass | None = None
    """What it says, where it is a PriorityClass."""


class Declared(Struct, frozen=True, gc=False):
    """What the binding says of its template."""

    ref: WorkloadRef
    uid: str
    generation: int
    offset: int
    digest: str
    replicas: int | None
    requests: workloads.Requests | None


class Claim(Struct, frozen=True, gc=False):
    """The policy that places the template, at the version that was claimed.

    ``placement`` is the digest of the placement in the shard's table of placements.
    """

    policy: PolicyRef
    permanent_id: str
    version: int
    placement: str
    suspended: bool
    suspended_on: tuple[str, ...]
    purge_mode: str
    failover: ApplicationFailover | None = None
    propagate_deps: bool = False
    preserved: tuple[StateRule, ...] = ()
    schedule_priority: SchedulePriority | None = None


class Report(Struct, frozen=True, gc=False):
    """The newest report of a member; (term, step) is the version of the work that it speaks of.

    ``unhealthy_ms`` is the time of the step that first knew of a workload that is not healthy, 0 for none. ``fault``
    is why the work could not be applied. ``values`` are those that the work asked for, by path.
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


class Dispatched(Struct, frozen=True, gc=False):
    """The newest work of a cluster. ``replicas`` is -1 for kinds that have none.

    ``first`` is the version (term, step) with which the cluster got the binding: reports of older ones speak of what
    was removed before.
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


class Ask(Struct, frozen=True, gc=False):
    """A rebalancer's question that is not answered yet."""

    rebalancer: str
    uid: str
    generation: int
    at_ms: int
    workload: WorkloadRef


class Need(Struct, frozen=True, gc=False):
    """In which clusters another binding needs the object, as its newest link says; none where it was dropped.

    ``number`` is that of the link, ``preserved`` that a dropped one leaves what runs. ``applied`` are the clusters that
    were decided on.
    """

    ref: WorkloadRef
    number: int
    clusters: tuple[str, ...]
    preserved: bool = False
    applied: tuple[str, ...] = ()


class Binding(Struct, gc=False):
    """A template and where it goes. Without ``declared`` it is only a template that nothing claims yet.

    ``generation`` counts the changes of the binding's own spec; ``fresh`` says that a rebalancer asked and no
    decision has succeeded since; ``blocked`` that the last decision failed and is to be tried again, and
    ``ready_to_retry`` that a fact which may have blocked it has changed since; ``preserves`` that what runs is
    left to the clusters when the template goes, as the last policy that claimed it said. ``distributed`` is what was
    told of its dependencies, None where there are none. ``deletes_last_copy`` comes from the last policy that claimed
    it (see ``last_copy``). ``rank`` is its priority, None where it has none of its own.
    ``timer_ms`` is the next instant at which time alone may
    change something, 0 for never.
    """

    key: str
    template: Template | None = None
    declared: Declared | None = None
    claim: Claim | None = None
    generation: int = 0
    clusters: evicting.Targets = ()
    tasks: tuple[evicting.Task, ...] = ()
    preserves: bool = False
    applied: str = ""
    affinity: str = ""
    condition: str = ""
    message: str = ""
    fresh: bool = False
    blocked: bool = False
    attempts: int = 0
    retry_at_ms: int = 0
    ready_to_retry: bool = False
    asks: list[Ask] = []
    reports: dict[str, Report] = {}
    works: dict[str, Dispatched] = {}
    shown: str = ""
    timer_ms: int = 0
    distributed: DependenciesDistributed | None = None
    rank: PriorityResolved | None = None
    deletes_last_copy: bool = False

    @property
    def priority(self) -> int:
        """How important it is, the highest first; 0 for what has no priority of its own, as in the reference."""
        return 0 if self.rank is None or self.rank.priority is None else self.rank.priority


class Want(Struct, gc=False):
    """What a binding without room has asked of all shards, in the step with this ``number``: who could make some.

    ``offers`` are the answers, by shard. Once it ``is_decided`` who has to leave (if anybody: ``has_victims``), nobody
    is asked again before ``again_ms``; ``attempt`` counts how often that was.
    """

    number: int
    again_ms: int
    attempt: int
    offers: dict[int, tuple[Occupant, ...]] = {}
    is_decided: bool = False
    has_victims: bool = False

    @property
    def due_ms(self) -> int:
        """When to look whether room came of it; 0 for never, as long as nobody was told to leave."""
        return self.again_ms if self.has_victims else 0


class Observed(Struct, frozen=True, gc=False):
    """What became of a workload of a rebalancer; ``result`` is empty while its answer is awaited.

    ``generation`` is the one in which it was asked for.
    """

    workload: WorkloadRef
    generation: int
    result: str = ""
    reason: str = ""


class Rebalancer(Struct, gc=False):
    """A WorkloadRebalancer.

    ``started`` is the generation that was taken up last, ``finished`` the one that was finished last; ``version``
    the home version of its last write.
    """

    key: str
    name: str
    uid: str
    generation: int
    created_ms: int
    edited_ms: int
    version: int
    workloads: tuple[WorkloadRef, ...]
    ttl_seconds: int | None
    observed: dict[str, Observed] = {}
    started: int = 0
    finished: int = 0
    finish_ms: int = 0
    expired: bool = False
    answers: list[Observed] = []
    timer_ms: int = 0


class Watch(Struct, gc=False):
    """What a cluster's home shard keeps of it, from its first report on.

    ``status`` is that of the condition Ready, since ``since_ms`` as the report says; ``known_ms`` is the time of the
    first step that knew of it, 0 before that. ``silent_ms`` is the instant at which its silence is told, 0 for never,
    after the ``grace_ms`` that were promised; ``silenced_ms`` the ``heard_ms`` of the silence that was told last.
    ``judged`` is what was told last of its taints, ``act_ms`` when time alone may change that, ``queued_ms`` since when
    others are to be emptied before it, 0 for none.
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
        """When it is to be looked at next; 0 for never."""
        waits = self.silent_ms if self.silenced_ms != self.heard_ms else 0
        return min((due for due in (waits, self.act_ms) if due), default=0)


class Departure(Struct, gc=False):
    """What a shard keeps of a cluster that is leaving.

    ``is_told`` says that its home was told that nothing of this shard is left there; the home keeps in ``cleared``
    which shards have told so, each with the uid that the cluster had then, and whether the end ``is_decided``.
    """

    cause: "Cause"
    is_told: bool = False
    cleared: dict[int, str] = {}
    is_decided: bool = False


class Cause(Struct, frozen=True, gc=False):
    """The input behind what is decided: its position, the story and the trace that it belongs to, and its time."""

    position: str = ""
    story: str = ""
    trace: Trace = NO_TRACE
    at_ms: int = 0


class Waiting(Struct, frozen=True, gc=False):
    """Why a key waits: the input that touched it last, the time of the one that did it first, and its ``priority``."""

    flags: int
    cause: Cause
    since_ms: int
    priority: int = 0


class Counters(Struct):
    """What the folds have ignored, by reason."""

    answers_ignored: int = 0
    reports_ignored: int = 0
    needs_ignored: int = 0
    allowances_ignored: int = 0


class ShardState(Struct):
    """All that the owner of a shard knows. ``number``, ``term`` and ``digest`` are those of its last step.

    ``began_ms`` is the time of the first step of that term: before, nobody may have been there to hear anything.
    ``touched`` are the keys that the turn's inputs touched so far, ``waiting`` those to be decided, in order,
    and ``reported`` those of which there is only news from the members. ``needs`` are those of other bindings, by the
    key of what they need, which may not be there yet, and their own key. ``wants`` are those of its own bindings that
    find no room, ``questions`` those of all shards' bindings, by their keys, that are not answered yet; ``preemptions``
    tell its bindings to make room. ``removals`` are the works that were removed and are not known to be gone, by
    cluster and key, with the versions of the removals; ``departures`` are the clusters that are leaving. ``is_crowd``
    says that too many clusters were in trouble when that was looked at last.
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
    watches: dict[str, Watch] = {}
    touched: dict[str, Waiting] = {}
    waiting: dict[str, Waiting] = {}
    reported: dict[str, Waiting] = {}
    counters: Counters = msgspec.field(default_factory=Counters)
    needs: dict[str, dict[str, Need]] = {}
    wants: dict[str, Want] = {}
    questions: dict[str, RoomAsked] = {}
    preemptions: dict[str, list[PreemptionAsked]] = {}
    removals: dict[str, dict[str, tuple[int, int]]] = {}
    departures: dict[str, Departure] = {}
    is_crowd: bool = False


def workload_order(ref: WorkloadRef) -> str:
    """The order of observedWorkloads: one string, so an empty namespace leaves two spaces."""
    return f"{ref.api_version} {ref.kind} {ref.namespace} {ref.name}"
