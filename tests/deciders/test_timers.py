"""Timers of a shard: the earliest valid one is next, and former ones take no memory."""

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from engine.deciders.state import Rebalancer, ShardState
from engine.deciders.timers import Timers

KEYS = ("a", "b", "c")


def rebalancers(*names: str) -> ShardState:
    state = ShardState(0)
    for name in names:
        state.rebalancers[name] = Rebalancer(
            key=name,
            name=name,
            uid="",
            generation=1,
            created_ms=0,
            edited_ms=0,
            version=1,
            workloads=(),
            ttl_seconds=None,
        )
    return state


@given(st.lists(st.tuples(st.sampled_from(KEYS), st.integers(0, 9)), max_size=40), st.integers(0, 9))
def test_due_timers_come_in_order_and_once(changes: list[tuple[str, int]], at_ms: int) -> None:
    state = rebalancers(*KEYS)
    shard_timers = Timers(state)
    for key, due_ms in changes:
        shard_timers.set(state.rebalancers[key], due_ms)
    newest = dict(changes)
    assert list(shard_timers.pop(at_ms)) == sorted(
        (due_ms, key) for key, due_ms in newest.items() if 0 < due_ms <= at_ms
    )
    later = {key for key, due_ms in newest.items() if due_ms > at_ms}
    assert {key for key in KEYS if state.rebalancers[key].timer_ms} == later


def test_timers_of_deleted_holders_do_not_count() -> None:
    state = rebalancers("a", "b")
    shard_timers = Timers(state)
    shard_timers.set(state.rebalancers["a"], 5)
    shard_timers.set(state.rebalancers["b"], 7)
    del state.rebalancers["a"]
    assert shard_timers.next_ms() == 7


def test_former_times_take_no_memory() -> None:
    state = rebalancers("a")
    tracemalloc.start()
    try:
        shard_timers = Timers(state)
        for due_ms in range(50_000, 0, -1):
            shard_timers.set(state.rebalancers["a"], due_ms)
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size < 500_000
    assert shard_timers.next_ms() == 1
