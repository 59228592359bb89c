"""Decide one binding, from claim to dispatch; each decider sees the decisions of the ones before it.

Level-triggered: decisions follow from the current state. The flags of a key only show which deciders to skip.
"""

from collections.abc import Iterator

from engine.deciders import (
    application_failover,
    dependency_requests,
    dispatch,
    overall_quotas,
    preemption,
    preemption_victims,
    priority_resolution,
    propagation,
    required_bindings,
    scheduling,
    status_aggregation,
    step_outputs,
    taint_manager,
    workload_groups,
)
from engine.deciders import state as states
from engine.deciders.facts import Facts
from engine.deciders.placement_cache import Placements
from engine.deciders.state import Binding, ShardState
from engine.domain.bindings import SUCCESS, Suspension
from events import decisions

_PROPAGATES = states.SPEC | states.POLICY
_REQUIRES = _PROPAGATES | states.REQUIRED
_RANKS = _PROPAGATES | states.PRIORITY
_ANSWERED = states.QUOTA | states.GROUP
_ADMITS = states.PRIORITY | states.QUOTA
_STATUS = states.HEALTH | states.CLUSTER


def decide(
    binding: Binding, flags: int, facts: Facts, placements: Placements, emit: step_outputs.Emitter
) -> Iterator[None]:
    """Emit all decisions that a binding needs now; yields during a long search."""
    before = binding.generation
    preserved = False
    if flags & _PROPAGATES or (flags & _ADMITS and binding.is_waiting):
        preserved = propagation.decide(binding, flags, facts, emit)
    if binding.suspending not in (None, binding.suspension) and binding.declared is not None:
        _suspend(binding, binding.suspending, emit)
    if flags & _RANKS:
        priority_resolution.decide(binding, facts, emit)
    left = required_bindings.NO_CLUSTERS
    if flags & _REQUIRES and binding.key in emit.shard.needs:
        left = required_bindings.decide(binding, facts, emit)
    is_freed = False
    if binding.declared is not None:
        # After an answer about quotas or workload groups, the scheduling pass that waited for it runs below.
        # It may place evicted replicas, so their evictions must not end before it.
        is_changed = binding.generation != before or bool(flags & _ANSWERED)
        is_freed = taint_manager.decide(binding, facts, placements, emit, is_changed=is_changed)
        application_failover.decide(binding, emit)
        if binding.key in emit.shard.preemptions:
            preemption_victims.decide(binding, emit)
    # A cluster whose eviction ended is a candidate again: a pass that failed without it may succeed now.
    is_changed = binding.generation != before or (is_freed and binding.condition != SUCCESS)
    is_answered = scheduling.decide(binding, flags, facts, placements, emit, is_changed=is_changed)
    if emit.shard.quota_claims or facts.overall:
        overall_quotas.settle(binding, facts.overall, emit)
    workload_groups.settle(binding, placements, emit)
    if not is_answered:
        # ``settle`` may have ended the wait for an answer: the binding may have left its group or its quotas.
        scheduling.answer(binding, emit)
    if binding.rank is not None:
        yield from preemption.decide(binding, facts, placements, emit)
    dispatch.decide(binding, facts, placements, emit, preserved=preserved, left=left)
    if binding.distributed is not None or (binding.claim is not None and binding.claim.propagate_deps):
        dependency_requests.decide(binding, facts, emit, preserved=preserved)
    if flags & _STATUS or binding.shown or binding.is_suspended:
        status_aggregation.decide(binding, facts, emit)


def _suspend(binding: Binding, suspension: Suspension | None, emit: step_outputs.Emitter) -> None:
    """Record the suspension that a client requested."""
    if suspension is not None:
        scheduling, dispatching = suspension.scheduling, suspension.dispatching
        emit.decide(
            decisions.BindingSuspended(key=binding.key, scheduling=scheduling, dispatching=dispatching)
        )


def due_ms(shard: ShardState, binding: Binding, facts: Facts, placements: Placements) -> int:
    """Return when the binding must be decided again even without a new input (ms since 1970); 0 for never."""
    if binding.declared is None:
        return 0
    dues = [taint_manager.due_ms(binding, facts, placements, shard), application_failover.due_ms(binding)]
    if binding.blocked and binding.ready_to_retry:
        dues.append(binding.retry_at_ms)
    want = shard.wants.get(binding.key) if shard.wants else None
    if want is not None:
        dues.append(want.due_ms)
    return min((due for due in dues if due), default=0)
