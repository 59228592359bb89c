"""Follow partitions: receive new records, track the ends of the partitions, and wait for more records.

``FollowedLog`` is the log of a worker or of the members. It holds the newest records of each followed
partition in memory and reads older ones from the brokers. Offsets have gaps, because transactions write
control records. The end of a partition is the offset after its last record that is not a control record.
"""

import asyncio
import itertools
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError, OffsetOutOfRangeError

from engine import diagnostics, shared_waits
from engine.log import port
from engine.log.kafka import appends, clients, range_reads, record_format
from engine.log.kafka.address import Address
from engine.log.kafka.clients import Slot
from events.records import Record, StoredRecord

_TAIL_RECORDS_MAX: Final = 4_096
_TAIL_BYTES_MAX: Final = 4 * 1024 * 1024
_LOOK_BACK: Final = 64
_POLL_MS: Final = 200
_ENDS_UNKNOWN: Final = "the ends of the log are not known"
_log = diagnostics.logger(__name__)


class _Tail:
    """The newest records of a partition, at least one; older ones are dropped beyond a count or a size in bytes."""

    def __init__(self) -> None:
        self.records: deque[StoredRecord] = deque()
        self._bytes = 0

    def extend(self, batch: Sequence[StoredRecord]) -> None:
        """Add records that follow the newest one."""
        self.records.extend(batch)
        self._bytes += sum(len(record.value) for record in batch)
        while len(self.records) > _TAIL_RECORDS_MAX or (
            self._bytes > _TAIL_BYTES_MAX and len(self.records) > 1
        ):
            self._bytes -= len(self.records.popleft().value)


