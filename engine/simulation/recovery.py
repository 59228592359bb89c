"""Restore a member after a restart, from its works and its own reports.

The newest work of each workload says what runs, the last report how many replicas were ready. Those keep
running; the others start now. Nothing is reported that the log has already. Exact ages of replicas survive
scaling, but not a change of the pod template.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, Protocol

import msgspec
from msgspec import Struct, structs

from engine.domain import marks
from engine.simulation import capacity as simulation_capacity
from engine.simulation import (
    cluster,
    disruption_budgets,
    faults,
    quotas,
    replicas,
    reports,
    served_kinds,
    unmanaged,
)
from engine.simulation.state import (
    Cohort,
    Conflict,
    Kept,
    MemberState,
    ReportCause,
    Unmanaged,
    Version,
    Workload,
)
from engine.works import quotas as quota_manifests
from engine.works import template_loading
from engine.works.templates import EMPTY, Template
from events import clusters, health, job_statuses, objects, shapes, times, works

Report = health.WorkloadReported | health.WorkloadGone


_SUCCEEDED: Final = ".succeeded"
EARLIER_MAX: Final = 16
"""Number of earlier works kept per workload, in case newer ones could not be applied."""


class WorkloadHistory(Struct):
    """One workload according to the log: its newest work that may run, and the ages of its replicas.

    ``earlier`` holds the works before it, newest first, while it is unknown whether it could be applied.
    ``settle`` decides that before the workload is restored: then ``applied`` is the work that runs, if any,
    ``newest`` the last one, and ``fault`` the reason why that could not be applied. ``first`` is the version that
    created the object, ``edited`` the number of the last edit of it by a client of the member.
    """

    known: Version
    first: Version = (0, 0)
    applied: works.WorkApplied | None = None
    earlier: list[works.WorkApplied] = []
    newest: works.WorkApplied | None = None
    fault: str = ""
    created_ms: int = 0
    ages: list[tuple[int, int]] = []
    suspended: bool = False
    removed: bool = False
    preserved: bool = False
    cause: ReportCause = ReportCause()
    conflict: works.WorkApplied | None = None
    uid: str = ""
    kept: Kept = Kept()
    edited: int = 0


class ObjectWrite(NamedTuple):
    """A write of a client of the member: the number of its record, the event, the uid of a new object, the time."""

    number: int
    data: clusters.MemberWrite
    uid: str
    at_ms: int


class Resting(Protocol):
    """A workload that has the replicas of its newest work, and has been reported with them."""

    def history(self, cluster: str, key: str) -> WorkloadHistory:
        """Return its history in a cluster."""
        ...

    def reported(self, cluster: str, key: str) -> health.WorkloadReported | None:
        """Return the last report on it."""
        ...


class History(Struct):
    """One member according to the log.

    ``down_since`` is the number of the record that reported it as down (0: it is up). ``writes`` are not folded
    yet; ``unmanaged`` and ``ages`` are the objects of the member's own clients, and the ages of their replicas.
    ``replaced`` are the slots of deleted pods, by the key of the object.
    ``reports`` are the last reports of workloads, ``running`` the last ones of what ran,
    with the numbers of their records. ``resting`` workloads are restored when a work comes for them.
    """

    workloads: dict[str, WorkloadHistory] = {}
    writes: deque[ObjectWrite] = msgspec.field(default_factory=deque)
    unmanaged: dict[str, Unmanaged] = {}
    ages: dict[str, list[tuple[int, int]]] = {}
    replaced: dict[str, dict[int, int]] = {}
    reports: dict[str, Report] = {}
    running: dict[str, tuple[int, health.WorkloadReported]] = {}
    resting: dict[str, Resting] = {}
    joined: bool = False
    was_joined: bool = False
    ready: bool | None = None
    down_since: int = 0
    is_reachable: bool = True
    capacity: clusters.CapacityReported | None = None
    apis: tuple[clusters.ApiKind, ...] | None = None


def take_cluster(history: History, data: object, number: int, source: str) -> None:
    """Fold an event about the member's own cluster; only its own report shows that it is down."""
    match data:
        case clusters.ClusterJoined():
            history.joined = history.was_joined = True
            history.is_reachable = faults.is_reachable(data)
        case clusters.ClusterLeft():
            history.joined = False
            history.capacity = history.ready = history.apis = None
        case clusters.ClusterApisReported(apis=apis):
            history.apis = apis
        case clusters.CapacityReported() as report:
            history.capacity = report
        case clusters.ClusterHealthChanged(ready=ready):
            history.ready = ready
            if source.startswith(reports.SOURCE):
                history.down_since = 0 if ready else number
        case _:
            pass


