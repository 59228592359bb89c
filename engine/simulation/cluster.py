"""A member cluster as a pure state machine: works and time go in, reports come out.

It uses no clock and no randomness, so equal inputs give equal reports. Replicas are admitted by priority,
then in the order of their creation, while capacity is free, and are ready one start-up time later. Scaling
down removes the youngest replicas first. A changed pod template replaces the replicas by the strategy of the
workload (``rollouts``).
"""

import heapq

from engine.domain import marks
from engine.shared_values import shared
from engine.simulation import (
    autoscaling,
    capacity,
    cohorts,
    cron_jobs,
    garbage_collection,
    kept_fields,
    nodes,
    pod_priorities,
    quotas,
    replicas,
    reports,
    unmanaged,
)
from engine.simulation.state import (
    NEVER_MS,
    TOMBSTONES_MAX,
    Cohort,
    Conflict,
    MemberState,
    PendingRemoval,
    ReportCause,
    Source,
    Unmanaged,
    Version,
    Workload,
)
from engine.works.templates import EMPTY, Template
from events import clusters, shapes, works


def apply_work(
    state: MemberState,
    work: works.Work,
    at_ms: int,
    *,
    template: Template = EMPTY,
    cause: ReportCause = reports.NO_WORK,
    fault: str = "",
) -> bool:
    """Apply a work; return False and change nothing if a newer work of the binding is known.

    ``template`` is the decoded template of a WorkApplied; other works do not use it. ``fault`` is the reason why a
    WorkApplied cannot be applied.
    """
    version = version_of(work)
    workload = state.workloads.get(work.key) or state.refused.get(work.key)
    newest = workload.known if workload else state.tombstones.get(work.key)
    if newest is not None and version < newest:
        return False
    match work:
        case works.WorkApplied() if fault:
            _refuse(state, workload, work, fault, at_ms, cause)
        case works.WorkApplied() if not unmanaged.take_over(state, work):
            state.conflicts[work.key] = Conflict(work, template, cause)
            _refuse(state, workload, work, marks.conflict(work.template, state.spec.name), at_ms, cause)
        case works.WorkApplied():
            _apply(state, work, template, at_ms, cause)
        case works.WorkRemoved(preserved=preserved):
            _remove(state, work.key, version, cause, preserved=preserved)
        case works.WorkSuspended():
            if workload is not None:
                workload.known = version
                workload.suspended = True
    return True


def advance(state: MemberState, at_ms: int) -> list[reports.Report]:
    """Advance the member to ``at_ms`` and return its reports.

    A member that is down does not advance; it catches up with time and works when it is healed.
    """
    if state.faults.cut_off:
        return reports.collect_health(state)
    _start_due(state, at_ms)
    for key in quotas.freed(state):
        if (workload := state.workloads.get(key)) is not None:
            replicas.run(state, workload, workload.replicas or 0, workload.template, at_ms)
            state.dirty[key] = None
    while rolling := _admit(state, at_ms):
        for workload in rolling:
            replicas.proceed(state, workload, workload.replicas or 0, at_ms)
    return reports.collect(state, at_ms)


def controller_writes(state: MemberState, at_ms: int) -> list[clusters.MemberWrite]:
    """Return the writes of the member's controllers since the last call.

    Controllers write nothing while the member is cut off, and in a ``modelled`` cluster. The caller records their
    writes like those of clients, so that the log contains the decisions of the controllers.
    """
    if state.faults.cut_off or state.spec.modelled:
        return []
    return [*autoscaling.writes(state, at_ms), *garbage_collection.writes(state, at_ms)]


def delete_object(state: MemberState, write: clusters.MemberObjectDeleted, at_ms: int) -> None:
    """Delete an object for a client of the member; a work that was in conflict with it is applied now."""
    for conflict in unmanaged.delete(state, write.object, at_ms, keeps_pods=write.orphans):
        apply_work(state, conflict.work, at_ms, template=conflict.template, cause=conflict.cause)


def delete_pod(state: MemberState, owner: shapes.WorkloadRef, slot: int, at_ms: int) -> None:
    """Delete a pod of a workload for a client of the member; a new one takes its slot."""
    key = owner.binding_key
    workload = unmanaged.running(state, key) or state.workloads.get(key)
    if workload is not None:
        replicas.replace(state, workload, slot, at_ms)
        state.dirty[workload.key] = None


