"""Owning shards where the process that holds the log is the only one: nobody can end that."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Final

from engine.log import port
from events.records import Record

APPENDED_MAX: Final = 10_000
"""Records of one append: the event loop shows them to all readers in one go."""


class SoleOwner:
    """A ``port.Owner`` on a log that nobody else appends steps to, and that appends a batch all or none.

    The steps of a turn go in one append, or in several where they have many records; a step is never divided.
    """

    def __init__(self, log: port.Log) -> None:
        self._log = log

    async def own(self, shards: Iterable[int]) -> None:
        """See ``port.Owner``."""

    def begin(self, shard: int, number: int, term: int, digest: str) -> None:
        """See ``port.Owner``."""

    async def commit(self, steps: Sequence[tuple[int, Sequence[Record]]]) -> dict[int, int]:
        """See ``port.Owner``."""
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
        """Appends some steps, all or none; gives the offset of each."""
        stored = await self._log.append([record for _, batch in steps for record in batch])
        firsts = itertools.accumulate((len(batch) for _, batch in steps), initial=0)
        return {shard: stored[first].offset for (shard, _), first in zip(steps, firsts, strict=False)}

    async def check(self) -> None:
        """See ``port.Owner``."""

    async def release(self, shards: Iterable[int]) -> None:
        """See ``port.Owner``."""