class FollowedLog:
    """A ``port.Log`` of the partitions passed to ``follow``; ``open`` it, then run ``run`` in a task."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._consumer = clients.consumer(address)
        # A second connection: a broker answers the requests of a connection in order, so a query would wait
        # behind a fetch that waits for new records.
        self._query_consumer = clients.consumer(address)
        self._ranges = range_reads.Ranges(address)
        self._appender = appends.Appender(address)
        self._positions: dict[Slot, int] = {}
        self._visible: dict[Slot, int] = {}
        self._known_ends: dict[Slot, int] = {}
        self._firsts: dict[Slot, int] = {}
        self._tails: dict[Slot, _Tail] = {}
        self._moves = shared_waits.EndSignal()
        self._levelling = 0
        self._polled = shared_waits.EndSignal()
        # Held while fetching: the set of followed partitions must not change during a fetch.
        self._turn = asyncio.Lock()

    async def open(self) -> None:
        """Connect. Raises LogError if no broker answers; call ``aclose`` even then."""
        with clients.converted(f"no broker answers at {self._address.servers}"):
            await self._consumer.start()
            await self._query_consumer.start()
            await self._appender.open()

    async def run(self) -> None:
        """Receive new records until cancelled."""
        while True:
            try:
                await self._poll()
            except OffsetOutOfRangeError as error:
                await self._skip_deleted(error.args[0])
            except KafkaError as error:
                _log.warning("fetch failed; retrying", error=str(error))
                await asyncio.sleep(clients.AFTER_FAILURE_S)

    async def follow(self, slots: Iterable[Slot]) -> None:
        """Follow these partitions from now on, and no others; their ends are known when it returns.

        It works without ``run``. Raises LogError if the brokers do not answer.
        """
        followed = set(slots)
        async with self._turn:
            new = sorted(followed - self._positions.keys())
            self._forget(self._positions.keys() - followed)
            with clients.converted(_ENDS_UNKNOWN):
                await self._find_last_records(new)
            self._assign()

    async def unfollow(self, slots: Iterable[Slot]) -> None:
        """Stop following these partitions and drop their records from memory; ignore those that are not followed."""
        async with self._turn:
            if dropped := self._positions.keys() & set(slots):
                self._forget(dropped)
                self._assign()

    async def append(self, batch: Sequence[Record]) -> list[StoredRecord]:
        """Append records; their numbers are 0 because only the sequence assigns numbers."""
        return await self._appender.append(batch)

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        """Read records; raises LogError if the brokers do not answer, LogCutError if the records were deleted."""
        slot = (topic, partition)
        if start < self._firsts.get(slot, 0):
            # Query the first offset again: an operator may have restored deleted records.
            self._firsts[slot], _ = await self._ranges.bounds(slot)
            if start < self._firsts[slot]:
                raise range_reads.not_kept(slot, start)
        end = self._visible.get(slot) or self._known_ends.get(slot, 0)
        if start >= end:
            return []
        tail = self._tails.get(slot)
        if tail is not None and start >= tail.records[0].offset:
            newer = list(itertools.takewhile(lambda record: record.offset >= start, reversed(tail.records)))
            return newer[: -limit - 1 : -1]
        return await self._ranges.read(slot, start, end, limit)

    async def read_up_to(self, slot: Slot, start: int, end: int, limit: int) -> list[StoredRecord]:
        """Return at most ``limit`` records from ``start`` to ``end`` (exclusive); the partition must reach ``end``."""
        return await self._ranges.read(slot, start, end, limit)

    async def unfollowed_ends(self, slots: Sequence[Slot]) -> dict[Slot, int]:
        """Return the ends of partitions that are not followed; they can be read up to these ends."""
        ends = await self.query_ends(*slots)
        self._known_ends.update(ends)
        return ends

    def ends(self) -> port.Ends:
        return self._visible

    def known_end(self, slot: Slot) -> int:
        """Return the known end of a partition; its first offset if all its records were deleted."""
        return max(self._visible.get(slot, 0), self._firsts.get(slot, 0))

    async def passed(self, slots: Sequence[Slot]) -> dict[Slot, int]:
        """Return the offsets up to which followed partitions were read, control records included."""
        await self._query_positions(slots)
        return {slot: self._positions.get(slot, 0) for slot in slots}

    async def written(self, slots: Sequence[Slot]) -> dict[Slot, int]:
        """Return the offsets up to which partitions are written, open transactions included."""
        return await self._ranges.written(slots)

    async def wait_current(self) -> None:
        await self.wait_until_read(await self.query_ends(*sorted(self._positions)))

    async def query_ends(self, *slots: Slot) -> dict[Slot, int]:
        """Return the current ends of partitions, control records included.

        Raises LogError if the brokers do not answer.
        """
        with clients.converted(_ENDS_UNKNOWN):
            return await self._ends(slots)

    async def wait_until_read(self, ends: Mapping[Slot, int]) -> None:
        """Return when followed partitions have been read up to these offsets, control records included."""
        self._levelling += 1
        try:
            with clients.converted(_ENDS_UNKNOWN):
                await self._query_positions(
                    [slot for slot in ends if self._positions.get(slot, 0) < ends[slot]]
                )
            while any(self._positions.get(slot, end) < end for slot, end in ends.items()):
                await self._polled.wait(self._polled.number)
        finally:
            self._levelling -= 1

    def change_count(self) -> int:
        return self._moves.number

    def wake(self) -> None:
        """Wake all callers of ``wait`` without a new record, for other changes such as a new assignment of shards."""
        self._moves.move(self._moves.number + 1)

    async def wait(self, after: int) -> None:
        await self._moves.wait(after)

    async def aclose(self) -> None:
        """Close the log, also if ``open`` failed; ``run`` must have ended."""
        await clients.close(self._consumer)
        await clients.close(self._query_consumer)
        await self._ranges.close()
        await self._appender.close()

    async def _ends(self, slots: Sequence[Slot]) -> dict[Slot, int]:
        """Return the current ends of partitions, control records included."""
        names = {clients.partition(self._address, slot): slot for slot in slots}
        if not names:
            return {}
        return {
            names[partition]: end
            for partition, end in (await self._query_consumer.end_offsets(list(names))).items()
        }

    async def _find_last_records(self, slots: Sequence[Slot]) -> None:
        """Find the last record of each new partition; between it and the end there are only control records."""
        names = {clients.partition(self._address, slot): slot for slot in slots}
        await clients.load_metadata(self._query_consumer, names)
        ends = await self._ends(slots)
        firsts = await self._query_consumer.beginning_offsets(list(names)) if names else {}
        for at, slot in names.items():
            first, end, back = firsts[at], ends[slot], _LOOK_BACK
            self._firsts[slot] = first
            last_records: list[StoredRecord] = []
            while not last_records and first < end:
                start = max(first, end - back)
                while (batch := await self._ranges.read(slot, start, end, _TAIL_RECORDS_MAX)) and start < end:
                    last_records += batch
                    start = batch[-1].offset + 1
                if end - back <= first:
                    break
                back *= 8
            self._positions[slot] = end
            # Drop records of an earlier attempt: between them and the new records there may be a gap.
            self._tails.pop(slot, None)
            if last_records:
                self._take(slot, last_records)

    def _forget(self, slots: Iterable[Slot]) -> None:
        for slot in slots:
            del self._positions[slot]
            self._visible.pop(slot, None)
            self._tails.pop(slot, None)

    def _assign(self) -> None:
        names = {clients.partition(self._address, slot): slot for slot in self._positions}
        if names:
            self._consumer.assign(list(names))
        for at, slot in names.items():
            self._consumer.seek(at, self._positions[slot])

    async def _poll(self) -> None:
        """Fetch new records once and wake the readers that wait for them."""
        if not self._positions:
            await asyncio.sleep(_POLL_MS / 1_000)
            return
        async with self._turn:
            batch = await self._consumer.getmany(timeout_ms=_POLL_MS)
            count = 0
            for at, messages in batch.items():
                slot = clients.slot(self._address, at)
                self._take(slot, [record_format.stored(message, slot[0]) for message in messages])
                count += len(messages)
            await self._query_positions(self._moved(batch))
        if count:
            self._moves.move(self._moves.number + count)
        self._polled.move(self._polled.number + 1)
        # Yield once, so that a task that waits for the lock gets it before the next fetch.
        await asyncio.sleep(0)

    async def _skip_deleted(self, deleted: Mapping[TopicPartition, int]) -> None:
        """Continue after records that brokers deleted before they were received; reading these raises LogCutError."""
        try:
            async with self._turn:
                firsts = await self._query_consumer.beginning_offsets(list(deleted))
                ends = await self._query_consumer.end_offsets(list(deleted))
                for at, offset in deleted.items():
                    slot, first = clients.slot(self._address, at), firsts[at]
                    if slot not in self._positions:
                        continue
                    _log.error(
                        "records deleted by the brokers", topic=slot[0], partition=slot[1], until=first
                    )
                    self._firsts[slot] = first
                    self._tails.pop(slot, None)
                    self._positions[slot] = max(first, min(offset, ends[at]))
                    self._visible[slot] = max(self._visible.get(slot, 0), first)
                    self._consumer.seek(at, self._positions[slot])
        except KafkaError as error:
            _log.warning("fetch failed; retrying", error=str(error))
            await asyncio.sleep(clients.AFTER_FAILURE_S)
        self.wake()

    async def _query_positions(self, slots: Iterable[Slot]) -> None:
        for slot in slots:
            position = await self._consumer.position(clients.partition(self._address, slot))
            if slot in self._positions:
                self._positions[slot] = position

    def _moved(self, batch: Iterable[TopicPartition]) -> list[Slot]:
        """Return the partitions whose positions must be queried after a fetch: those with new records.

        Return all partitions while ``wait_until_read`` has a caller: it also waits for control records, which
        advance the position of a partition but are not in ``batch``.
        """
        if self._levelling:
            return list(self._positions)
        return [clients.slot(self._address, at) for at in batch]

    def _take(self, slot: Slot, batch: Sequence[StoredRecord]) -> None:
        self._tails.setdefault(slot, _Tail()).extend(batch)
        self._visible[slot] = batch[-1].offset + 1