def due_ms(state: MemberState) -> int | None:
    """Return the time of the member's next change without an input, in milliseconds; None for never."""
    if state.faults.cut_off:
        return None
    dues = [state.starts[0][0]] if state.starts else []
    dues += [due for due in (state.retry_ms, state.shift_ms) if due is not None]
    return min(dues, default=None)


def is_behind(state: MemberState) -> bool:
    """Whether the last turn left reports for the next one."""
    return bool(state.dirty) and not state.faults.cut_off


def _apply(
    state: MemberState,
    work: works.WorkApplied,
    template: Template,
    at_ms: int,
    cause: ReportCause,
) -> None:
    version = version_of(work)
    workload = state.workloads.get(work.key)
    pods: list[Unmanaged] = []
    if workload is None:
        workload = Workload(key=work.key, ref=work.template, version=version, known=version, created_ms=at_ms)
        pods = unmanaged.orphans_of(state, work.key)
        unmanaged.take_orphans(state, workload)
        state.workloads[work.key] = workload
        quotas.touch(state, work.template.namespace)
    count = replicas.desired(state, work.template, work.replicas, template)
    state.refused.pop(work.key, None)
    if (workload.digest, workload.desired, workload.source.overrides) != (work.digest, count, work.overrides):
        workload.generation += 1
    workload.version = workload.known = version
    workload.digest, workload.ref, workload.cause = work.digest, work.template, cause
    workload.desired = count
    workload.kept = kept_fields.retained(workload, workload.kept, template)
    workload.replicas = workload.desired if workload.kept.replicas is None else workload.kept.replicas
    workload.fault = ""
    workload.completions = completions_of(work, template)
    workload.suspended = workload.preserved = False
    state.tombstones.pop(work.key, None)
    state.gone.pop(work.key, None)
    source = source_of(work, work.reading)
    replicas.run(state, workload, workload.replicas or 0, template, at_ms, source)
    unmanaged.resume_orphans(state, workload, pods)
    state.dirty[work.key] = None


def version_of(work: works.Work) -> Version:
    """Return the version of a work; all works of a step have the same one."""
    return shared((work.term, work.step))


def source_of(work: works.WorkApplied, reading: shapes.Reading | None) -> Source:
    """Return the source of a work's manifest; the members of a binding share equal sources, to save memory."""
    labels = tuple(sorted(work.labels.items()))
    return shared(Source(work.shard, work.offset, work.overrides, labels, reading))


def completions_of(work: works.WorkApplied, template: Template) -> int | None:
    """Return the cluster's share of a Job's completions from its work; None if the work has no share.

    If the work has overrides, return the completions in its rendered ``template``, which may be overridden.
    """
    return template.completions if work.overrides and work.completions is not None else work.completions


def _refuse(
    state: MemberState,
    workload: Workload | None,
    work: works.WorkApplied,
    fault: str,
    at_ms: int,
    cause: ReportCause,
) -> None:
    """Record a work that cannot be applied; the work that was applied before it continues to run."""
    version = version_of(work)
    if workload is None:
        workload = Workload(key=work.key, ref=work.template, version=version, known=version, created_ms=at_ms)
        state.refused[work.key] = workload
    workload.version = workload.known = version
    workload.fault, workload.cause = fault, cause
    workload.suspended = workload.preserved = False
    state.tombstones.pop(work.key, None)
    state.gone.pop(work.key, None)
    state.dirty[work.key] = None


def _remove(state: MemberState, key: str, version: Version, cause: ReportCause, *, preserved: bool) -> None:
    workload = state.workloads.get(key)
    state.refused.pop(key, None)
    state.conflicts.pop(key, None)
    if preserved and workload is not None:
        workload.known = version
        workload.preserved = True
        workload.reported = None
    else:
        if workload is not None:
            replicas.discard(state, workload)
        record_removal(state, key, version)
    state.gone[key] = PendingRemoval(version, cause)
    state.dirty[key] = None


def record_removal(state: MemberState, key: str, version: Version) -> None:
    """Remember the version of a removal, so that an older work does not bring the workload back."""
    state.tombstones.pop(key, None)
    state.tombstones[key] = version
    if len(state.tombstones) > TOMBSTONES_MAX:
        del state.tombstones[next(iter(state.tombstones))]