def take_writes(history: History, before: int) -> None:
    """Fold the clients' writes whose records have lower numbers than ``before``."""
    while history.writes and history.writes[0].number < before:
        write = history.writes.popleft()
        match write.data:
            case clusters.MemberObjectApplied(manifest=manifest):
                _take_object(history, bytes(manifest), write)
            case clusters.MemberObjectDeleted(object=ref):
                _take_deletion(history, ref, write.at_ms)
            case clusters.MemberPodDeleted(owner=owner, slot=slot):
                _take_pod_deletion(history, unmanaged.key_of(owner), slot, write.at_ms)


def take_work(history: History, work: cluster.Work, at_ms: int, cause: ReportCause) -> None:
    """Fold one work of the member; earlier writes have been folded (``take_writes``)."""
    version = (work.term, work.step)
    past = history.workloads.get(work.key)
    if past is not None and version < past.known:
        return
    if past is None:
        past = history.workloads[work.key] = WorkloadHistory(version)
    past.known = version
    match work:
        case works.WorkApplied() if work.key in history.unmanaged and not work.overwrites:
            past.conflict = past.newest = work
            past.fault = marks.conflict(work.template, work.cluster)
            past.suspended = past.removed = False
            past.cause = cause
        case works.WorkApplied():
            if past.applied is None:
                past.created_ms, past.uid, past.kept = at_ms, "", Kept()
                past.first = version
            if own := history.unmanaged.pop(work.key, None):
                past.created_ms, past.uid = own.created_ms, own.uid
                past.kept = unmanaged.taken_over(own)
                past.ages = history.ages.pop(work.key, [])
            past.conflict = past.newest = None
            past.fault = ""
            if not work.overrides:
                past.earlier = []  # A work without overrides can always be applied.
            elif past.applied is not None:
                past.earlier = [past.applied, *past.earlier][:EARLIER_MAX]
            past.applied = work
            past.suspended = past.removed = past.preserved = False
            past.cause = cause
            _scale(past.ages, work.replicas or 0, at_ms)
        case works.WorkRemoved(preserved=preserved):
            past.removed, past.preserved = True, preserved
            past.cause = cause
            past.conflict = None
            if not preserved:
                _forget_slots(history, work.key)
                past.applied = None
                past.earlier = []
                past.ages = []
        case works.WorkSuspended():
            past.suspended = True


def choose_work(
    past: WorkloadHistory, newest: works.WorkApplied, running_work: works.WorkApplied | None, fault: str
) -> None:
    """Set which work of a workload runs, and the fault of the newest one."""
    past.newest, past.applied, past.fault = newest, running_work, fault
    _scale(past.ages, (running_work.replicas or 0) if running_work else 0, past.created_ms)


def take_report(history: History, report: Report, number: int) -> None:
    """Fold one report of the member; the last one of a workload counts."""
    history.reports[report.key] = report
    if isinstance(report, health.WorkloadReported):
        history.running[report.key] = number, report


def positions(history: History) -> Iterator[tuple[str, template_loading.TemplatePosition]]:
    """Return the keys of the workloads whose templates are needed, with the templates' positions."""
    for key, workload in history.workloads.items():
        applied = workload.applied or workload.conflict
        if applied is not None and template_loading.needs_template(applied):
            yield key, (applied.shard, applied.offset)


def restore(state: MemberState, history: History, templates: Mapping[str, Template], at_ms: int) -> None:
    """Restore a state from a history; ``templates`` by key, for workloads whose templates have content."""
    state.joined = history.joined
    state.reported_capacity = history.capacity
    state.reported_ready = history.ready
    state.reported_apis = history.apis
    state.faults.unreachable = not history.is_reachable
    state.faults.down = history.down_since > 0 and history.is_reachable
    for key, item in history.unmanaged.items():
        if item.ref.kind == quota_manifests.KIND:
            quotas.record(state, key, item.ref, quota_manifests.read(item.manifest))
    restore_workloads(state, history, templates, at_ms)
    for key, item in history.unmanaged.items():
        state.unmanaged[key] = item
        served_kinds.record_manifest(state, key, item.ref.kind, item.manifest)
        workload = unmanaged.run(state, key, item, at_ms)
        if workload is not None:
            workload.replaced = history.replaced.get(key, {})
            # What a client of the member runs is not reported; take it as ready.
            _admit(state, workload, history.ages.get(key, []), workload.pending)


