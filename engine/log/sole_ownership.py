"""Ownership of shards on a log with a single process: it cannot be lost."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Final

from engine.log import port
from events.records import Record

APPENDED_MAX: Final = 10_000
"""Maximum number of records per append. The event loop is blocked while all of them become visible at once."""


class SoleOwner:
    """A ``port.Owner`` on a log with atomic batches to which no other process appends steps.

    The steps of a turn go into one append, or into several if they have many records; a step is never
    divided.
    """

    def __init__(self, log: port.Log) -> None:
        self._log = log

    async def own(self, shards: Iterable[int]) -> None:
        """Do nothing: no other owner exists."""

    def begin(self, shard: int, number: int, term: int, digest: str) -> None:
        """Do nothing: no step of another owner has to be detected."""

    async def commit(self, steps: Sequence[tuple[int, Sequence[Record]]]) -> dict[int, int]:
        offsets: dict[int, int] = {}
        together: list[tuple[int, Sequence[Record]]] = []
        size = 0
        for shard, batch in steps:
            if together and size + len(batch) > APPENDED_MAX:
                offsets.update(await self._append(together))
                together, size = [], 0
            together.append((shard, batch))
            size += len(batch)
        return offsets | await self._append(together)

    async def _append(self, steps: Sequence[tuple[int, Sequence[Record]]]) -> dict[int, int]:
        """Append steps, all or none; return the offset of each step by shard."""
        stored = await self._log.append([record for _, batch in steps for record in batch])
        firsts = itertools.accumulate((len(batch) for _, batch in steps), initial=0)
        return {shard: stored[first].offset for (shard, _), first in zip(steps, firsts, strict=False)}

    async def check(self) -> None:
        """Do nothing: ownership cannot be lost."""

    def check_due_ms(self) -> int | None:
        """Return None: there is nothing to check."""
        return None

    async def release(self, shards: Iterable[int]) -> None:
        """Do nothing: no other owner waits for the shards."""
