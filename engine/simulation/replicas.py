"""Replicas of a workload in a member: created, admitted to the free capacity, removed youngest first."""

import heapq
from collections.abc import Iterable, Mapping
from typing import Final

from engine.simulation import autoscaler_index, capacity, cron_jobs, disruption_budgets, owner_index, quotas
from engine.simulation.state import NEVER_MS, Cohort, MemberState, Workload
from engine.works.templates import COUNTED_BY_MEMBERS, Template
from events import shapes

_COHORTS_MAX: Final = 64
"""Maximum number of cohorts per workload.

Beyond it the oldest ones are merged, which loses their exact ages but not their replicas.
"""


def run(state: MemberState, workload: Workload, replicas: int, template: Template, at_ms: int) -> None:
    """Bring a workload to a number of replicas of a pod template; a changed template replaces all of them at once."""
    if template.digest != workload.template.digest:
        shrink(state, workload, workload.admitted + workload.pending)
        workload.succeeded = 0
    disruption_budgets.forget(state, workload)
    workload.template = template
    disruption_budgets.record(state, workload)
    autoscaler_index.record(state, workload.object_key, workload.ref.namespace, template.scaler)
    quotas.record(state, workload.object_key, workload.ref, template.quota)
    autoscaler_index.touch(state, workload.object_key)
    owner_index.touch(state, workload.object_key)
    cron_jobs.follow(state, workload, at_ms)
    replicas = min(replicas, still_to_run(workload, replicas))
    missing = replicas - workload.admitted - workload.pending
    if missing > 0:
        add_replicas(state, workload, missing, at_ms)
    else:
        quotas.settle(state, workload)
    if missing < 0:
        shrink(state, workload, -missing)


def desired(state: MemberState, ref: shapes.WorkloadRef, count: int | None, template: Template) -> int | None:
    """Return the replicas that a member runs of an object; ``count`` are those that were assigned to it, if any."""
    if count is not None or ref.kind not in COUNTED_BY_MEMBERS:
        return count
    return sum(group.count for group in state.spec.nodes) if ref.kind == "DaemonSet" else template.count


