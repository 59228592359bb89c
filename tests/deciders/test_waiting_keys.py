"""Keys that wait to be decided, counted over all queues."""

from engine.deciders.shard_fold import ShardFold
from engine.deciders.state import HEALTH, SPEC, Cause, ShardState, Waiting


def test_key_in_a_queue_that_an_input_touches_again_counts_once() -> None:
    state = ShardState(0)
    state.waiting["a"] = state.touched["a"] = Waiting(SPEC, Cause(), 0)
    state.reported["b"] = state.touched["b"] = Waiting(HEALTH, Cause(), 0)
    state.touched["c"] = Waiting(SPEC, Cause(), 0)
    assert ShardFold(state, {}, []).queued == 3
