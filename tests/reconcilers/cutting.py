"""A log in memory of which parts are thrown away, or damaged, and restored again."""

from engine.log import memory, port
from events.records import StoredRecord

Slot = tuple[str, int]


class CutLog(memory.MemoryLog):
    """``firsts`` are the offsets from which on partitions are kept; ``damaged`` are records that can't be read."""

    def __init__(self) -> None:
        super().__init__()
        self.firsts: dict[Slot, int] = {}
        self.damaged: set[tuple[str, int, int]] = set()

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        if start < self.firsts.get((topic, partition), 0):
            raise port.LogCutError(f"{topic}/{partition} is not kept from {start} on any more")
        found = await super().read(topic, partition, start, limit)
        for each in found:
            if (topic, partition, each.offset) in self.damaged:
                raise port.LogCorruptedError(f"{each.position} is not what was appended")
        return found

    def cut(self, topic: str, partition: int) -> None:
        """Throws away all that a partition holds now."""
        self.firsts[topic, partition] = self.ends().get((topic, partition), 0)

    def restore(self) -> None:
        """All of it is there again."""
        self.firsts.clear()
        self.damaged.clear()
