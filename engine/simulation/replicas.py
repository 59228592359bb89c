"""Create, admit and remove replicas of a workload in a member; the youngest are removed first."""

import heapq

from engine.shared_values import shared
from engine.simulation import (
    autoscaler_index,
    capacity,
    cohorts,
    cron_jobs,
    disruption_budgets,
    owner_index,
    quotas,
    rollouts,
)
from engine.simulation.state import NEVER_MS, PODS_MAX, Cohort, Former, MemberState, Source, Workload
from engine.works.strategies import Strategy
from engine.works.templates import COUNTED_BY_MEMBERS, DEFINITION, PRIORITY_CLASS, Template
from events import shapes


def run(
    state: MemberState,
    workload: Workload,
    replicas: int,
    template: Template,
    at_ms: int,
    source: Source | None = None,
) -> None:
    """Run this many replicas of a pod template; if it has changed, the workload's strategy decides how it rolls out.

    ``source`` is the new source of the template; None keeps the current one.
    """
    if template.digest != workload.template.digest:
        _begin_rollout(state, workload, template, at_ms)
    disruption_budgets.forget(state, workload)
    workload.template = template
    workload.source = source or workload.source
    disruption_budgets.record(state, workload)
    record_content(state, workload.object_key, workload.ref, template)
    owner_index.touch(state, workload.object_key)
    cron_jobs.follow(state, workload, at_ms)
    if workload.former_pods:
        proceed(state, workload, replicas, at_ms)
        return
    replicas = min(replicas, still_to_run(workload, replicas), PODS_MAX)
    missing = replicas - workload.admitted - workload.pending
    if missing > 0:
        add_replicas(state, workload, missing, at_ms)
    else:
        quotas.clear_refused(state, workload)
    if missing < 0:
        shrink(state, workload, -missing)


def record_content(state: MemberState, key: str, ref: shapes.WorkloadRef, template: Template) -> None:
    """Record an object that acts on others: an autoscaler, a quota, a definition of kinds, or a priority class."""
    autoscaler_index.record(state, key, ref.namespace, template.scaler)
    quotas.record(state, key, ref, template.quota)
    if ref.kind == DEFINITION:
        state.definitions[key] = template.served
    if template.rank is not None:
        state.ranks[ref.name] = template.rank
        state.capacity_freed = True


def _begin_rollout(state: MemberState, workload: Workload, template: Template, at_ms: int) -> None:
    """For a rolling update, keep the ready replicas and remove the others; otherwise remove all replicas."""
    disruption_budgets.touch(state, workload)
    workload.succeeded = 0
    strategy = template.strategy
    # All replicas of a workload have one priority, so another priority class replaces all of them at once.
    is_ranked_anew = template.priority_class != workload.template.priority_class
    if strategy is None or strategy.is_recreating or is_ranked_anew or not workload.ready:
        shrink(state, workload, workload.admitted + workload.pending)
        return
    slots = list(rollouts.current_slots(workload))
    shrink(state, workload, workload.pending)
    kept = slots[: workload.admitted - workload.outdated]
    for position in reversed(range(workload.outdated, workload.admitted)):
        if not workload.cohorts[cohorts.index_at(workload.cohorts, position)].running:
            del kept[position - workload.outdated]
            drop_at(state, workload, position)
    if kept:
        former = Former(workload.template, kept, dict(workload.replaced), workload.source)
        workload.former_pods = (*workload.former_pods, former)
        state.rolling[workload.key] = None
    _reuse_former_replicas(workload, template)
    workload.progress_ms, workload.is_stalled = at_ms, False
    heapq.heappush(state.starts, (at_ms + strategy.deadline_s * 1000, workload.key))


def _reuse_former_replicas(workload: Workload, template: Template) -> None:
    """If ``template`` equals a former pod template, count that template's replicas as current again."""
    position = 0
    for former in workload.former_pods:
        if former.template.digest == template.digest:
            workload.cohorts = cohorts.moved_last(workload.cohorts, position, len(former.slots))
            workload.former_pods = tuple(other for other in workload.former_pods if other is not former)
            if not rollouts.is_ordered(workload):
                workload.replaced = former.replaced
            return
        position += len(former.slots)


