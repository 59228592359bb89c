"""Read a partition from any offset: records older than those that a process has in memory.

One consumer reads one range at a time. A fetch may return more records than requested. All of them are kept, as one
chunk per partition, so reads that alternate between partitions take one fetch per chunk, not one per read.
"""

import asyncio
import bisect
from collections.abc import Sequence
from typing import Final

from aiokafka.errors import KafkaError, OffsetOutOfRangeError
from msgspec import Struct

from engine.bounded_caches import BoundedCache
from engine.log import port
from engine.log.kafka import clients, record_format
from engine.log.kafka.address import Address
from engine.log.kafka.clients import Slot
from events.records import StoredRecord

_CHUNK_RECORDS: Final = 2_000
_CHUNKS_BYTES_MAX: Final = 128 * 1024 * 1024
"""Maximum bytes of the record values in all chunks together; beyond it the chunks fetched first are dropped."""

_POLL_RECORDS: Final = 50
"""Records taken from the client at once. A small number, because their sizes are unknown until they are taken."""

_WAIT_MS: Final = 500
_READ_S_MAX: Final = 30.0
"""Time limit of a read in seconds; without it the client would wait forever for a hanging broker."""


class _Chunk(Struct):
    """All records of a partition from offset ``start`` up to ``next``; their values have ``size`` bytes."""

    start: int
    next: int
    records: list[StoredRecord]
    size: int = 0


class Ranges:
    def __init__(self, address: Address) -> None:
        self._address = address
        self._consumer: clients.Consumer | None = None
        self._unbounded: clients.Consumer | None = None
        self._turn = asyncio.Lock()
        self._chunks: BoundedCache[Slot, _Chunk] = BoundedCache(_CHUNKS_BYTES_MAX, lambda chunk: chunk.size)

    async def read(self, slot: Slot, start: int, end: int, limit: int) -> list[StoredRecord]:
        """Return at most ``limit`` records from ``start`` to ``end`` (exclusive); the partition must reach ``end``.

        Raises LogError if the brokers do not answer, LogCutError if the records at ``start`` were deleted.
        """
        if start >= end or limit <= 0:
            return []
        async with self._turn:
            chunk = self._chunks.get(slot)
            if chunk is None or not chunk.start <= start < chunk.next:
                chunk = await self._fetched(slot, start, end)
            first = bisect.bisect_left(chunk.records, start, key=_offset)
            last = bisect.bisect_left(chunk.records, end, key=_offset)
            if first < last or chunk.next >= end:
                return port.bounded(chunk.records[first : min(last, first + limit)])
            # The rest of the chunk contains only control records.
            chunk = await self._fetched(slot, chunk.next, end)
            last = bisect.bisect_left(chunk.records, end, key=_offset)
            return port.bounded(chunk.records[: min(last, limit)])

    async def read_all(self, slot: Slot, start: int, end: int) -> list[StoredRecord]:
        """Return all records from ``start`` to ``end`` (exclusive). Raises LogError and LogCutError as ``read``."""
        result: list[StoredRecord] = []
        while batch := await self.read(slot, start, end, end - start):
            result += batch
            start = batch[-1].offset + 1
        return result

    async def bounds(self, slot: Slot) -> tuple[int, int]:
        """Return the first and the next offset of a partition; raises LogError if the brokers do not answer."""
        at = clients.partition(self._address, slot)
        async with self._turn:
            with clients.converted(f"{slot[0]}/{slot[1]} was not read"):
                consumer = await self._open()
                begin = (await consumer.beginning_offsets([at]))[at]
                return begin, (await consumer.end_offsets([at]))[at]

    async def written(self, slots: Sequence[Slot]) -> dict[Slot, int]:
        """Return the offsets up to which partitions are written, open transactions included; raises LogError."""
        names = {clients.partition(self._address, slot): slot for slot in slots}
        async with self._turn:
            with clients.converted("the ends of the log are not known"):
                if self._unbounded is None:
                    self._unbounded = await clients.start(clients.consumer(self._address, sees_open=True))
                ends = await self._unbounded.end_offsets(list(names))
        return {names[at]: end for at, end in ends.items()}

    async def close(self) -> None:
        for consumer in (self._consumer, self._unbounded):
            if consumer is not None:
                await clients.close(consumer)

    async def _fetched(self, slot: Slot, start: int, end: int) -> _Chunk:
        try:
            async with asyncio.timeout(_READ_S_MAX):
                chunk = await self._fetch(slot, start, end)
        except OffsetOutOfRangeError:
            raise not_kept(slot, start) from None
        except (KafkaError, TimeoutError) as error:
            raise port.LogError(
                f"{slot[0]}/{slot[1]} was not read: {type(error).__name__}: {error}"
            ) from error
        self._chunks.put(slot, chunk)
        return chunk

    async def _fetch(self, slot: Slot, start: int, end: int) -> _Chunk:
        """Read a chunk up to ``end``, or until it has ``_CHUNK_RECORDS`` records or ``port.READ_BYTES_MAX`` bytes."""
        consumer = await self._open()
        at = clients.partition(self._address, slot)
        if consumer.assignment() != {at}:
            consumer.assign([at])
        consumer.resume(at)
        consumer.seek(at, start)
        chunk = _Chunk(start, start, [])
        while chunk.next < end and len(chunk.records) < _CHUNK_RECORDS and chunk.size < port.READ_BYTES_MAX:
            fetched = await consumer.getmany(at, timeout_ms=_WAIT_MS, max_records=_POLL_RECORDS)
            stored = [record_format.stored(message, slot[0]) for message in fetched.get(at, ())]
            chunk.records += stored
            chunk.size += sum(len(record.value) for record in stored)
            chunk.next = await consumer.position(at)
        # Pause: otherwise the consumer keeps fetching, and the next request would wait behind a fetch without
        # new records.
        consumer.pause(at)
        return chunk

    async def _open(self) -> clients.Consumer:
        if self._consumer is None:
            self._consumer = await clients.start(clients.consumer(self._address))
        return self._consumer


def not_kept(slot: Slot, start: int) -> port.LogCutError:
    """Return the error for records that the brokers have deleted, with the remedy."""
    return port.LogCutError(
        f"{slot[0]}/{slot[1]} no longer has offset {start}; restore its records, or start from a"
        " newer snapshot"
    )


def _offset(record: StoredRecord) -> int:
    return record.offset
