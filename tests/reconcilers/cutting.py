"""An in-memory log of which parts are deleted or damaged, and restored."""

from engine.log import local, port
from events.records import StoredRecord

Slot = tuple[str, int]


class CutLog(local.MemoryLog):
    """``firsts`` are the first stored offsets of partitions; ``damaged`` are positions that cannot be read."""

    def __init__(self) -> None:
        super().__init__()
        self.firsts: dict[Slot, int] = {}
        self.damaged: set[tuple[str, int, int]] = set()

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        if start < self.firsts.get((topic, partition), 0):
            raise port.LogCutError(f"{topic}/{partition} is not kept from {start} on any more")
        stored = await super().read(topic, partition, start, limit)
        for record in stored:
            if (topic, partition, record.offset) in self.damaged:
                raise port.LogCorruptedError(f"{record.position} is not what was appended")
        return stored

    def cut(self, topic: str, partition: int) -> None:
        """Delete all present records of a partition."""
        self.firsts[topic, partition] = self.ends().get((topic, partition), 0)

    def restore(self) -> None:
        """Restore all records."""
        self.firsts.clear()
        self.damaged.clear()
