"""Decide one binding, from claim to dispatch; each decider sees the decisions of the ones before it.

Level-triggered: only the current state counts. The flags for which a key waits merely save work.
"""

from engine.deciders import (
    dispatch,
    distributing,
    emitting,
    evolve,
    failing,
    preempting,
    propagation,
    ranking,
    requiring,
    scheduling,
    status,
    tainting,
    yielding,
)
from engine.deciders import state as states
from engine.deciders.facts import Facts
from engine.deciders.placing import Placements
from engine.deciders.state import Binding, ShardState

_PROPAGATES = states.SPEC | states.POLICY
_REQUIRES = _PROPAGATES | states.REQUIRED
_RANKS = _PROPAGATES | states.PRIORITY
_STATUS = states.HEALTH | states.CLUSTER


def decide(
    binding: Binding, flags: int, facts: Facts, placements: Placements, emit: emitting.Emitter
) -> None:
    """Emit all decisions that a binding needs now."""
    before = binding.generation
    preserved = False
    if flags & _PROPAGATES:
        preserved = propagation.decide(binding, flags, facts, emit)
    if flags & _RANKS:
        ranking.decide(binding, facts, emit)
    left = requiring.NOWHERE
    if flags & _REQUIRES and binding.key in emit.shard.needs:
        left = requiring.decide(binding, facts, emit)
    is_freed = False
    if binding.declared is not None:
        is_changed = binding.generation != before
        is_freed = tainting.decide(binding, facts, placements, emit, is_changed=is_changed)
        failing.decide(binding, emit)
        if binding.key in emit.shard.preemptions:
            yielding.decide(binding, emit)
    # A cluster whose eviction ended is a candidate again and may be the one that was missing.
    is_changed = binding.generation != before or (is_freed and binding.condition != evolve.SUCCESS)
    scheduling.decide(binding, flags, facts, placements, emit, is_changed=is_changed)
    if binding.rank is not None:
        preempting.decide(binding, facts, placements, emit)
    dispatch.decide(binding, facts, emit, preserved=preserved, left=left)
    if binding.distributed is not None or (binding.claim is not None and binding.claim.propagate_deps):
        distributing.decide(binding, facts, emit, preserved=preserved)
    if flags & _STATUS or binding.shown:
        status.decide(binding, facts, emit)


def due_ms(shard: ShardState, binding: Binding, facts: Facts, placements: Placements) -> int:
    """Return the next time at which the passing of time alone may change a decision; 0 for never."""
    if binding.declared is None:
        return 0
    dues = [tainting.due_ms(binding, facts, placements), failing.due_ms(binding)]
    if binding.blocked and binding.ready_to_retry:
        dues.append(binding.retry_at_ms)
    want = shard.wants.get(binding.key) if shard.wants else None
    if want is not None:
        dues.append(want.due_ms)
    return min((due for due in dues if due), default=0)
