"""Works get their numbers behind the step that gave them.

The brokers show a transaction in one partition before they show it in another; a view that saw a work without its step
would take it for a stale owner's.
"""

import time
from collections.abc import Callable
from typing import Final

from engine.log import port
from engine.log.kafka.clients import Slot
from events import ids, topics
from events.records import StoredRecord

_READ: Final = 2_000
_PATIENCE_S: Final = 1.0
"""A work that names a step which does not come is a forgery, and holds nobody up for longer."""


class Founded:
    """Which works have their steps, as far as this replica has read."""

    def __init__(self, log: port.Log) -> None:
        self._log = log
        self._steps: dict[int, int] = {}
        self._looked: dict[Slot, int] = {}
        self._since_s: dict[Slot, float] = {}

    async def ends(self, ends: port.Ends, numbered: Callable[[Slot], int]) -> dict[Slot, int]:
        """The ends, those of works cut before the first one whose step has not come; for others as they are.

        ``numbered`` tells up to where a partition has its numbers.
        """
        # The ends go on moving while this reads.
        known = dict(ends)
        found = dict(known)
        for slot, end in known.items():
            if slot[0] == topics.DECISIONS:
                await self._look(slot, max(numbered(slot), self._looked.get(slot, 0)), end)
        for slot, end in known.items():
            if slot[0] == topics.WORKS:
                found[slot] = await self._cut(slot, numbered(slot), end)
        return found

    async def _look(self, slot: Slot, start: int, end: int) -> None:
        """Notes the newest step in a shard's decisions."""
        while start < end:
            for record in await self._log.read(*slot, start, _READ):
                start = record.offset + 1
                if (step := _step(record)) is not None and step[0] == slot[1]:
                    self._steps[slot[1]] = max(self._steps.get(slot[1], 0), step[1])
        self._looked[slot] = end

    async def _cut(self, slot: Slot, start: int, end: int) -> int:
        while start < end:
            for record in await self._log.read(*slot, start, _READ):
                step = _step(record)
                if step is not None and step[1] > self._steps.get(step[0], 0) and self._waits(slot):
                    return start
                start = record.offset + 1
        self._since_s.pop(slot, None)
        return end

    def _waits(self, slot: Slot) -> bool:
        since_s = self._since_s.setdefault(slot, time.monotonic())
        return time.monotonic() - since_s < _PATIENCE_S


def _step(record: StoredRecord) -> tuple[int, int] | None:
    """The shard and the number of the step that gave a record; None for what no step gave."""
    try:
        shard, _term, number = ids.step_of(record.headers.get("ce_id", ""))
    except ValueError:
        return None
    return shard, number
