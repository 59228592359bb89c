"""Decide one binding, from claim to dispatch; each decider sees the decisions of the ones before it.

Level-triggered: decisions follow from the current state. The flags of a key only show which deciders to skip.
"""

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
    taint_manager,
    workload_groups,
)
from engine.deciders import state as states
from engine.deciders.facts import Facts
from engine.deciders.placement_cache import Placements
from engine.deciders.state import Binding, ShardState
from engine.deciders.step_outputs import Outputs, View
from engine.domain.bindings import Suspension
from events import decisions

_PROPAGATES = states.SPEC | states.POLICY
_REQUIRES = _PROPAGATES | states.REQUIRED
_RANKS = _PROPAGATES | states.PRIORITY
_ANSWERED = states.QUOTA | states.GROUP
_ADMITS = states.PRIORITY | states.QUOTA
_STATUS = states.HEALTH | states.CLUSTER


def decide(binding: Binding, flags: int, view: View) -> Outputs[None]:
    """Yield all decisions that a binding needs now, with the links and works that follow from them."""
    if propagation.is_recreated(binding):
        yield from _end(binding, flags, view)
    before = binding.generation
    preserved = False
    if flags & _PROPAGATES or (flags & _ADMITS and binding.is_waiting):
        preserved = yield from propagation.decide(binding, flags, view)
    if binding.suspending not in (None, binding.suspension) and binding.declared is not None:
        yield from _suspend(binding, binding.suspending)
    if flags & _RANKS:
        yield from priority_resolution.decide(binding, view)
    kept_running_in = required_bindings.NO_CLUSTERS
    if flags & _REQUIRES and binding.key in view.shard.needs:
        kept_running_in = yield from required_bindings.decide(binding, view)
    is_freed = False
    if binding.declared is not None:
        # If the owner of quotas or of a workload group has answered, the scheduling pass that waited for the answer
        # runs below. The pass may place evicted replicas, so their evictions must not end before it.
        is_changed = binding.generation != before or bool(flags & _ANSWERED)
        is_freed = yield from taint_manager.decide(binding, view, is_changed=is_changed)
        yield from application_failover.decide(binding, view)
        if binding.key in view.shard.preemptions:
            yield from preemption_victims.decide(binding, view)
    is_changed = binding.generation != before or is_freed
    is_answered = yield from scheduling.decide(binding, flags, view, is_changed=is_changed)
    yield from _settle(binding, view)
    if not is_answered:
        # In ``_settle`` the binding may have left the groups or quotas that it waited for: answer rebalancers now.
        yield from scheduling.answer(binding, view)
    if binding.rank is not None:
        yield from preemption.decide(binding, view)
    yield from dispatch.decide(binding, view, preserved=preserved, kept_running_in=kept_running_in)
    if binding.distributed is not None or (binding.claim is not None and binding.claim.propagate_deps):
        yield from dependency_requests.decide(binding, view, preserved=preserved)
    if flags & _STATUS or binding.shown or binding.is_suspended:
        yield from status_aggregation.decide(binding, view)


def _end(binding: Binding, flags: int, view: View) -> Outputs[None]:
    """Withdraw the binding of a deleted template with all its works; the new template gets a binding of its own."""
    preserved = yield from propagation.withdraw(binding, flags, view)
    yield from dispatch.decide(binding, view, preserved=preserved)


def _settle(binding: Binding, view: View) -> Outputs[None]:
    """Report what the binding uses to the owners of its quotas and groups."""
    has_quotas = bool(view.shard.quota_claims or view.facts.overall)
    if has_quotas:
        yield from overall_quotas.settle(binding, view)
    yield from workload_groups.settle(binding, view)
    if has_quotas:
        # Again: a granted quota claim is kept while the binding waits for a group, and the line above may end that
        # wait.
        yield from overall_quotas.settle(binding, view)


def _suspend(binding: Binding, suspension: Suspension | None) -> Outputs[None]:
    """Record the suspension that a client requested."""
    if suspension is not None:
        scheduling, dispatching = suspension.scheduling, suspension.dispatching
        yield decisions.BindingSuspended(key=binding.key, scheduling=scheduling, dispatching=dispatching)


def due_ms(shard: ShardState, binding: Binding, facts: Facts, placements: Placements) -> int:
    """Return when the binding must be decided again even without a new input (ms since 1970); 0 for never."""
    if binding.declared is None:
        return 0
    dues = [taint_manager.due_ms(binding, facts, placements, shard), application_failover.due_ms(binding)]
    if binding.blocked and binding.ready_to_retry:
        dues.append(binding.retry_at_ms)
    request = shard.capacity_requests.get(binding.key) if shard.capacity_requests else None
    if request is not None:
        dues.append(request.due_ms)
    return min((due for due in dues if due), default=0)
