"""The newest records of a log, kept in memory, so that readers that are level never touch the file."""

from collections import deque
from collections.abc import Iterable
from typing import Final

from events.records import StoredRecord

BYTES_MAX: Final = 6 * 1024 * 1024
_RECORD_BYTES: Final = 1_200
"""What a record takes in memory beside its value: most of it are its headers."""


class Tail:
    """The newest records of all partitions, up to a number of bytes; each is found by its number and by its offset.

    At least the newest record is kept, however large it is.
    """

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._all: deque[StoredRecord] = deque()
        self._slots: dict[tuple[str, int], deque[StoredRecord]] = {}

    def extend(self, records: Iterable[StoredRecord]) -> None:
        """Takes records that follow on the newest one, and drops the oldest ones."""
        for record in records:
            self._all.append(record)
            slot = (record.topic, record.partition)
            if slot not in self._slots:
                self._slots[slot] = deque()
            self._slots[slot].append(record)
            self._bytes += _size(record)
        while self._bytes > self._bytes_max and len(self._all) > 1:
            oldest = self._all.popleft()
            self._slots[oldest.topic, oldest.partition].popleft()
            self._bytes -= _size(oldest)

    def after(self, number: int, limit: int) -> list[StoredRecord] | None:
        """Records after a number; None where some of them are no longer kept."""
        if not self._all or number < self._all[0].number - 1:
            return None
        return _part(self._all, number + 1 - self._all[0].number, limit)

    def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord] | None:
        """Records of a partition from an offset on; None where some of them are no longer kept."""
        slot = self._slots.get((topic, partition))
        if not slot or start < slot[0].offset:
            return None
        return _part(slot, start - slot[0].offset, limit)


def _part(records: deque[StoredRecord], first: int, limit: int) -> list[StoredRecord]:
    return [records[index] for index in range(first, min(first + limit, len(records)))]


def _size(record: StoredRecord) -> int:
    return _RECORD_BYTES + len(record.value)