def proceed(state: MemberState, workload: Workload, replicas: int, at_ms: int) -> None:
    """Take the steps of a rollout that are possible now."""
    strategy, replicas = workload.template.strategy, min(replicas, PODS_MAX)
    if strategy is None:
        return
    if rollouts.is_ordered(workload):
        _proceed_in_order(state, workload, strategy, replicas, at_ms)
        return
    while True:
        step = rollouts.next_step(workload, strategy, replicas)
        if step.created > 0:
            add_replicas(state, workload, step.created, at_ms)
        elif step.created < 0:
            shrink(state, workload, -step.created)
        removed = step.removed
        while removed:
            removed -= _drop_youngest(state, workload, len(workload.former_pods[0].slots), removed)
        if not step.removed:
            return


def _proceed_in_order(
    state: MemberState, workload: Workload, strategy: Strategy, replicas: int, at_ms: int
) -> None:
    """Scale the workload, then replace its outdated pods from the highest slot downwards."""
    count = workload.admitted + workload.pending
    for slot in range(count, replicas):
        rollouts.replaced_pods(workload).setdefault(slot, 0)
    if count < replicas:
        add_replicas(state, workload, replicas - count, at_ms)
    elif count > replicas:
        shrink(state, workload, count - replicas)
    while (slot := rollouts.next_slot(workload, strategy, replicas)) is not None:
        _replace_slot(state, workload, slot, at_ms)


def remove_former_replica(state: MemberState, workload: Workload, at_ms: int) -> bool:
    """Remove a replica of a former pod template to free capacity for pending ones; return whether one was removed.

    Kubernetes would wait until capacity is freed. Here the rollout must end, because a member that is rebuilt from
    the log has completed its rollouts.
    """
    strategy = workload.template.strategy
    is_paused = strategy is not None and strategy.is_paused
    if is_paused or not workload.former_pods or not all(cohort.running for cohort in workload.cohorts):
        return False
    if strategy is None or not rollouts.is_ordered(workload):
        _drop_youngest(state, workload, len(workload.former_pods[0].slots), 1)
        return True
    slot = rollouts.last_slot(workload)
    if slot < strategy.partition:
        return False
    _replace_slot(state, workload, slot, at_ms)
    return True


def _replace_slot(state: MemberState, workload: Workload, slot: int, at_ms: int) -> None:
    drop_at(state, workload, rollouts.former_position(workload, slot))
    replaced = rollouts.replaced_pods(workload)
    replaced[slot] = replaced.pop(slot, 0)
    add_replicas(state, workload, 1, at_ms)


def drop_at(state: MemberState, workload: Workload, position: int, count: int = 1) -> int:
    """Remove ``count`` admitted replicas, all of one cohort, beginning at a position; return ``count``."""
    template, index = rollouts.template_at(workload, position), cohorts.index_at(workload.cohorts, position)
    cohort = workload.cohorts[index]
    capacity.add(
        state.capacity.running if cohort.running else state.capacity.starting, template.amounts, -count
    )
    workload.cohorts = cohorts.without(workload.cohorts, index, count)
    for former in workload.former_pods:
        if position < len(former.slots):
            del former.slots[position : position + count]
            break
        position -= len(former.slots)
    workload.former_pods = tuple(former for former in workload.former_pods if former.slots)
    quotas.count(state, workload.ref.namespace, template, -count)
    disruption_budgets.touch(state, workload)
    state.capacity_changed = state.capacity_freed = True
    return count


def desired(state: MemberState, ref: shapes.WorkloadRef, count: int | None, template: Template) -> int | None:
    """Return the number of replicas of an object in a member.

    ``count`` is the number that its work assigns, None if it assigns none.
    """
    if count is not None or ref.kind not in COUNTED_BY_MEMBERS:
        return count
    if ref.kind == "DaemonSet":
        return state.spec.node_count
    return max(template.count, 0)


