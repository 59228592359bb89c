"""Read a log once in number order, for two consumers: the checks of all records, and the replay of steps."""

import itertools
from collections import deque
from collections.abc import Callable, Collection
from typing import Final

from engine.log import port, sqlite_reading, sqlite_share
from engine.proof.record_origins import RecordOrigins
from events import topics
from events.records import StoredRecord

_HELD_MAX: Final = 5_000
_HELD_BYTES_MAX: Final = 4 * port.READ_BYTES_MAX
"""With ``_HELD_MAX`` records or this many bytes of values in memory, the replay reads the log instead of ahead."""

_UNKNOWN_START: Final = 2**63


class _RecordsAhead:
    """Records of one partition that were read already, before the replay requested them.

    ``records`` contains all records read so far from offset ``start``; earlier ones must be read from the log again.
    """

    def __init__(self, start: int) -> None:
        self.start = start
        self.records: deque[StoredRecord] = deque()


class SingleReading:
    """Reads the records after a sequence number, only as far as they are needed, and passes each to ``origins``.

    Memory stays bounded: ``origins`` stores an output only until its step is computed, and other records are stored
    until the replay requests them. On SQLite, records that only other shards need are skipped.
    """

    def __init__(
        self,
        log: port.NumberedLog,
        shards: Collection[int],
        origins: RecordOrigins,
        after: int,
        seen: Callable[[int, int], None],
    ) -> None:
        """After each read, ``seen`` is called with the count of records and the sequence number of the last one."""
        self.unreadable: list[tuple[int, port.LogCorruptedError]] = []
        """Sequence numbers of the records that could not be read, with the errors."""
        self.misplaced: list[tuple[StoredRecord, int]] = []
        """Records of the SQLite log without the next offset of their partition, each with the offset expected."""
        self._next: dict[tuple[str, int], int] = {}
        self._origins = origins
        self._log = log
        self._after = after
        self._is_partial = bool(after)
        self._seen = seen
        self._share = sqlite_share.Share(shards)
        own = {(topic, shard) for topic in (topics.DECISIONS, *topics.OWN_TOPICS) for shard in shards}
        # If reading starts after a snapshot, a partition's first offset is unknown until its first record is read.
        start = _UNKNOWN_START if after else 0
        self._held = {
            slot: _RecordsAhead(start) for slot in (*own, *((topic, 0) for topic in topics.FACT_TOPICS))
        }
        self._waiting = self._waiting_bytes = 0

    async def read_past(self, number: int) -> None:
        """Read at least up to a sequence number, or to the end of the log."""
        while self._after < number and await self.read_more():
            pass

    async def read_more(self) -> bool:
        """Read the next records; return whether there were any."""
        if self._after >= self._log.last_number():
            return False
        try:
            portion = await self._portion(port.READ_RECORDS)
        except port.LogCorruptedError:
            portion = await self._next_record()
        self._origins.mark_read(portion.passed)
        for record in portion.records:
            self._origins.take(record)
            self._hold(record)
        self._after = portion.last
        self._seen(portion.count, portion.last)
        return True

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        """Return the same records as ``port.Partitions.read``, from memory if they were read ahead."""
        held_records = self._held.get((topic, partition))
        if held_records is None:
            return await self._log.read(topic, partition, start, limit)
        waiting = held_records.records
        while not self.unreadable:
            while waiting and waiting[0].offset < start:
                passed = waiting.popleft()
                held_records.start = passed.offset + 1
                self._waiting -= 1
                self._waiting_bytes -= len(passed.value)
            if start < held_records.start:
                break
            if waiting and self._has_gaps(waiting[0].offset, start):
                break  # the read of the log below raises the error that the record at ``start`` is missing
            if waiting:
                return list(itertools.islice(waiting, limit))
            is_full = self._waiting >= _HELD_MAX or self._waiting_bytes >= _HELD_BYTES_MAX
            if is_full or not await self.read_more():
                break
        records = await self._log.read(topic, partition, start, limit)
        if records and held_records.start != _UNKNOWN_START:
            held_records.start = max(held_records.start, records[-1].offset + 1)
        return records

    def _check_offset(self, record: StoredRecord) -> bool:
        """Return whether a record has the next offset of its partition; otherwise add it to ``misplaced``.

        The check is needed because no checksum covers the offset. Always True on Kafka and after an unreadable record.
        """
        if self.unreadable or not isinstance(self._log, sqlite_reading.SqliteReader):
            return True
        slot = record.topic, record.partition
        expected = self._next.get(slot, record.offset if self._is_partial else 0)
        self._next[slot] = expected + 1
        if record.offset != expected:
            self.misplaced.append((record, expected))
        return record.offset == expected

    def _has_gaps(self, first: int, start: int) -> bool:
        """Whether records are missing between two offsets; never on Kafka, where transaction markers use up offsets."""
        return first != start and isinstance(self._log, sqlite_reading.SqliteReader)

    def _hold(self, record: StoredRecord) -> None:
        waiting = self._held.get((record.topic, record.partition))
        if waiting is None:
            return
        if not self._check_offset(record):
            return  # the replay must read this offset from the log, which raises an error for the gap
        if waiting.start == _UNKNOWN_START:
            waiting.start = record.offset
        if record.offset >= waiting.start:
            waiting.records.append(record)
            self._waiting += 1
            self._waiting_bytes += len(record.value)

    async def _portion(self, limit: int) -> sqlite_share.Portion:
        if isinstance(self._log, sqlite_reading.SqliteReader):
            return self._log.read_share(self._share, self._after, limit)
        batch = await self._log.read_all(self._after, limit)
        return sqlite_share.Portion(batch, len(batch), batch[-1].number if batch else self._after)

    async def _next_record(self) -> sqlite_share.Portion:
        try:
            return await self._portion(1)
        except port.LogCorruptedError as error:
            number = self._after + 1
            self.unreadable.append((number, error))
            self._origins.skip_unreadable()
            # Without the unreadable record, the records read ahead would have a gap: drop them, so that the replay
            # reads the log.
            for waiting in self._held.values():
                waiting.records.clear()
            self._waiting = self._waiting_bytes = 0
            return sqlite_share.Portion([], 0, number)
