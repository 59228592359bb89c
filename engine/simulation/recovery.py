"""Restore a member after a restart, from its works and its own reports.

The newest work of each workload determines its content, the last report the number of ready replicas. Ready replicas
keep running; the others start now. Reports that the log contains are not sent again. Workloads of modelled clusters
are restored only when their next works arrive, so that a fork of the engine costs little.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from engine.simulation import (
    cluster,
    disruption_budgets,
    garbage_collection,
    kept_fields,
    member_history,
    orphans,
    pod_priorities,
    quotas,
    replicas,
    reports,
    unmanaged,
)
from engine.simulation.state import NOTHING_REPLACED, Conflict, MemberState, Workload
from engine.works import quotas as quota_manifests
from engine.works.template_loading import TemplateLoader, TemplatePosition
from engine.works.templates import EMPTY, Template
from events import health, job_statuses, status_values, times, works

_SUCCEEDED: Final = ".succeeded"


def restore(
    state: MemberState, history: member_history.History, templates: Mapping[str, Template], at_ms: int
) -> None:
    """Restore a state from a history; ``templates`` has all non-empty templates, by workload key."""
    state.joined = history.joined
    state.reported_capacity = history.capacity
    state.reported_ready = history.ready
    state.reported_apis = history.apis
    state.faults.unreachable = history.unreachable_since > 0
    state.faults.down = history.down_since > 0 and not state.faults.unreachable
    # Add all objects first, because the quotas, restored next, count the pods among them.
    state.unmanaged.update(history.unmanaged)
    for key, item in history.unmanaged.items():
        if item.ref.kind == quota_manifests.KIND:
            quotas.record(state, key, item.ref, quota_manifests.read(item.manifest))
    restore_workloads(state, history, templates, at_ms)
    for key, item in history.unmanaged.items():
        garbage_collection.record(state, key, item)
        orphans.record(state.orphans, key, item)
        workload = unmanaged.run(state, key, item, at_ms)
        if workload is not None:
            workload.replaced = history.replaced.get(key, NOTHING_REPLACED)
            # Unmanaged objects are not reported; assume that their replicas are ready.
            replicas.resume(state, workload, history.ages.get(key, []), workload.pending)


def restore_workloads(
    state: MemberState, history: member_history.History, templates: Mapping[str, Template], at_ms: int
) -> None:
    """Restore the workloads of a history; those that have nothing new to report do not become ``dirty``."""
    for key, past in sorted(history.workloads.items(), key=_is_after_quotas):
        report = history.reports.get(key)
        if past.applied is not None:
            template = templates.get(key, EMPTY)
            retained = _retained(past, history.running.get(key)) if template.retains else None
            _restore_workload(state, past, past.applied, report, template, at_ms, retained=retained)
            state.workloads[key].replaced = history.replaced.get(key, NOTHING_REPLACED)
        elif past.newest is not None and not past.removed:
            _restore_refusal(state, past, past.newest, report)
        if past.removed:
            _restore_removal(state, key, past, report)
        if past.conflict is not None:
            state.conflicts[key] = Conflict(past.conflict, templates.get(key, EMPTY), past.cause)
    if state.budgets is None:
        # With budgets all keys stay dirty, because the report of a budget depends on the pods of other
        # workloads.
        for key in [key for key in state.dirty if reports.is_current(state, key)]:
            del state.dirty[key]


def _is_after_quotas(entry: tuple[str, member_history.WorkloadHistory]) -> bool:
    _, past = entry
    return past.applied is None or past.applied.template.kind != quota_manifests.KIND


def _restore_workload(
    state: MemberState,
    past: member_history.WorkloadHistory,
    applied: works.WorkApplied,
    report: member_history.Report | None,
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
        version=cluster.version_of(newest),
        known=past.known,
        created_ms=past.created_ms,
        digest=applied.digest,
        generation=1,
        replicas=count,
        desired=count,
        completions=cluster.completions_of(applied, template),
        template=template,
        source=cluster.source_of(applied, newest.reading),
        fault=past.fault,
        suspended=past.suspended,
        preserved=past.preserved,
        cause=past.cause,
        uid=past.uid,
    )
    if count is not None and retained is not None:
        workload.replicas = retained
    workload.kept = kept_fields.retained(workload, kept_fields.with_replicas(past.kept, None), template)
    state.workloads[applied.key] = workload
    disruption_budgets.record(state, workload)
    state.dirty[applied.key] = None
    if isinstance(report, health.WorkloadReported):
        workload.reported = reports.fingerprint(report)
        is_newer = not past.fault and (report.term, report.step) != workload.version
        workload.generation = max(report.generation + is_newer, 1)
        ready = report.ready
        succeeded = report.values.get(_SUCCEEDED, "")
        workload.succeeded = int(succeeded) if succeeded.isdecimal() else 0
        workload.ended_ms = _time_in(report, job_statuses.COMPLETED, status_values.LAST_SUCCESSFUL)
        workload.scheduled_ms = _time_in(report, status_values.LAST_SCHEDULED)
    else:
        # Preserved workloads are no longer reported; assume that the replicas are ready.
        ready = (count or 0) if past.preserved else 0
    _run_existing(state, workload, report, template, at_ms)
    ages = member_history.ages_of(past, retains=template.retains)
    replicas.resume(state, workload, _ages_in_job(state, workload, ready, at_ms) or ages, ready)


def _ages_in_job(state: MemberState, workload: Workload, ready: int, at_ms: int) -> list[tuple[int, int]]:
    """Return the age of a Job's running pods, computed from the number of ended pods: pods run in equal batches.

    Empty if no pod has ended.
    """
    if not workload.succeeded:
        return []
    batch = workload.succeeded // max(workload.replicas or 0, 1)
    created_ms = workload.created_ms + batch * (state.spec.startup_ms + workload.template.run_ms)
    return [(ready, min(created_ms, at_ms))]


def _run_existing(
    state: MemberState,
    workload: Workload,
    report: member_history.Report | None,
    template: Template,
    at_ms: int,
) -> None:
    """Run the replicas that existed before the restart, and queue those that quotas had refused for another try."""
    count = workload.replicas or 0
    if isinstance(report, health.WorkloadReported) and quotas.is_limited(state, workload.ref.namespace):
        count = min(count, report.replicas)
    replicas.run(state, workload, count, template, at_ms)
    if isinstance(report, health.WorkloadReported) and quotas.has_refused_pods(state, workload):
        replicas.restore(state, workload, count, at_ms)
    if count < (workload.replicas or 0):
        quotas.queue_refused(state, workload)


def _retained(
    past: member_history.WorkloadHistory, last: tuple[int, health.WorkloadReported] | None
) -> int | None:
    """Return the number of replicas that the member decided: of a client's edit, or of a newer report of the member.

    None if there is neither such an edit nor a report on the present object.
    """
    number, report = last or (0, None)
    if past.kept.replicas is not None and past.edited > number:
        return past.kept.replicas
    return report.replicas if report is not None and (report.term, report.step) >= past.first else None


def _time_in(report: health.WorkloadReported, *paths: str) -> int:
    """Return the time at the first of these paths that the report has; 0 without any, or if it is malformed."""
    try:
        return next((times.from_text(report.values[path]) for path in paths if path in report.values), 0)
    except ValueError:
        return 0


def _restore_refusal(
    state: MemberState,
    past: member_history.WorkloadHistory,
    newest: works.WorkApplied,
    report: member_history.Report | None,
) -> None:
    cluster.apply_work(state, newest, past.created_ms, cause=past.cause, fault=past.fault)
    workload = state.refused[newest.key]
    workload.known = past.known
    workload.suspended = past.suspended
    if isinstance(report, health.WorkloadReported):
        workload.reported = reports.fingerprint(report)


def _restore_removal(
    state: MemberState, key: str, past: member_history.WorkloadHistory, report: member_history.Report | None
) -> None:
    if not past.preserved:
        cluster.record_removal(state, key, past.known)
    reported = (report.term, report.step) if isinstance(report, health.WorkloadGone) else None
    if reported is None or reported < past.known:
        state.gone[key] = cluster.PendingRemoval(past.known, past.cause)
        state.dirty[key] = None


class MemberWorkload(NamedTuple):
    """A workload to restore or look up: the name of its member, and its key."""

    member: str
    key: str


class UnrestoredWorkloads:
    """Workloads of all members that are restored only when their next works arrive."""

    def __init__(self, loader: TemplateLoader, histories: Mapping[str, member_history.History]) -> None:
        self._loader = loader
        self._unrestored = {
            name: history.unrestored for name, history in histories.items() if history.unrestored
        }

    async def restore(
        self, states: Mapping[str, MemberState], workloads: Iterable[MemberWorkload], at_ms: int
    ) -> None:
        """Restore the workloads in ``workloads`` that are not restored yet."""
        result: dict[str, member_history.History] = {}
        for member, key in workloads:
            unrestored = self._unrestored.get(member, {}).pop(key, None)
            if unrestored is not None:
                history = result.setdefault(member, member_history.History())
                history.workloads[key] = unrestored.history(member, key)
                if (report := unrestored.reported(member, key)) is not None:
                    history.reports[key] = report
        positions = {name: dict(member_history.positions(history)) for name, history in result.items()}
        loaded = await self._loader.load(
            position for needed in positions.values() for position in needed.values()
        )
        for name, history in result.items():
            _restore_keeping_capacity(states[name], history, positions[name], loaded, at_ms)

    async def restore_around(
        self,
        states: Mapping[str, MemberState],
        names: Collection[str],
        contents: Iterable[Template],
        at_ms: int,
    ) -> None:
        """Restore all workloads of those members in ``names`` in which some object acts on other workloads.

        Such objects are quotas, budgets, autoscalers and priority classes. If a template of a new work (``contents``)
        is one, restore the workloads of all members in ``names``.
        """
        if self._unrestored:
            gets = any(map(_acts_on_others, contents))
            acted_on = [name for name in names if gets or _has_object_acting_on_others(states[name])]
            await self.restore_all(states, acted_on, at_ms)

    async def restore_all(self, states: Mapping[str, MemberState], names: Iterable[str], at_ms: int) -> None:
        """Restore all workloads of some members."""
        workloads = [MemberWorkload(name, key) for name in names for key in self._unrestored.get(name, ())]
        await self.restore(states, workloads, at_ms)


def running_templates(
    states: Mapping[str, MemberState], workloads: Iterable[MemberWorkload]
) -> dict[TemplatePosition, Template]:
    """Return the templates that these workloads run, by position, so that they need not be read from the log again."""
    running = (states[member].workloads.get(key) for member, key in workloads)
    return {
        (workload.source.shard, workload.source.offset): workload.template
        for workload in running
        if workload is not None and workload.template is not EMPTY and not workload.source.overrides
    }


def _acts_on_others(template: Template) -> bool:
    """Whether an object affects pods of other workloads in its cluster, or its own pods may preempt such pods."""
    of_others = template.rank, template.budget, template.scaler, template.quota
    return bool(template.priority_class) or any(template is not None for template in of_others)


def _has_object_acting_on_others(state: MemberState) -> bool:
    return bool(state.quotas or state.scalers) or state.budgets is not None or pod_priorities.is_used(state)


def _restore_keeping_capacity(
    state: MemberState,
    history: member_history.History,
    positions: Mapping[str, TemplatePosition],
    loaded: Mapping[TemplatePosition, Template],
    at_ms: int,
) -> None:
    sums, is_changed = dict(state.capacity.running), state.capacity_changed
    templates = {key: loaded[position] for key, position in positions.items()}
    restore_workloads(state, history, templates, at_ms)
    # The capacity that the cluster reported already includes the use of these replicas.
    state.capacity.running = sums
    state.capacity_changed = is_changed