def restore_workloads(
    state: MemberState, history: History, templates: Mapping[str, Template], at_ms: int
) -> None:
    """Restore the workloads of a history; those without a change to report are not ``dirty``."""
    for key, past in sorted(history.workloads.items(), key=_is_after_quotas):
        report = history.reports.get(key)
        if past.applied is not None:
            template = templates.get(key, EMPTY)
            retained = _retained(past, history.running.get(key)) if template.retains else None
            _restore_workload(state, past, past.applied, report, template, at_ms, retained=retained)
            state.workloads[key].replaced = history.replaced.get(key, {})
        elif past.newest is not None and not past.removed:
            _restore_refusal(state, past, past.newest, report)
        if past.removed:
            _restore_removal(state, key, past, report)
        if past.conflict is not None:
            state.conflicts[key] = Conflict(past.conflict, templates.get(key, EMPTY), past.cause)
    if state.budgets is None:
        # A report of a budget follows from those of other workloads.
        for key in [key for key in state.dirty if reports.is_current(state, key)]:
            del state.dirty[key]


def _is_after_quotas(entry: tuple[str, WorkloadHistory]) -> bool:
    _, past = entry
    return past.applied is None or past.applied.template.kind != quota_manifests.KIND


def _restore_workload(
    state: MemberState,
    past: WorkloadHistory,
    applied: works.WorkApplied,
    report: Report | None,
    template: Template,
    at_ms: int,
    *,
    retained: int | None,
) -> None:
    newest = past.newest or applied
    count = replicas.desired(state, applied.template, applied.replicas, template)
    workload = Workload(
        key=applied.key,
        ref=applied.template,
        version=(newest.term, newest.step),
        known=past.known,
        created_ms=past.created_ms,
        digest=applied.digest,
        generation=1,
        shard=applied.shard,
        offset=applied.offset,
        replicas=count,
        desired=count,
        overrides=applied.overrides,
        completions=None if applied.overrides else applied.completions,
        labels=tuple(sorted(applied.labels.items())),
        reading=newest.reading,
        template=template,
        fault=past.fault,
        suspended=past.suspended,
        preserved=past.preserved,
        cause=past.cause,
        uid=past.uid,
    )
    if count is not None and retained is not None:
        workload.replicas = retained
    workload.kept = unmanaged.retained(workload, structs.replace(past.kept, replicas=None), template)
    state.workloads[applied.key] = workload
    cluster.record_priority_class(state, workload)
    served_kinds.record(state, workload)
    disruption_budgets.record(state, workload)
    state.dirty[applied.key] = None
    if isinstance(report, health.WorkloadReported):
        workload.reported = report
        is_newer = not past.fault and (report.term, report.step) != workload.version
        workload.generation = max(report.generation + is_newer, 1)
        ready = report.ready
        workload.succeeded, workload.ended_ms = _ended(report)
    else:
        # A preserved workload stopped reporting when it was given up; take it as ready.
        ready = (count or 0) if past.preserved else 0
    count = workload.replicas or 0
    if isinstance(report, health.WorkloadReported) and quotas.is_limited(state, workload.ref.namespace):
        count = min(count, report.replicas)
    replicas.run(state, workload, count, template, at_ms)
    if count < (workload.replicas or 0):
        quotas.defer(state, workload)
    _admit(state, workload, past.ages, ready)


def _retained(past: WorkloadHistory, last: tuple[int, health.WorkloadReported] | None) -> int | None:
    """Return the replicas that a member decided on: the last that were reported, or edited after that."""
    number, report = last or (0, None)
    if past.kept.replicas is not None and past.edited > number:
        return past.kept.replicas
    return report.replicas if report is not None and (report.term, report.step) >= past.first else None


def _ended(report: health.WorkloadReported) -> tuple[int, int]:
    """Return how many pods of a Job have succeeded, and when it was complete (0: not yet)."""
    count, time = report.values.get(_SUCCEEDED, ""), report.values.get(job_statuses.COMPLETED, "")
    try:
        return int(count) if count.isdecimal() else 0, times.from_text(time) if time else 0
    except ValueError:
        return 0, 0


