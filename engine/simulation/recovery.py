"""Restore a member after a restart, from its works and its own reports.

The newest work of each workload says what runs, the last report how many replicas were ready. Those keep
running; the others start now. Nothing is reported that the log has already. Exact ages of replicas survive
scaling, but not a change of the pod template.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from engine.simulation import capacity as simulation_capacity
from engine.simulation import cluster
from engine.simulation.state import Cohort, MemberState, ReportCause, Version, Workload
from engine.works.templates import EMPTY, Template
from events import clusters, health, works

Report = health.WorkloadReported | health.WorkloadGone


EARLIER_MAX: Final = 16
"""Number of earlier works kept per workload, in case newer ones could not be applied."""


class WorkloadHistory(Struct):
    """One workload according to the log: its newest work that may run, and the ages of its replicas.

    ``earlier`` holds the works before it, newest first, while it is unknown whether it could be applied.
    ``settle`` decides that before the workload is restored: then ``applied`` is the work that runs, if any,
    ``newest`` the last one, and ``fault`` the reason why that could not be applied.
    """

    known: Version
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


class History(Struct):
    """One member according to the log.

    ``down_since`` is the number of the record that reported it as down (0: it is up).
    """

    workloads: dict[str, WorkloadHistory] = {}
    reports: dict[str, Report] = {}
    joined: bool = False
    was_joined: bool = False
    ready: bool | None = None
    down_since: int = 0
    capacity: clusters.CapacityReported | None = None


def take_cluster(history: History, data: object, number: int) -> None:
    """Fold an event about the member's own cluster."""
    match data:
        case clusters.ClusterJoined():
            history.joined = history.was_joined = True
        case clusters.ClusterLeft():
            history.joined = False
            history.capacity = history.ready = None
        case clusters.CapacityReported() as report:
            history.capacity = report
        case clusters.ClusterHealthChanged(ready=ready):
            history.ready = ready
            history.down_since = 0 if ready else number
        case _:
            pass


def take_work(history: History, work: cluster.Work, at_ms: int, cause: ReportCause) -> None:
    """Fold one work of the member."""
    version = (work.term, work.step)
    past = history.workloads.get(work.key)
    if past is not None and version < past.known:
        return
    if past is None:
        past = history.workloads[work.key] = WorkloadHistory(version)
    past.known = version
    match work:
        case works.WorkApplied():
            if past.applied is None:
                past.created_ms = at_ms
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
            if not preserved:
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


def take_report(history: History, report: Report) -> None:
    """Fold one report of the member; the last one of a workload counts."""
    history.reports[report.key] = report


def restore(state: MemberState, history: History, templates: Mapping[str, Template], at_ms: int) -> None:
    """Restore a state from a history; ``templates`` by key, for workloads whose templates have content."""
    state.joined = history.joined
    state.reported_capacity = history.capacity
    state.reported_ready = history.ready
    state.faults.down = history.down_since > 0
    for key, past in history.workloads.items():
        report = history.reports.get(key)
        if past.applied is not None:
            _restore_workload(state, past, past.applied, report, templates.get(key, EMPTY), at_ms)
        elif past.newest is not None and not past.removed:
            _restore_refusal(state, past, past.newest, report)
        if past.removed:
            _restore_removal(state, key, past, report)


def _restore_workload(
    state: MemberState,
    past: WorkloadHistory,
    applied: works.WorkApplied,
    report: Report | None,
    template: Template,
    at_ms: int,
) -> None:
    newest = past.newest or applied
    workload = Workload(
        key=applied.key,
        ref=applied.template,
        version=(newest.term, newest.step),
        known=past.known,
        created_ms=past.created_ms,
        shard=applied.shard,
        offset=applied.offset,
        replicas=applied.replicas,
        overrides=applied.overrides,
        labels=tuple(sorted(applied.labels.items())),
        reading=newest.reading,
        template=template,
        fault=past.fault,
        suspended=past.suspended,
        preserved=past.preserved,
        cause=past.cause,
    )
    state.workloads[applied.key] = workload
    cluster.record_priority_class(state, workload)
    state.dirty[applied.key] = None
    if isinstance(report, health.WorkloadReported):
        workload.reported = report
        ready = report.ready
    else:
        # A preserved workload stopped reporting when it was given up; take it as ready.
        ready = (applied.replicas or 0) if past.preserved else 0
    cluster.add_replicas(state, workload, applied.replicas or 0, at_ms)
    ready = simulation_capacity.replicas_that_fit(
        state.capacity, template.amounts, min(ready, workload.pending)
    )
    for count, created_ms in past.ages:
        running = min(count, ready)
        ready -= running
        if running:
            cluster.admit(state, workload, Cohort(running, created_ms, created_ms, running=True))


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