def completions(workload: Workload, parallelism: int) -> int:
    """Return how many pods of a Job must succeed here: its share, if its parallelism is divided over clusters."""
    if workload.completions is not None:
        return workload.completions
    total = workload.template.completions
    return parallelism if total is None else -(-total * parallelism // max(workload.template.count, 1))


def still_to_run(workload: Workload, replicas: int) -> int:
    """Return how many more pods a Job runs until it is complete; ``replicas`` for kinds that don't end."""
    return completions(workload, replicas) - workload.succeeded if workload.template.run_ms else replicas


def finish(state: MemberState, workload: Workload, at_ms: int) -> None:
    """End the pods of a Job whose time is over, and start those that are still to run.

    In a modelled cluster no Job ends, since nothing is known about how long it runs.
    """
    run_ms = workload.template.run_ms
    ended = [cohort for cohort in workload.cohorts if cohort.running and cohort.ready_ms + run_ms <= at_ms]
    if not run_ms or not ended or state.spec.modelled:
        return
    workload.cohorts = [cohort for cohort in workload.cohorts if cohort not in ended]
    for cohort in ended:
        capacity.add(state.capacity.running, workload.template.amounts, -cohort.count)
        workload.succeeded += cohort.count
        quotas.count(state, workload.ref.namespace, workload.template, -cohort.count)
        workload.ended_ms = cohort.ready_ms + run_ms
    state.capacity_changed = state.capacity_freed = True
    run(state, workload, workload.replicas or 0, workload.template, at_ms)


def restart(state: MemberState, workload: Workload, count: int, at_ms: int) -> None:
    """Replace all replicas of a workload by ``count`` new ones."""
    shrink(state, workload, workload.admitted + workload.pending)
    workload.succeeded = 0
    if count:
        add_replicas(state, workload, count, at_ms)


def slots(replaced: Mapping[int, int], count: int) -> Iterable[int]:
    """Return the slots of ``count`` replicas in the order of their ages: replaced ones last."""
    if not replaced:
        return range(count)
    return [
        *(slot for slot in range(count) if slot not in replaced),
        *(slot for slot in replaced if slot < count),
    ]


def count_replacement(replaced: dict[int, int], slot: int) -> None:
    """Count one more replacement of a slot, whose replica is the youngest now."""
    replaced[slot] = replaced.pop(slot, 0) + 1


def replace(state: MemberState, workload: Workload, slot: int, at_ms: int) -> None:
    """Replace the replica in a slot by a new one; does nothing if no replica is there, or it has ended."""
    order = list(slots(workload.replaced, workload.succeeded + workload.admitted + workload.pending))
    place = order.index(slot) - workload.succeeded if slot in order else -1
    if place < 0:
        return
    count_replacement(workload.replaced, slot)
    owner_index.touch(state, workload.object_key)
    if place >= workload.admitted:
        workload.pending_since_ms = at_ms
        return
    cohort = _cohort_at(workload, place)
    amounts = workload.template.amounts
    capacity.add(state.capacity.running if cohort.running else state.capacity.starting, amounts, -1)
    cohort.count -= 1
    quotas.count(state, workload.ref.namespace, workload.template, -1)
    workload.cohorts = [each for each in workload.cohorts if each.count]
    disruption_budgets.touch(state, workload)
    state.capacity_freed = True
    add_replicas(state, workload, 1, at_ms)


def _cohort_at(workload: Workload, place: int) -> Cohort:
    for cohort in workload.cohorts:
        if place < cohort.count:
            return cohort
        place -= cohort.count
    raise IndexError(place)


def add_replicas(state: MemberState, workload: Workload, count: int, at_ms: int) -> None:
    """Create ``count`` more replicas of a workload, as far as quotas allow; they wait for capacity."""
    count = quotas.allowed(state, workload, count)
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
    workload.cohorts.append(cohort)
    capacity.add(state.capacity.pending, amounts, -cohort.count)
    if cohort.running:
        capacity.add(state.capacity.running, amounts, cohort.count)
        merge(workload)
    else:
        capacity.add(state.capacity.starting, amounts, cohort.count)
        schedule_start(state, workload.key, cohort)
    if workload.template.run_ms and cohort.ready_ms < NEVER_MS:
        heapq.heappush(state.starts, (cohort.ready_ms + workload.template.run_ms, workload.key))
    state.capacity_changed = True


def resume(state: MemberState, workload: Workload, ages: list[tuple[int, int]], ready: int) -> None:
    """Let pending replicas run that ran before, by (count, created_ms), oldest first.

    Admit the oldest ``ready`` replicas of a workload, as far as they fit; in a modelled cluster all of them.
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


def schedule_start(state: MemberState, key: str, cohort: Cohort) -> None:
    if cohort.ready_ms < NEVER_MS:
        heapq.heappush(state.starts, (cohort.ready_ms, key))


def shrink(state: MemberState, workload: Workload, count: int) -> None:
    """Remove the ``count`` youngest replicas."""
    amounts = workload.template.amounts
    if not count:
        return
    quotas.count(state, workload.ref.namespace, workload.template, -count)
    disruption_budgets.touch(state, workload)
    dropped = min(count, workload.pending)
    workload.pending -= dropped
    capacity.add(state.capacity.pending, amounts, -dropped)
    count -= dropped
    while count:
        youngest = workload.cohorts[-1]
        dropped = min(count, youngest.count)
        capacity.add(
            state.capacity.running if youngest.running else state.capacity.starting, amounts, -dropped
        )
        youngest.count -= dropped
        count -= dropped
        if not youngest.count:
            workload.cohorts.pop()
        state.capacity_freed = True
    state.capacity_changed = True


def merge(workload: Workload) -> None:
    cohorts = workload.cohorts
    if len(cohorts) > _COHORTS_MAX and cohorts[0].running and cohorts[1].running:
        cohorts[1].count += cohorts[0].count
        cohorts[1].created_ms = cohorts[0].created_ms
        del cohorts[0]
