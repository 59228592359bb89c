"""Owning shards where the process that holds the log is the only one: nobody can end that."""

from collections.abc import Iterable, Sequence

from engine.log import port
from events.records import Record


class SoleOwner:
    """A ``port.Owner`` on a log that nobody else appends steps to, and that appends a batch all or none.

    The steps of a turn go in one append.
    """

    def __init__(self, log: port.Log) -> None:
        self._log = log

    async def own(self, shards: Iterable[int]) -> None:
        """See ``port.Owner``."""

    def begin(self, shard: int, number: int, term: int, digest: str) -> None:
        """See ``port.Owner``."""

    async def commit(self, steps: Sequence[tuple[int, Sequence[Record]]]) -> dict[int, int]:
        """See ``port.Owner``."""
        stored = await self._log.append([record for _, batch in steps for record in batch])
        offsets: dict[int, int] = {}
        first = 0
        for shard, batch in steps:
            offsets[shard] = stored[first].offset
            first += len(batch)
        return offsets

    async def check(self) -> None:
        """See ``port.Owner``."""

    async def release(self, shards: Iterable[int]) -> None:
        """See ``port.Owner``."""
