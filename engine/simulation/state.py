"""State of a member and of its reports: plain data for ``cluster``, ``reports`` and ``recovery``."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec
from msgspec import Struct

from engine.kubeapi.schema.resources import Resource
from engine.simulation import capacity, specs
from engine.simulation.budget_index import BudgetIndex
from engine.works.autoscalers import Scaler
from engine.works.quotas import Quota
from engine.works.templates import EMPTY, Rank, Template
from events import clusters, records, shapes, topics, tracing, works
from events.json_values import Json

Version = tuple[int, int]
"""(term, step) of a work."""

TOMBSTONES_MAX: Final = 65_536
"""Number of removed workloads whose last version is kept, so that a stale work does not bring them back."""


PODS_MAX: Final = 150_000
"""Maximum number of pods of one workload in a member, which is Kubernetes' limit for a cluster; no more are created.

Rollouts, deletions of pods and lists visit each pod, and an object may ask for two billion pods.
"""

UNMANAGED: Final = "unmanaged:"
"""Prefix of the key of a workload that runs an unmanaged object, since a managed one may have the same name."""


NOTHING_REPLACED: Final[Mapping[int, int]] = MappingProxyType({})

NEVER_MS: Final = 2**62
"""``ready_ms`` of replicas that do not start, since no registry has their image."""


class Cohort(Struct, frozen=True, gc=False):
    """Replicas created and admitted together; they are ready at ``ready_ms``."""

    count: int
    created_ms: int
    ready_ms: int
    running: bool = False


class ReportCause(Struct, frozen=True, gc=False):
    """The work that caused a report: its position in the topic ``works``, correlation id (``story``) and trace.

    ``offset`` is -1 for reports that no work caused.
    """

    partition: int = 0
    offset: int = -1
    story: str = ""
    trace: tracing.Trace = tracing.NO_TRACE

    @property
    def position(self) -> str:
        """Position of the work in the log; empty if no work caused the report."""
        return "" if self.offset < 0 else str(records.Position(topics.WORKS, self.partition, self.offset))


class KeptFields(Struct, frozen=True, gc=False):
    """Content that clients of the member wrote into a managed object and that the control plane does not overwrite.

    Labels and annotations that the template does not set, a status (JSON object, or empty), and the number of replicas
    if the template leaves it to the members (None otherwise).
    """

    labels: tuple[tuple[str, str], ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    status: bytes = b""
    replicas: int | None = None


class Revision(Struct, frozen=True, gc=False):
    """A pod template of a workload: its number, JSON and digest, and when it was used first."""

    number: int
    template: bytes
    digest: str
    created_ms: int

    @property
    def pod_template(self) -> Json:
        return msgspec.json.decode(self.template, type=dict[str, object])


class Origin(Struct, frozen=True, gc=False):
    """The deleted owner of an orphaned object: the owner's key, and the digest of its pod template."""

    key: str
    digest: str


class Unmanaged(Struct, frozen=True, kw_only=True, gc=False):
    """An object that clients of the member wrote and the control plane does not manage.

    ``manifest`` is the object as written, with its status if a client wrote one. ``digest`` is the digest of its spec;
    ``generation`` counts the changes of the spec, the last one at ``changed_ms``. ``revisions`` are the last pod
    templates of a workload, the current one last; a ReplicaSet with an ``origin`` has only its own. If an owner with
    the key of the ``origin`` is created again, it adopts the object.
    """

    ref: shapes.WorkloadRef
    manifest: bytes
    uid: str
    created_ms: int
    digest: str
    generation: int = 1
    changed_ms: int = 0
    revisions: tuple[Revision, ...] = ()
    origin: Origin | None = None


