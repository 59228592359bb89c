"""A fork of a log: the records up to a position, followed by records that only the fork has.

Nothing is written to the forked log. Records that are appended to it later are not visible in the fork.
"""

from engine.log import local, port, reading
from events import catalogue, ids
from events.records import StoredRecord


class ForkLog(local.MemoryLog):
    """A ``port.NumberedLog`` over another log, which it only reads; the owner of that log closes it."""

    def __init__(self, base: port.NumberedLog, ends: port.Ends, number: int) -> None:
        super().__init__(ends, number)
        self.base = base
        """The log that is forked. A process that continues the fork sets its own connection."""

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        end = self.base_ends.get((topic, partition), 0)
        if start < end:
            batch = await self.base.read(topic, partition, start, min(limit, end - start))
            # If the batch is empty, only control records of the brokers remain before the end.
            if batch := [record for record in batch if record.offset < end]:
                return batch
        return await super().read(topic, partition, start, limit)

    async def read_all(self, after: int, limit: int) -> list[StoredRecord]:
        if (left := self.base_number - after) > 0:
            return await self.base.read_all(after, min(limit, left))
        return await super().read_all(after, limit)

    async def wait(self, after: int) -> None:
        """Raise LogError: nothing appends to a fork between its turns, so waiting would never end."""
        raise port.LogError(f"a fork has no records after {after} before its next turn")


async def fork(base: port.NumberedLog, number: int | None = None) -> ForkLog:
    """Fork a log at its end, or after the record ``number``; if a step wrote this record, after the step's last output.

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
        # The step's own record precedes its outputs.
        is_step = record.headers.get("ce_type") == catalogue.STEP_TAKEN
        if is_step or not record.headers.get("ce_source", "").startswith(ids.SHARD_SOURCE):
            return number
        number = record.number
    return number


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
