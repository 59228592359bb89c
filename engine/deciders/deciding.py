"""Deciding one binding, from claim to dispatch: each decider in its turn, each seeing what the one before decided.

Level-triggered: what is counts, not what changed; the reasons for which the key waits only spare work.
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
    """Emits everything that has to be decided of a binding now."""
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
    # A cluster that was out of the question may be the place that was missing.
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
    """The next instant at which time alone may change something; 0 for never."""
    if binding.declared is None:
        return 0
    dues = [tainting.due_ms(binding, facts, placements), failing.due_ms(binding)]
    if binding.blocked and binding.ready_to_retry:
        dues.append(binding.retry_at_ms)
    want = shard.wants.get(binding.key) if shard.wants else None
    if want is not None:
        dues.append(want.due_ms)
    return min((due for due in dues if due), default=0)