def _admit(state: MemberState, workload: Workload, ages: list[tuple[int, int]], ready: int) -> None:
    """Admit the oldest ``ready`` replicas of a workload, as far as they fit; in a modelled cluster all of them."""
    ready = min(ready, workload.pending)
    if not state.spec.modelled:
        ready = simulation_capacity.replicas_that_fit(state.capacity, workload.template.amounts, ready)
    started = [*ages, (ready - sum(count for count, _ in ages), workload.created_ms)]
    for count, created_ms in started:
        running = min(count, ready)
        ready -= running
        if running > 0:
            ready_ms = created_ms + (state.spec.startup_ms if workload.template.run_ms else 0)
            replicas.admit(state, workload, Cohort(running, created_ms, ready_ms, running=True))


def _restore_refusal(
    state: MemberState, past: WorkloadHistory, newest: works.WorkApplied, report: Report | None
) -> None:
    cluster.apply_work(state, newest, past.created_ms, cause=past.cause, fault=past.fault)
    workload = state.refused[newest.key]
    workload.known = past.known
    workload.suspended = past.suspended
    if isinstance(report, health.WorkloadReported):
        workload.reported = report


def _restore_removal(state: MemberState, key: str, past: WorkloadHistory, report: Report | None) -> None:
    if not past.preserved:
        cluster.record_removal(state, key, past.known)
    reported = (report.term, report.step) if isinstance(report, health.WorkloadGone) else None
    if reported is None or reported < past.known:
        state.gone[key] = cluster.Gone(past.known, past.cause)
        state.dirty[key] = None


def _take_object(history: History, manifest: bytes, write: ObjectWrite) -> None:
    ref = objects.read(msgspec.Raw(manifest)).reference
    key = unmanaged.key_of(ref)
    past = history.workloads.get(key)
    if past is not None and past.applied is not None and not past.preserved:
        past.kept, past.edited = unmanaged.kept_in(manifest), write.number
        if past.kept.replicas is not None:
            _scale(past.ages, past.kept.replicas, write.at_ms)
        return
    old = history.unmanaged.get(key)
    if old is None and past is not None and past.applied is not None:
        old = Unmanaged(ref=ref, manifest=b"{}", uid=past.uid, created_ms=past.created_ms, digest="")
        history.ages[key], past.applied, past.preserved = past.ages, None, False
        past.uid, past.kept = "", Kept()
    history.unmanaged[key] = unmanaged.revised(old, manifest, write.uid, write.at_ms)
    _scale(history.ages.setdefault(key, []), unmanaged.replicas_of(ref, manifest) or 0, write.at_ms)


def _take_deletion(history: History, ref: shapes.WorkloadRef, at_ms: int) -> None:
    key = unmanaged.key_of(ref)
    past = history.workloads.get(key)
    if past is not None and past.applied is not None and not past.preserved:
        past.created_ms, past.uid, past.kept = at_ms, "", Kept()
        past.ages = [(past.applied.replicas or 0, at_ms)]
        return
    if past is not None and past.preserved:
        past.applied, past.preserved = None, False
    for each in (key, *unmanaged.contained(history.unmanaged, ref)):
        history.replaced.pop(each, None)
        history.unmanaged.pop(each, None)
        history.ages.pop(each, None)
        waiting = history.workloads.get(each)
        if waiting is not None and waiting.conflict is not None:
            take_work(history, waiting.conflict, at_ms, waiting.cause)


def _forget_slots(history: History, key: str) -> None:
    """Forget the slots of a removed workload; an unmanaged object of its key keeps its own."""
    if key not in history.unmanaged:
        history.replaced.pop(key, None)


def _take_pod_deletion(history: History, key: str, slot: int, at_ms: int) -> None:
    past = history.workloads.get(key)
    ages = history.ages.get(key, past.ages if past is not None else [])
    replaced = history.replaced.setdefault(key, {})
    order = list(replicas.slots(replaced, sum(count for count, _ in ages)))
    replicas.count_replacement(replaced, slot)
    place = order.index(slot) if slot in order else len(order)
    for index, (count, created_ms) in enumerate(ages):
        if place < count:
            ages[index] = count - 1, created_ms
            ages.append((1, at_ms))
            return
        place -= count


def _scale(ages: list[tuple[int, int]], replicas: int, at_ms: int) -> None:
    """Bring groups of (count, created_ms) to a total; the youngest are removed first."""
    total = sum(count for count, _ in ages)
    if replicas > total:
        ages.append((replicas - total, at_ms))
    while total > replicas:
        count, created_ms = ages.pop()
        remaining = max(count - (total - replicas), 0)
        total -= count - remaining
        if remaining:
            ages.append((remaining, created_ms))
