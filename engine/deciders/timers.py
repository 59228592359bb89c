"""Timers of a shard: when its bindings, rebalancers and watches must be decided without a new input."""

import heapq
import itertools
from collections.abc import Iterator
from typing import Final

from engine.deciders.state import Binding, Rebalancer, ShardState, Watch

_ENTRIES_MIN: Final = 1_024
"""Outdated entries are kept while the heap has at most this many entries."""

TimedObject = Binding | Rebalancer | Watch


class Timers:
    """The times in ``timer_ms`` of all holders (bindings, rebalancers and watches), the earliest first.

    The heap also has entries of holders that were deleted or given another time. They are skipped, and dropped each
    time the heap has doubled.
    """

    def __init__(self, state: ShardState) -> None:
        self._state = state
        self._rebuild()

    def _rebuild(self) -> None:
        state = self._state
        holders = itertools.chain(state.bindings.values(), state.rebalancers.values(), state.watches.values())
        self._heap = [(holder.timer_ms, holder.key) for holder in holders if holder.timer_ms]
        heapq.heapify(self._heap)
        self._entries_max = max(_ENTRIES_MIN, 2 * len(self._heap))

    def next_ms(self) -> int | None:
        """Return the earliest time; None for never."""
        holder = self._first()
        return None if holder is None else holder.timer_ms

    def pop(self, at_ms: int) -> Iterator[tuple[int, str]]:
        """Yield the due times up to ``at_ms`` with the keys of their holders, and clear these timers."""
        while (holder := self._first()) is not None and holder.timer_ms <= at_ms:
            heapq.heappop(self._heap)
            due_ms, holder.timer_ms = holder.timer_ms, 0
            yield due_ms, holder.key

    def set(self, holder: TimedObject, due_ms: int) -> None:
        """Set the ``timer_ms`` of a holder; 0 for never."""
        if due_ms == holder.timer_ms:
            return
        holder.timer_ms = due_ms
        if due_ms:
            heapq.heappush(self._heap, (due_ms, holder.key))
            if len(self._heap) > self._entries_max:
                self._rebuild()

    def _first(self) -> TimedObject | None:
        """Return the holder with the earliest time; drop the entries before it."""
        state = self._state
        while self._heap:
            due_ms, key = self._heap[0]
            holder = state.bindings.get(key) or state.rebalancers.get(key) or state.watches.get(key)
            if holder is not None and holder.timer_ms == due_ms:
                return holder
            heapq.heappop(self._heap)
        return None
