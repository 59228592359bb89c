"""Read a log a little ahead, for many small reads of its partitions one after another."""

from typing import Final

from engine.log import port
from events.records import StoredRecord

_AHEAD: Final = 64
"""Records per read. A step takes one or two of a partition, and each read has the cost of ten records."""

_HELD_BYTES_MAX: Final = 512 * 1024
"""A partition whose records are so large that a batch exceeds this is no longer read ahead."""


class ReadAhead:
    """Reads each partition of a log in order; records read beyond the limit are kept for the next read."""

    def __init__(self, log: port.Partitions) -> None:
        self._log = log
        self._held: dict[tuple[str, int], list[StoredRecord]] = {}
        self._large: set[tuple[str, int]] = set()

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        """Return records as ``port.Partitions.read``."""
        slot = topic, partition
        ahead = self._held.get(slot)
        # Offsets may have gaps; if ``start`` is in one, read the batch again from there.
        if ahead and 0 <= (index := start - ahead[0].offset) < len(ahead) and ahead[index].offset == start:
            return ahead[index : index + limit]
        if limit >= _AHEAD or slot in self._large:
            return await self._log.read(topic, partition, start, limit)
        try:
            batch = await self._log.read(topic, partition, start, _AHEAD)
        except port.LogCorruptedError:
            # The damaged record may be after the requested ones.
            return await self._log.read(topic, partition, start, limit)
        if sum(len(record.value) for record in batch) > _HELD_BYTES_MAX:
            self._large.add(slot)
            self._held.pop(slot, None)
        else:
            self._held[slot] = batch
        return batch[:limit]
