"""The content of a log on Kafka as a plain consumer reads it, and the acknowledgements that clients got.

Independent of the engine: records are parsed by the wire contract only.
"""

# aiokafka has annotations, but no py.typed marker for type checkers.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import asyncio
import bisect
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cached_property
from typing import Any, Final, cast

import msgspec
from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from msgspec import Struct

PARTITIONS: Final = {
    "specs": 12,
    "policies": 1,
    "clusters": 1,
    "health": 12,
    "decisions": 12,
    "links": 12,
    "works": 12,
    "rejections": 1,
}
_SEQUENCE: Final = ("sequence", 0)
_READ_S_MAX: Final = 120.0
_MOVING_S_MAX: Final = 30.0
_WAIT_MS: Final = 200
Slot = tuple[str, int]


class Entry(Struct, frozen=True, kw_only=True):
    """A record; ``kind`` is its event type without the common prefix and version."""

    topic: str
    partition: int
    offset: int
    key: str = ""
    id: str = ""
    source: str = ""
    kind: str = ""
    value: bytes = b"{}"

    @property
    def slot(self) -> Slot:
        return self.topic, self.partition

    @property
    def position(self) -> str:
        return f"{self.topic}/{self.partition}/{self.offset}"

    @property
    def data(self) -> dict[str, Any]:
        """The event data if it is a JSON object, otherwise an empty dict."""
        try:
            document: object = msgspec.json.decode(self.value)
        except (msgspec.DecodeError, RecursionError):
            return {}
        return cast("dict[str, Any]", document) if isinstance(document, dict) else {}


class Acknowledged(Struct, frozen=True, kw_only=True):
    """An acknowledged write: a text unique to it, and its position as far as the response contained it.

    ``number`` is its sequence number, 0 if unknown; ``position`` is (topic, partition, offset).
    """

    text: str
    number: int = 0
    position: tuple[str, int, int] | None = None


class History(Struct, dict=True, kw_only=True):
    """A log, the acknowledged writes, and by replica the final texts by object name."""

    entries: Mapping[Slot, Sequence[Entry]]
    sequence: Sequence[Entry] = ()
    acknowledged: Sequence[Acknowledged] = ()
    shown: Sequence[Mapping[str, str]] = ()

    @cached_property
    def numbering(self) -> "Numbering":
        """Sequence numbers of all records, from the topic ``sequence``."""
        return Numbering(self.sequence)

    def of(self, *topics: str) -> list[Entry]:
        """Return the records of these topics, ordered by partition and offset."""
        return [
            entry for slot, entries in sorted(self.entries.items()) if slot[0] in topics for entry in entries
        ]


class Numbering:
    """Fold of sequence extents into numbers; ``wrong`` lists extents that do not join the previous ones."""

    def __init__(self, sequence: Sequence[Entry]) -> None:
        self.next = 1
        self.wrong: list[tuple[str, str]] = []
        self._ends: dict[Slot, int] = {}
        self._firsts: list[int] = []
        self._extents: list[tuple[Slot, int]] = []
        self._of: dict[Slot, list[tuple[int, int]]] = {}
        for entry in sequence:
            self._take(entry)

    def number(self, slot: Slot, offset: int) -> int:
        """Return the sequence number of a record, or 0 if it has none."""
        if offset >= self._ends.get(slot, 0):
            return 0
        extents = self._of[slot]
        start, first = extents[bisect.bisect_right(extents, (offset, 1 << 62)) - 1]
        return first + offset - start

    def position(self, number: int) -> tuple[Slot, int] | None:
        """Return slot and offset of a sequence number, or None if it is not assigned yet."""
        if not 0 < number < self.next:
            return None
        index = bisect.bisect_right(self._firsts, number) - 1
        slot, start = self._extents[index]
        return slot, start + number - self._firsts[index]

    def _take(self, entry: Entry) -> None:
        data = entry.data
        # Two replicas may append an extent for the same number at once; the later one is ignored.
        if data.get("first") != self.next:
            return
        ends = dict(self._ends)
        for topic, partition, start, end in data["extents"]:
            slot = (topic, partition)
            if start != ends.get(slot, 0) or end <= start:
                expected = ends.get(slot, 0)
                self.wrong.append(
                    (entry.position, f"{topic}/{partition} goes on at {start}, not at {expected}")
                )
                return
            ends[slot] = end
        for topic, partition, start, end in data["extents"]:
            slot = (topic, partition)
            self._firsts.append(self.next)
            self._extents.append((slot, start))
            self._of.setdefault(slot, []).append((start, self.next))
            self.next += end - start
        self._ends = ends


def read(servers: str, prefix: str) -> History:
    """Read all committed records of a log."""
    return asyncio.run(_read(servers, prefix))


async def _read(servers: str, prefix: str) -> History:
    slots = [(topic, partition) for topic, count in PARTITIONS.items() for partition in range(count)]
    partitions = [TopicPartition(f"{prefix}.{topic}", partition) for topic, partition in slots]
    until_s = time.monotonic() + _MOVING_S_MAX
    async with (
        _consumer(servers, "read_committed") as consumer,
        _consumer(servers, "read_uncommitted") as other,
    ):
        async with asyncio.timeout(_READ_S_MAX):
            while True:
                begun = await other.end_offsets(partitions)
                entries = await _partitions(consumer, prefix, slots)
                sequence = await _partitions(consumer, prefix, [_SEQUENCE])
                # A timer or a report may lead to a step meanwhile, and a broker ends a transaction in one partition
                # after the other: then some outputs of a step were read, and others were not.
                is_whole = (
                    begun == await consumer.end_offsets(partitions) == await other.end_offsets(partitions)
                )
                if is_whole or time.monotonic() > until_s:
                    return History(entries=entries, sequence=sequence[_SEQUENCE])


@asynccontextmanager
async def _consumer(servers: str, isolation: str) -> AsyncGenerator[AIOKafkaConsumer]:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=servers,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level=isolation,
    )
    await consumer.start()
    try:
        yield consumer
    finally:
        await consumer.stop()


async def _partitions(
    consumer: AIOKafkaConsumer, prefix: str, slots: Sequence[Slot]
) -> dict[Slot, list[Entry]]:
    """Read partitions up to their current end; the last offsets may be transaction markers, which are no records."""
    remaining = {
        TopicPartition(f"{prefix}.{topic}", partition): (topic, partition) for topic, partition in slots
    }
    consumer.assign(list(remaining))
    ends = await consumer.end_offsets(list(remaining))
    await consumer.seek_to_beginning(*remaining)
    entries: dict[Slot, list[Entry]] = {slot: [] for slot in slots}
    while remaining:
        batch = await consumer.getmany(*remaining, timeout_ms=_WAIT_MS)
        for partition, records in batch.items():
            entries[remaining[partition]] += [_entry(remaining[partition], record) for record in records]
        for partition in [
            finished
            for finished in remaining
            if ends[finished] == 0 or await consumer.position(finished) >= ends[finished]
        ]:
            del remaining[partition]
    return entries


def _entry(slot: Slot, record: "ConsumerRecord[bytes, bytes]") -> Entry:
    headers = {name: text.decode(errors="replace") for name, text in record.headers}
    return Entry(
        topic=slot[0],
        partition=slot[1],
        offset=record.offset,
        key=(record.key or b"").decode(errors="replace"),
        id=headers.get("ce_id", ""),
        source=headers.get("ce_source", ""),
        kind=headers.get("ce_type", "").removeprefix("io.reballast.").partition(".v")[0],
        value=record.value or b"",
    )
