"""A log with gaps in its numbers, as on Kafka."""

from collections.abc import Sequence

from engine.log.local import MemoryLog
from events import records
from events.records import Record, StoredRecord

STEP = 3


class GappedLog(MemoryLog):
    """A log in which only every third number belongs to a record."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[StoredRecord] = []

    async def append(self, batch: Sequence[Record]) -> list[StoredRecord]:
        stored = [
            records.stored(
                records.record(record.topic, record.partition, record.key, record.headers, record.value),
                record.offset,
                STEP * record.number,
            )
            for record in await super().append(batch)
        ]
        self.records += stored
        return stored

    async def read_all(self, after: int, limit: int) -> list[StoredRecord]:
        return [record for record in self.records if record.number > after][:limit]

    def last_number(self) -> int:
        return STEP * super().last_number()
