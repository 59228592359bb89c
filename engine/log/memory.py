"""A log in memory, for simulations and tests: it behaves like the other backends, but nothing is durable."""

from collections.abc import Sequence

from engine.log import port, shared_waits
from events import records
from events.records import Record, StoredRecord


class MemoryLog:
    """A ``port.Log`` that lives as long as the object."""

    def __init__(self) -> None:
        self._all: list[StoredRecord] = []
        self._partitions: dict[tuple[str, int], list[StoredRecord]] = {}
        self._end = shared_waits.EndSignal()

    async def append(self, batch: Sequence[Record]) -> list[StoredRecord]:
        stored: list[StoredRecord] = []
        for record in batch:
            partition = self._partitions.setdefault((record.topic, record.partition), [])
            entry = records.stored(record, len(partition), len(self._all) + 1)
            partition.append(entry)
            self._all.append(entry)
            stored.append(entry)
        self._end.move(len(self._all))
        return stored

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        return port.bounded(self._partitions.get((topic, partition), [])[start : start + limit])

    async def read_all(self, after: int, limit: int) -> list[StoredRecord]:
        return port.bounded(self._all[after : after + limit])

    def ends(self) -> port.Ends:
        return {slot: len(entries) for slot, entries in self._partitions.items()}

    def last_number(self) -> int:
        return self._end.number

    async def level(self) -> None:
        """Return at once: no other process appends to this log."""

    def change_count(self) -> int:
        return self.last_number()

    async def newest(self) -> int:
        return self.last_number()

    async def wait(self, after: int) -> None:
        await self._end.wait(after)

    async def aclose(self) -> None:
        """Do nothing: the log has no resources to release."""