class Source(Struct, frozen=True, gc=False):
    """The fields of a work that determine the rendered manifest: position, overrides, labels.

    ``reading`` has the rules by which members read the object's health and status; None for the built-in ones only.
    """

    shard: int = 0
    offset: int = 0
    overrides: tuple[shapes.OverrideRef, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    reading: shapes.Reading | None = None


class Former(Struct, gc=False):
    """Ready replicas of a former pod template, while a rollout replaces them: their slots, oldest first."""

    template: Template
    slots: list[int]
    replaced: dict[int, int]
    source: Source


class Workload(Struct, kw_only=True, gc=False):
    """One workload in one cluster.

    - ``version`` is that of the work that it runs, ``known`` that of the newest work received.
    - ``replicas`` is None for kinds without replicas; ``desired`` is the number in its work.
    - ``cohorts`` are sorted by age, oldest first; a pod's position is its index in that order. ``pending`` replicas
      come last.
    - ``preserved``: the control plane no longer manages it, and it keeps running.
    - ``reported`` is the fingerprint of the last report.
    - ``fault`` is the reason why the newest work could not be applied; the previous one then keeps running.
    - ``uid`` is set if it was taken over from an unmanaged object.
    - ``is_unmanaged``: it runs an unmanaged object and is not reported.
    - ``generation`` counts the changes of its content: the ``digest`` of its template, replicas and overrides.
    - For a Job, ``completions`` is the share in its work; ``succeeded`` pods have ended, the last one at ``ended_ms``.
    - The last Job of a CronJob began at ``scheduled_ms``; the CronJob's next change is at ``change_ms``.
    - ``replaced`` counts by slot the pods that clients deleted; the slot replaced last comes last. Change it with
      ``rollouts.replaced_pods``: workloads without replaced pods share one empty mapping.
    - ``origin`` is the key of the deleted Deployment whose ReplicaSet this is.
    - ``former_pods`` are the replicas of former pod templates, first in ``cohorts``; ``source`` is that of the
      current template.
    - ``progress_ms`` is when the rollout last progressed; ``is_stalled``: no progress within its deadline.
    - ``held_until_ms`` is when the next report of the rollout is due. ``slots`` is set only in the copies, one per pod
      template, that ``rollouts.groups`` returns.
    """

    key: str
    ref: shapes.WorkloadRef
    version: Version
    known: Version
    created_ms: int
    replicas: int | None = None
    desired: int | None = None
    template: Template = EMPTY
    fault: str = ""
    cohorts: tuple[Cohort, ...] = ()
    pending: int = 0
    pending_since_ms: int = 0
    suspended: bool = False
    preserved: bool = False
    cause: ReportCause = ReportCause()
    reported: bytes | None = None
    uid: str = ""
    is_unmanaged: bool = False
    digest: str = ""
    generation: int = 0
    kept: KeptFields = KeptFields()
    completions: int | None = None
    succeeded: int = 0
    ended_ms: int = 0
    scheduled_ms: int = 0
    change_ms: int = 0
    replaced: Mapping[int, int] = NOTHING_REPLACED
    origin: str = ""
    former_pods: tuple[Former, ...] = ()
    source: Source = Source()
    progress_ms: int = 0
    is_stalled: bool = False
    held_until_ms: int = 0
    slots: list[int] | None = None

    @property
    def object_key(self) -> str:
        """The key of the object, whether the control plane manages it or not."""
        return self.key.removeprefix(UNMANAGED)

    @property
    def ready(self) -> int:
        return sum(cohort.count for cohort in self.cohorts if cohort.running)

    @property
    def admitted(self) -> int:
        """Number of replicas that take capacity: running or starting."""
        return sum(cohort.count for cohort in self.cohorts)

    @property
    def outdated(self) -> int:
        """Number of replicas of former pod templates."""
        return sum(len(former.slots) for former in self.former_pods)

    @property
    def updated(self) -> int:
        """Number of replicas of the current pod template, pending ones included."""
        return self.admitted + self.pending - self.outdated


class PendingRemoval(Struct, frozen=True, gc=False):
    """A removal that is still to be reported."""

    version: Version
    cause: ReportCause


class Faults(Struct):
    """Faults of a member.

    ``down``: it takes no works and sends no reports. ``unreachable``: the same, because its Cluster object has the
    address of another API; its own API still answers. ``slowness`` multiplies start-up times. Every ``lose_every``-th
    report is lost; 0 loses none. Clients of its API wait ``lag_ms`` for each response; every ``throttle_every``-th
    request is refused with 429, every ``fail_every``-th with 503 (0: none).
    """

    down: bool = False
    unreachable: bool = False
    slowness: int = 1
    lose_every: int = 0
    lag_ms: int = 0
    throttle_every: int = 0
    fail_every: int = 0

    @property
    def cut_off(self) -> bool:
        return self.down or self.unreachable


class Conflict(Struct, frozen=True):
    """A work for an object that exists already and must not be taken over; applied once that object is deleted."""

    work: works.WorkApplied
    template: Template
    cause: ReportCause


class NamespaceQuotas(Struct, kw_only=True):
    """The ResourceQuotas of a namespace.

    ``quotas`` has, by key, the name and the content of each quota; ``used`` has, by key, the amounts of the quota's
    resources that existing pods use, in billionths. ``refused`` are the workloads whose pods were refused; they are
    tried again once ``is_freed`` is set.
    """

    quotas: dict[str, tuple[str, Quota]] = {}
    used: dict[str, dict[str, int]] = {}
    refused: dict[str, None] = {}
    is_freed: bool = False


class MemberState(Struct, kw_only=True):
    """State of a member.

    - ``unmanaged``: objects of its own clients, by binding key; ``conflicts``: works that may not take them over.
    - ``orphans``: the keys of unmanaged objects by the key of their ``origin``.
    - ``owned``: the keys of unmanaged objects with owners, by the key of each owner; ``owners``: the reverse;
      ``to_collect``: those whose owners may no longer exist, and owners that wait for the deletion of dependents.
    - ``definitions``: the kinds of its CustomResourceDefinitions, by the definition's key.
    - ``budgets``: its PodDisruptionBudgets; None before the first one.
    - ``scalers``: its HorizontalPodAutoscalers with the keys of their targets; ``scaled``: autoscalers by target;
      ``to_scale``: targets that may have other replicas or another load since they were last checked.
    - ``nodes``: the nodes that its clients edited, by name.
    - ``quotas``: its ResourceQuotas, by namespace.
    - ``ranks``: its PriorityClasses by name; ``is_ranked``: whether any template names one.
    - ``refused``: workloads whose first work could not be applied, so that nothing runs.
    - ``unplaced``: workloads with new pending replicas; ``waiting``: those whose pending replicas found no capacity.
    - ``rolling``: workloads that have begun a rollout.
    - ``starts``: heap of (time, key): when replicas of a workload become ready, or another of its timers is due.
    - ``dirty``: workloads that may have changed since their last report.
    - ``lost``: workloads whose report was lost; sent again at ``retry_ms``.
    - ``shift_ms``: time at which a delayed capacity report is due (see ``reports``).
    - ``reported_capacity``, ``reported_ready``, ``reported_apis``: contents of the last reports; None before the first.
    """

    spec: specs.MemberSpec
    capacity: capacity.Capacity
    faults: Faults
    workloads: dict[str, Workload] = {}
    unmanaged: dict[str, Unmanaged] = {}
    conflicts: dict[str, Conflict] = {}
    orphans: dict[str, dict[str, None]] = {}
    owned: dict[str, dict[str, None]] = {}
    owners: dict[str, dict[str, None]] = {}
    to_collect: dict[str, None] = {}
    definitions: dict[str, tuple[Resource, ...]] = {}
    budgets: BudgetIndex | None = None
    scalers: dict[str, tuple[str, Scaler]] = {}
    scaled: dict[str, dict[str, None]] = {}
    to_scale: dict[str, None] = {}
    nodes: dict[str, Unmanaged] = {}
    quotas: dict[str, NamespaceQuotas] = {}
    ranks: dict[str, Rank] = {}
    is_ranked: bool = False
    refused: dict[str, Workload] = {}
    tombstones: dict[str, Version] = {}
    gone: dict[str, PendingRemoval] = {}
    unplaced: dict[str, None] = {}
    waiting: dict[str, None] = {}
    rolling: dict[str, None] = {}
    starts: list[tuple[int, str]] = []
    capacity_freed: bool = False
    capacity_changed: bool = True
    dirty: dict[str, None] = {}
    lost: dict[str, None] = {}
    retry_ms: int | None = None
    reports: int = 0
    joined: bool = False
    shift_ms: int | None = None
    reported_capacity: clusters.CapacityReported | None = None
    reported_ready: bool | None = None
    reported_apis: tuple[clusters.ApiKind, ...] | None = None

    def managed(self, key: str) -> Workload | None:
        """Return the workload of an object that the control plane manages; None for all others."""
        workload = self.workloads.get(key)
        return None if workload is None or workload.preserved else workload


def initial_state(spec: specs.MemberSpec) -> MemberState:
    """Return a member that runs nothing and has reported nothing; raises quantity.QuantityError for malformed nodes."""
    return MemberState(spec=spec, capacity=capacity.capacity_of(spec.nodes), faults=Faults())