def completions(workload: Workload) -> int:
    """Return how many pods of a Job must succeed in this cluster: a share if the Job is divided over clusters."""
    if workload.completions is not None:
        return workload.completions
    total, parallelism = workload.template.completions, workload.replicas or 0
    return parallelism if total is None else -(-total * parallelism // max(workload.template.count, 1))


def still_to_run(workload: Workload, replicas: int) -> int:
    """Return how many more pods a Job runs until it is complete or suspended; ``replicas`` for other workloads."""
    if workload.template.is_suspended:
        return 0
    return completions(workload) - workload.succeeded if workload.template.run_ms else replicas


def finish(state: MemberState, workload: Workload, at_ms: int) -> None:
    """End the pods of a Job whose running time is over, and create those that must still run.

    In a modelled cluster no Job ends, since nothing is known about how long it runs.
    """
    run_ms = workload.template.run_ms
    ended = [cohort for cohort in workload.cohorts if cohort.running and cohort.ready_ms + run_ms <= at_ms]
    if not run_ms or not ended or state.spec.modelled:
        return
    workload.cohorts = tuple(cohort for cohort in workload.cohorts if cohort not in ended)
    for cohort in ended:
        capacity.add(state.capacity.running, workload.template.amounts, -cohort.count)
        workload.succeeded += cohort.count
        quotas.count(state, workload.ref.namespace, workload.template, -cohort.count)
        workload.ended_ms = cohort.ready_ms + run_ms
    state.capacity_changed = state.capacity_freed = True
    run(state, workload, workload.replicas or 0, workload.template, at_ms)


def discard(state: MemberState, workload: Workload) -> None:
    """Remove a workload with its replicas, and its object from the member's indexes."""
    shrink(state, workload, workload.admitted + workload.pending)
    del state.workloads[workload.key]
    key, ref = workload.object_key, workload.ref
    state.definitions.pop(key, None)
    disruption_budgets.forget(state, workload)
    autoscaler_index.forget(state, key)
    owner_index.touch(state, key)
    quotas.forget(state, key, ref.namespace)
    quotas.touch(state, ref.namespace)
    if ref.kind == PRIORITY_CLASS:
        state.ranks.pop(ref.name, None)


def restart(state: MemberState, workload: Workload, count: int, at_ms: int) -> None:
    """Replace all replicas of a workload by ``count`` new ones."""
    count = min(count, PODS_MAX)
    shrink(state, workload, workload.admitted + workload.pending)
    workload.succeeded = 0
    if count:
        add_replicas(state, workload, count, at_ms)


def replace(state: MemberState, workload: Workload, slot: int, at_ms: int) -> None:
    """Replace the replica in a slot by a new one; do nothing if the slot is empty or its replica has ended."""
    position = _position(workload, slot)
    if position < 0:
        return
    if slot < rollouts.FORMER_SLOTS:
        rollouts.count_replacement(rollouts.replaced_pods(workload), slot)
    owner_index.touch(state, workload.object_key)
    if position >= workload.admitted:
        workload.pending_since_ms = at_ms
        return
    drop_at(state, workload, position)
    if workload.former_pods:
        proceed(state, workload, workload.replicas or 0, at_ms)
    else:
        add_replicas(state, workload, 1, at_ms)


def _position(workload: Workload, slot: int) -> int:
    """Return the position of the replica in a slot, -1 if there is none; ``rollouts.groups`` numbers the slots."""
    if slot >= rollouts.FORMER_SLOTS:
        index, own = slot // rollouts.FORMER_SLOTS - 1, slot % rollouts.FORMER_SLOTS
        slots = workload.former_pods[index].slots if index < len(workload.former_pods) else []
        before = sum(len(former.slots) for former in workload.former_pods[:index])
        return before + slots.index(own) if own in slots else -1
    if rollouts.is_ordered(workload) and (position := rollouts.former_position(workload, slot)) >= 0:
        return position
    order = list(rollouts.current_slots(workload))
    index = order.index(slot) - workload.succeeded if slot in order else -1
    return workload.outdated + index if index >= 0 else -1


def add_replicas(state: MemberState, workload: Workload, count: int, at_ms: int) -> None:
    """Create up to ``count`` more replicas of a workload, as many as quotas allow; they wait for capacity."""
    _create(state, workload, quotas.allowed(state, workload, count), at_ms)


def restore(state: MemberState, workload: Workload, count: int, at_ms: int) -> None:
    """Create replicas until ``count`` exist, as before a restart; quotas do not refuse them again."""
    count = min(count, still_to_run(workload, count), PODS_MAX)
    _create(state, workload, max(count - workload.admitted - workload.pending, 0), at_ms)
    quotas.clear_refused(state, workload)


def _create(state: MemberState, workload: Workload, count: int, at_ms: int) -> None:
    quotas.count(state, workload.ref.namespace, workload.template, count)
    workload.pending += count
    workload.pending_since_ms = at_ms
    state.is_ranked = state.is_ranked or bool(workload.template.priority_class)
    capacity.add(state.capacity.pending, workload.template.amounts, count)
    state.capacity_changed = True
    state.unplaced[workload.key] = None


def admit(state: MemberState, workload: Workload, cohort: Cohort) -> None:
    """Admit a cohort of pending replicas; it must fit into the free capacity."""
    amounts = workload.template.amounts
    workload.pending -= cohort.count
    workload.cohorts = shared((*workload.cohorts, cohort))
    capacity.add(state.capacity.pending, amounts, -cohort.count)
    if cohort.running:
        capacity.add(state.capacity.running, amounts, cohort.count)
        merge(workload)
    else:
        capacity.add(state.capacity.starting, amounts, cohort.count)
    _set_timers_of(state, workload, cohort)
    state.capacity_changed = True


def resume(state: MemberState, workload: Workload, ages: list[tuple[int, int]], ready: int) -> None:
    """Admit the oldest ``ready`` replicas of a workload and mark them as running, as they were before a restart.

    Only those that fit are admitted; in a modelled cluster all of them. ``ages`` are the (count, created_ms) of the
    replicas, oldest first.
    """
    ready = min(ready, workload.pending)
    if not state.spec.modelled:
        ready = capacity.replicas_that_fit(state.capacity, workload.template.amounts, ready)
    started = [*ages, (ready - sum(count for count, _ in ages), workload.created_ms)]
    for count, created_ms in started:
        running = min(count, ready)
        ready -= running
        if running > 0:
            ready_ms = created_ms + (state.spec.startup_ms if workload.template.run_ms else 0)
            admit(state, workload, Cohort(running, created_ms, ready_ms, running=True))


def set_timers(state: MemberState, workload: Workload) -> None:
    """Set the timers of a workload again, because its key has changed."""
    for cohort in workload.cohorts:
        _set_timers_of(state, workload, cohort)
    if workload.progress_ms:
        # The time is in the past, so the timer is due at once; `cluster` then sets the timer for the deadline.
        heapq.heappush(state.starts, (workload.progress_ms, workload.key))


def _set_timers_of(state: MemberState, workload: Workload, cohort: Cohort) -> None:
    """Set timers for the times at which an admitted cohort is ready and, in a Job, ends."""
    if cohort.ready_ms < NEVER_MS:
        if not cohort.running:
            heapq.heappush(state.starts, (cohort.ready_ms, workload.key))
        if workload.template.run_ms:
            heapq.heappush(state.starts, (cohort.ready_ms + workload.template.run_ms, workload.key))


def _drop_youngest(state: MemberState, workload: Workload, end: int, count: int) -> int:
    """Remove up to ``count`` of the replicas just before position ``end``, all from one cohort; return their number."""
    before = 0
    for cohort in workload.cohorts:
        if before + cohort.count >= end:
            break
        before += cohort.count
    dropped = min(count, end - before)
    return drop_at(state, workload, end - dropped, dropped)


def shrink(state: MemberState, workload: Workload, count: int) -> None:
    """Remove the ``count`` youngest replicas, or all if there are fewer."""
    count = min(count, workload.admitted + workload.pending)
    if not count:
        return
    disruption_budgets.touch(state, workload)
    dropped = min(count, workload.pending)
    workload.pending -= dropped
    capacity.add(state.capacity.pending, workload.template.amounts, -dropped)
    quotas.count(state, workload.ref.namespace, workload.template, -dropped)
    count -= dropped
    while count:
        count -= _drop_youngest(state, workload, workload.admitted, count)
    state.capacity_changed = True


def end_rollout(state: MemberState, workload: Workload) -> None:
    """Remove the replicas of former pod templates."""
    while workload.former_pods:
        _drop_youngest(state, workload, workload.outdated, workload.outdated)


def merge(workload: Workload) -> None:
    # During a rollout do not merge: a cohort must not contain replicas of different pod templates.
    if not workload.former_pods:
        workload.cohorts = cohorts.merged(workload.cohorts)