def _start_due(state: MemberState, at_ms: int) -> None:
    starts = state.starts
    while starts and starts[0][0] <= at_ms:
        _, key = heapq.heappop(starts)
        workload = state.workloads.get(key)
        if workload is None:
            continue
        has_progressed = _start(state, workload, at_ms)
        replicas.merge(workload)
        replicas.finish(state, workload, at_ms)
        _follow_rollout(state, workload, at_ms, has_progressed=has_progressed)
        cron_jobs.follow(state, workload, at_ms)
        state.dirty[key] = None


def _start(state: MemberState, workload: Workload, at_ms: int) -> bool:
    """Mark replicas as running once their start-up time is over; return whether any were marked."""
    due = [cohort for cohort in workload.cohorts if cohorts.is_due(cohort, at_ms)]
    for cohort in due:
        capacity.add(state.capacity.starting, workload.template.amounts, -cohort.count)
        capacity.add(state.capacity.running, workload.template.amounts, cohort.count)
    if due:
        workload.cohorts = cohorts.started(workload.cohorts, at_ms)
        state.capacity_changed = True
    return bool(due)


def _follow_rollout(state: MemberState, workload: Workload, at_ms: int, *, has_progressed: bool) -> None:
    """Continue a rollout if replicas became ready (``has_progressed``).

    Otherwise mark it as stalled once its progress deadline has passed.
    """
    strategy = workload.template.strategy
    if strategy is None or not workload.progress_ms:
        return
    if has_progressed:
        workload.progress_ms, workload.is_stalled = at_ms, False
        replicas.proceed(state, workload, workload.replicas or 0, at_ms)
    elif workload.updated < (workload.replicas or 0) or workload.ready < workload.admitted + workload.pending:
        due_ms = workload.progress_ms + strategy.deadline_s * 1000
        workload.is_stalled = workload.is_stalled or due_ms <= at_ms
        if not workload.is_stalled:
            heapq.heappush(state.starts, (due_ms, workload.key))


def _admit(state: MemberState, at_ms: int) -> list[Workload]:
    """Admit pending replicas: first those that waited already, if capacity was freed, then new ones.

    Return the workloads whose rollouts can continue, because replicas are ready at once or a replica of a former pod
    template was removed.
    """
    rolling: list[Workload] = []
    # Sorted, so that the outcome does not depend on the order in which works of different shards are read.
    created = sorted(state.unplaced, key=lambda key: _age(state, key))
    keys = [*state.waiting, *created] if state.capacity_freed else created
    state.capacity_freed = False
    state.unplaced.clear()
    is_ranked = pod_priorities.is_used(state)
    if is_ranked:
        keys = pod_priorities.by_priority(state, keys)
    ready_ms = at_ms + state.spec.startup_ms * state.faults.slowness
    for key in keys:
        workload = state.workloads.get(key)
        if workload is None or not workload.pending:
            state.waiting.pop(key, None)
            continue
        if nodes.all_refuse(state, workload):
            state.waiting[key] = None
            continue
        count = capacity.replicas_that_fit(state.capacity, workload.template.amounts, workload.pending)
        if is_ranked:
            count = _count_by_priority(state, workload, count, at_ms)
        if count:
            start_ms = NEVER_MS if workload.template.lacks_image else ready_ms
            cohort = Cohort(count, workload.pending_since_ms, start_ms, running=start_ms <= at_ms)
            replicas.admit(state, workload, cohort)
            if cohort.running and workload.former_pods:
                rolling.append(workload)
            state.dirty[key] = None
        if workload.pending:
            state.waiting[key] = None
            if replicas.remove_former_replica(state, workload, at_ms):
                rolling.append(workload)
        else:
            state.waiting.pop(key, None)
    return rolling


def _age(state: MemberState, key: str) -> tuple[int, str]:
    workload = state.workloads.get(key)
    return (0 if workload is None else workload.pending_since_ms), key


def _count_by_priority(state: MemberState, workload: Workload, count: int, at_ms: int) -> int:
    """Return how many pending replicas to admit; without preemption, ``count`` of them fit.

    If some do not fit and the priority class allows it, preempt replicas of other workloads. Admit none if the class
    does not exist.
    """
    rank = pod_priorities.rank_of(state, workload)
    if rank is None:
        return 0
    return (
        pod_priorities.preempt_pods(state, workload, rank, at_ms)
        if count < workload.pending and rank.preempts
        else count
    )
