"""A fork of a log: the records up to a position, followed by records that only the fork has.

Nothing is written to the forked log. Records that are appended to it later are not visible in the fork.
"""

from collections.abc import Sequence

from engine.log import port, reading, shared_waits
from events import catalogue, ids, records
from events.records import Record, StoredRecord


class ForkLog(shared_waits.LocalLog):
    """A ``port.NumberedLog`` over another log, which is only read."""

    def __init__(self, base: port.NumberedLog, ends: port.Ends, number: int) -> None:
        super().__init__(number)
        self.base = base
        """The log that is forked. A process that continues the fork sets its own connection."""
        self._base_ends = dict(ends)
        self._ends = dict(ends)
        self._number = number
        self._partitions: dict[tuple[str, int], list[StoredRecord]] = {}
        self.added: list[StoredRecord] = []
        """The records that only the fork has, in order."""

    async def append(self, batch: Sequence[Record]) -> list[StoredRecord]:
        stored: list[StoredRecord] = []
        for record in batch:
            slot = (record.topic, record.partition)
            offset = self._ends.get(slot, 0)
            entry = records.stored(record, offset, self.last_number() + 1)
            self._ends[slot] = offset + 1
            self._partitions.setdefault(slot, []).append(entry)
            self.added.append(entry)
            stored.append(entry)
            self._end.move(entry.number)
        return stored

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        base_end = self._base_ends.get((topic, partition), 0)
        if start < base_end:
            batch = await self.base.read(topic, partition, start, min(limit, base_end - start))
            batch = [record for record in batch if record.offset < base_end]
            if batch:
                return batch
            start = base_end  # only control records of the brokers are left
        added = self._partitions.get((topic, partition), [])
        return added[start - base_end : start - base_end + limit]

    async def read_all(self, after: int, limit: int) -> list[StoredRecord]:
        if after < self._number:
            return await self.base.read_all(after, min(limit, self._number - after))
        return self.added[after - self._number : after - self._number + limit]

    def ends(self) -> port.Ends:
        return self._ends

    async def wait(self, after: int) -> None:
        """Raise LogError: nothing appends to a fork between its turns, so waiting would never end."""
        raise port.LogError(f"a fork has no records after {after} before its next turn")

    async def aclose(self) -> None:
        """Do nothing: the log that was forked belongs to its owner."""


async def fork(base: port.NumberedLog, number: int | None = None) -> ForkLog:
    """Fork a log at its end, or after the record ``number`` and the other outputs of the record's step.

    Raises the log's errors.
    """
    if number is None or number >= base.last_number():
        return ForkLog(base, base.ends(), base.last_number())
    number = await _whole_step(base, number)
    ends: dict[tuple[str, int], int] = {}
    for (topic, partition), end in base.ends().items():
        ends[topic, partition] = await _end_at(base, topic, partition, end, number)
    return ForkLog(base, ends, number)


async def _whole_step(base: port.NumberedLog, number: int) -> int:
    """Return the number of the last output of the step to which a record belongs; ``number`` if no output follows."""
    async for record in reading.of_all(base, number):
        if not is_output(record):
            return number
        number = record.number
    return number


def is_output(record: StoredRecord) -> bool:
    """Whether the record is an output of a step; the step's own record, which precedes its outputs, is not."""
    is_step = record.headers.get("ce_type") == catalogue.STEP_TAKEN
    return record.headers.get("ce_source", "").startswith(ids.SHARD_SOURCE) and not is_step


async def _end_at(base: port.NumberedLog, topic: str, partition: int, end: int, number: int) -> int:
    """Return the end of a partition after record ``number`` of the log; in a partition numbers grow with offsets."""
    low, high = 0, end
    while low < high:
        middle = (low + high) // 2
        records = await base.read(topic, partition, middle, 1)
        if records and records[0].number <= number:
            low = records[0].offset + 1
        else:
            high = middle
    return low
