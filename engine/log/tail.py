"""The newest records of a log in memory, so that readers near the end never read the file."""

from collections import deque
from collections.abc import Iterable
from typing import Final

from events.records import StoredRecord

BYTES_MAX: Final = 6 * 1024 * 1024
_RECORD_BYTES: Final = 1_200
"""Estimated memory per record in addition to its value, mostly for its headers."""


class Tail:
    """The newest records of all partitions within a memory limit, by number and by offset.

    At least the newest record is kept, whatever its size.
    """

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._all: deque[StoredRecord] = deque()
        self._slots: dict[tuple[str, int], deque[StoredRecord]] = {}

    def extend(self, records: Iterable[StoredRecord]) -> None:
        """Add records that follow the newest one, and drop the oldest ones beyond the limit."""
        for record in records:
            self._all.append(record)
            slot = (record.topic, record.partition)
            if slot not in self._slots:
                self._slots[slot] = deque()
            self._slots[slot].append(record)
            self._bytes += _size(record)
        while self._bytes > self._bytes_max and len(self._all) > 1:
            oldest = self._all.popleft()
            # The oldest record of all is also the first of its partition, as both are in number order.
            self._slots[oldest.topic, oldest.partition].popleft()
            self._bytes -= _size(oldest)

    def after(self, number: int, limit: int) -> list[StoredRecord] | None:
        """Return records after a sequence number; None if some of them have been dropped."""
        if not self._all or number < self._all[0].number - 1:
            return None
        # Compute the index: the embedded log has no gaps in numbers, nor in the offsets of a partition (``read``).
        return _part(self._all, number + 1 - self._all[0].number, limit)

    def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord] | None:
        """Return records of a partition from an offset on; None if some of them have been dropped."""
        slot = self._slots.get((topic, partition))
        if not slot or start < slot[0].offset:
            return None
        return _part(slot, start - slot[0].offset, limit)


def _part(records: deque[StoredRecord], first: int, limit: int) -> list[StoredRecord]:
    return [records[index] for index in range(first, min(first + limit, len(records)))]


def _size(record: StoredRecord) -> int:
    return _RECORD_BYTES + len(record.value)
