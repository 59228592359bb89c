"""Topics that are not part of the log: snapshots of shards, and lines such as signed checkpoints.

Snapshots are in a compacted topic with one partition per shard, readable by every worker. A snapshot is written as
pieces, followed by a head that describes them. Snapshots alternate between two sets of keys, so compaction deletes
older ones and the previous snapshot stays complete while the next is written. Snapshots are a cache and prove nothing.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

import anyio.from_thread
import msgspec
from aiokafka.errors import KafkaError, KafkaTimeoutError
from msgspec import Struct

from engine.log import port
from engine.log.kafka import appends, clients, range_reads, topics
from engine.log.kafka.address import Address
from engine.log.kafka.clients import Slot
from engine.log.kafka.topics import SNAPSHOTS
from events.records import StoredRecord

CHECKPOINTS: Final = "checkpoints"
"""Name of the topic of signed checkpoints, without the log's prefix."""

_PIECE_BYTES: Final = 512 * 1024
_LOOK_BACK: Final = 32
_SNAPSHOTS_KEPT: Final = 2
_TURNS: Final = ("a", "b")
_HEAD: Final = "head"


class _Head(Struct, frozen=True):
    """Description of a snapshot, written after its pieces.

    The pieces begin at offset ``first`` and end before the head; their keys begin with ``turn`` ("a" or "b").
    """

    number: int
    turn: str
    first: int
    size: int


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Head).decode


class _Appender:
    """Appends single records."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._producer = clients.SharedProducer(address)

    async def append(self, slot: Slot, value: bytes | None, key: bytes | None = None) -> int:
        """Append a record; return its offset.

        Raises KafkaError; KafkaTimeoutError if no broker has accepted the record in time.
        """
        producer: clients.Producer | None = None
        try:
            # Without this limit, aiokafka keeps a batch as long as it cannot connect to the partition's leader.
            async with asyncio.timeout(appends.COMMIT_S):
                producer = await self._producer.started()
                topic = self._address.topic(slot[0])
                return (await producer.send_and_wait(topic, value, key, slot[1])).offset
        except (KafkaError, TimeoutError) as error:
            if producer is not None:
                await self._producer.drop(producer)
            if isinstance(error, KafkaError):
                raise
            raise KafkaTimeoutError(
                f"no broker has accepted the record within {appends.COMMIT_S:.0f} s"
            ) from error

    async def close(self) -> None:
        await self._producer.close()


class SnapshotTopic:
    """Snapshot storage of all shards, for one worker."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._ranges = range_reads.Ranges(address)
        self._appender = _Appender(address)
        self.is_shared = False

    def of(self, shards: Sequence[int]) -> Sequence[tuple["ShardSnapshots", list[int]]]:
        """Return a storage for each shard, paired with a list of only that shard: no snapshot covers several shards."""
        return [(ShardSnapshots(self, shard), [shard]) for shard in shards]

    async def records(self, shard: int, start: int, end: int) -> list[StoredRecord]:
        """Return the records of a shard's partition between two offsets."""
        return await self._ranges.read_all((SNAPSHOTS, shard), start, end)

    async def bounds(self, shard: int) -> tuple[int, int]:
        """Return the first and the next offset of a shard's partition."""
        return await self._ranges.bounds((SNAPSHOTS, shard))

    async def append(self, shard: int, key: str, value: bytes | None) -> int:
        """Append a piece and return its offset. Raises OSError if no broker accepts it."""
        try:
            return await self._appender.append((SNAPSHOTS, shard), value, key.encode())
        except KafkaError as error:
            raise OSError(str(error)) from error

    async def close(self) -> None:
        await self._ranges.close()
        await self._appender.close()


