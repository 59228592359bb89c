"""Logs to which no other process appends, such as one in memory; ownership of their shards cannot be lost."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Final

from engine import shared_waits
from engine.log import port
from events import records
from events.records import Record, StoredRecord

APPENDED_MAX: Final = 10_000
"""Maximum number of records per append. The event loop is blocked while all of them become visible at once."""


class LocalLog:
    """Methods of a ``port.NumberedLog`` about its end, for logs to which no other process appends."""

    def __init__(self, number: int = 0) -> None:
        self._end = shared_waits.EndSignal(number)

    def last_number(self) -> int:
        return self._end.number

    async def wait_current(self) -> None:
        """Return at once: this process knows all records."""

    def change_count(self) -> int:
        return self.last_number()

    async def newest(self) -> int:
        return self.last_number()

    async def wait(self, after: int) -> None:
        await self._end.wait(after)


class MemoryLog(LocalLog):
    """Records in memory; nothing is durable.

    The log continues another log, its base: ``base_ends`` are the ends of the base's partitions, ``base_number`` is its
    last sequence number. The base's own records cannot be read here.
    """

    def __init__(self, base_ends: port.Ends | None = None, base_number: int = 0) -> None:
        super().__init__(base_number)
        self.base_number = base_number
        self.base_ends = dict(base_ends or {})
        self.added: list[StoredRecord] = []
        """All records in memory, in order."""
        self._partitions: dict[tuple[str, int], list[StoredRecord]] = {}
        self._ends = dict(self.base_ends)

    async def append(self, batch: Sequence[Record]) -> list[StoredRecord]:
        stored: list[StoredRecord] = []
        for number, record in enumerate(batch, self.base_number + len(self.added) + 1):
            slot = (record.topic, record.partition)
            offset = self._ends.get(slot, 0)
            entry = records.stored(record, offset, number)
            self._ends[slot] = offset + 1
            self._partitions.setdefault(slot, []).append(entry)
            stored.append(entry)
        self.added += stored
        self._end.move(self.base_number + len(self.added))
        return stored

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        slot = (topic, partition)
        first = max(start - self.base_ends.get(slot, 0), 0)
        return port.bounded(self._partitions.get(slot, [])[first : first + limit])

    async def read_all(self, after: int, limit: int) -> list[StoredRecord]:
        first = after - self.base_number
        return port.bounded(self.added[first : first + limit])

    def ends(self) -> port.Ends:
        return self._ends

    async def aclose(self) -> None:
        """Do nothing: the log has no resources to release."""


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
        """Do nothing: there are no steps of other owners to detect."""

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