class ShardSnapshots:
    """Snapshots of one shard, a ``snapshot_storage.SnapshotStore``; call it in worker threads of the event loop."""

    def __init__(self, topic: SnapshotTopic, shard: int) -> None:
        self._topic = topic
        self._shard = shard

    def numbers(self) -> list[int]:
        return [head.number for head, _ in anyio.from_thread.run(self._heads)]

    def read(self, number: int) -> bytes:
        return anyio.from_thread.run(self._read, number)

    def write(self, number: int, parts: Sequence[bytes]) -> None:
        anyio.from_thread.run(self._write, number, b"".join(parts))

    def drop(self, number: int) -> None:
        anyio.from_thread.run(self._drop, number)

    async def _heads(self) -> list[tuple[_Head, int]]:
        """Return snapshot heads with their offsets, newest first; read from the end to skip the large pieces."""
        try:
            begin, end = await self._topic.bounds(self._shard)
            by_key: dict[str, tuple[_Head | None, int]] = {}
            while begin < end and len(by_key) < _SNAPSHOTS_KEPT:
                start = max(begin, end - _LOOK_BACK)
                batch = await self._topic.records(self._shard, start, end)
                heads = [
                    (record.key, _head(record), record.offset)
                    for record in batch
                    if record.key.endswith(_HEAD)
                ]
                end = start
                for key, head, offset in reversed(heads):
                    # Use only the newest record of a key, even a deletion (None): compaction may not have
                    # removed older heads yet.
                    by_key.setdefault(key, (head, offset))
                    if head is not None:
                        # The records before the head are pieces of its snapshot; skip them.
                        end = min(end, head.first)
        except port.LogError as error:
            raise OSError(str(error)) from error
        existing = [(head, offset) for head, offset in by_key.values() if head is not None]
        return sorted(existing, key=lambda item: item[0].number, reverse=True)

    async def _read(self, number: int) -> bytes:
        for head, offset in await self._heads():
            if head.number == number:
                try:
                    pieces = await self._topic.records(self._shard, head.first, offset)
                except port.LogError as error:
                    raise OSError(str(error)) from error
                whole = b"".join(chunk.value for chunk in pieces if chunk.key.startswith(head.turn))
                if len(whole) == head.size:
                    return whole
        raise OSError(f"snapshot {number} of shard {self._shard} is incomplete")

    async def _write(self, number: int, whole: bytes) -> None:
        last = await self._heads()
        turn = _TURNS[1] if last and last[0][0].turn == _TURNS[0] else _TURNS[0]
        first: int | None = None
        for index, start in enumerate(range(0, len(whole), _PIECE_BYTES)):
            chunk = whole[start : start + _PIECE_BYTES]
            offset = await self._topic.append(self._shard, f"{turn}-{index}", chunk)
            first = offset if first is None else first
        # The head comes last: readers find a snapshot by its head, so they never see an incomplete one.
        head = _Head(number, turn, first or 0, len(whole))
        await self._topic.append(self._shard, f"{turn}-{_HEAD}", _encode(head))

    async def _drop(self, number: int) -> None:
        for head, _ in await self._heads():
            if head.number == number:
                await self._topic.append(self._shard, f"{head.turn}-{_HEAD}", None)


def _head(record: StoredRecord) -> _Head | None:
    try:
        return _decode(record.value)
    except msgspec.DecodeError:
        return None


class LineTopic:
    """A topic of one partition whose records are lines; it is created when it is first used."""

    def __init__(self, address: Address, name: str) -> None:
        self._address = address
        self._slot = (name, 0)
        self._ranges = range_reads.Ranges(address)
        self._appender = _Appender(address)
        self._is_prepared = False

    async def lines(self) -> list[bytes]:
        """Return all lines. Raises LogError."""
        begin, end = await self._bounds()
        return await self._read(begin, end)

    async def last(self) -> bytes:
        """Return the last line; empty if there is none. Raises LogError."""
        begin, end = await self._bounds()
        result: list[bytes] = []
        while not result and end > begin:
            # The last offsets may be control records.
            result = await self._read(end - 1, end)
            end -= 1
        return result[-1] if result else b""

    async def append(self, line: bytes) -> None:
        """Append a line; it is durable on return. Raises LogError."""
        await self._prepare()
        with clients.converted(f"topic {self._slot[0]} was not written"):
            await self._appender.append(self._slot, line)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._ranges.close()
        await self._appender.close()

    async def _bounds(self) -> tuple[int, int]:
        await self._prepare()
        return await self._ranges.bounds(self._slot)

    async def _read(self, start: int, end: int) -> list[bytes]:
        return [record.value for record in await self._ranges.read_all(self._slot, start, end)]

    async def _prepare(self) -> None:
        if not self._is_prepared:
            await topics.prepare_topic(self._address, self._slot[0])
            self._is_prepared = True
