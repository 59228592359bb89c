"""The order of all records: extents of partitions in the topic ``sequence``.

An extent is a range of offsets of one partition. Its first offset has the extent's first number; every offset has a
number, also those of control records. Extents that do not continue the accepted ones without a gap have no effect,
so several replicas may append at once, and all of them get the same order.
"""

import bisect
from array import array
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Final

import msgspec
from msgspec import Struct, structs

from engine.log import port
from engine.log.kafka.clients import Slot
from engine.log.kafka.extents import ExtentFile, Row, State
from events import limits, records, topics
from events.records import Record, StoredRecord

TOPIC: Final = "sequence"
SLOT: Final = (TOPIC, 0)
SLOTS: Final[tuple[Slot, ...]] = tuple(
    (topic.name, partition) for topic in topics.TOPICS.values() for partition in range(topic.partitions)
)
"""The partitions whose records get numbers."""

EXTENTS_KEPT: Final = 65_536
"""Number of extents that stay in memory after they are written to the file; up to twice as many between cleanups."""

_RANGES_READ_MAX: Final = 256


class Extent(Struct, frozen=True, array_like=True, gc=False):
    """Offsets of a partition from ``start`` to ``end`` (exclusive)."""

    topic: str
    partition: int
    start: int
    end: int


class Extents(Struct, frozen=True):
    """Extents in order; the first one begins with number ``first``. ``by`` is the replica that wrote them.

    ``refused`` are the offsets, in the topic ``sequence``, of earlier extents that continued the accepted ones but
    named offsets that did not exist.
    """

    first: int
    by: str
    extents: tuple[Extent, ...]
    refused: tuple[int, ...] = ()

    @property
    def last(self) -> int:
        """The last number."""
        return self.first + sum(extent.end - extent.start for extent in self.extents) - 1


Read = Callable[[str, int, int, int], Awaitable[list[StoredRecord]]]
"""Returns records of a topic and partition, from an offset on, up to a limit."""


class Numbered(Struct, frozen=True):
    """A range of a partition and the number of its first offset."""

    slot: Slot
    start: int
    end: int
    first: int


async def records_of(stretches: Iterable[Numbered], read: Read, limit: int) -> list[StoredRecord]:
    """Read at most ``limit`` records of consecutive ranges, with their numbers; fewer if their values are large."""
    numbered: list[StoredRecord] = []
    size = 0
    for stretch in stretches:
        start = stretch.start
        while start < stretch.end:
            if len(numbered) >= limit or size >= port.READ_BYTES_MAX:
                return numbered
            batch = await read(*stretch.slot, start, min(limit - len(numbered), stretch.end - start))
            within = [record for record in batch if record.offset < stretch.end]
            if not within:
                break
            numbered += [
                structs.replace(record, number=stretch.first + record.offset - stretch.start)
                for record in within
            ]
            size += sum(len(record.value) for record in within)
            start = within[-1].offset + 1
    return numbered


class Counts(Struct, frozen=True):
    """Counts of the sequence's numbers and extents, of offsets that wait for numbers, and of this replica's appends."""

    numbers: int
    extents: int
    unnumbered: int
    appends: int


class Pending(Struct):
    """A record of the sequence that is read but not applied; ``extents`` is None for malformed records."""

    offset: int
    record: bytes
    extents: Extents | None


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Extents).decode


def record(extents: Extents) -> Record:
    return records.record(TOPIC, 0, TOPIC, {"content-type": "application/json"}, _encode(extents))


def read(record: StoredRecord) -> Extents | None:
    """Return the extents in a record; None if it is malformed."""
    # Check the depth first: the decoder's own limit differs between processes, but all must accept the same
    # records.
    if records.is_deeper(record.value, limits.RECORD_DEPTH_MAX):
        return None
    try:
        return _decode(record.value)
    except ValueError:
        # The base of msgspec's errors and of UnicodeDecodeError: the record is malformed.
        return None


class Sequence:
    """Maps offsets of partitions to numbers, for all applied extents.

    The newest extents are in memory; an ``extent_file`` has all extents but those added since its last write. A lookup
    of an extent that is not in memory reads the file and blocks meanwhile.
    """

    def __init__(self, extent_file: ExtentFile | None = None) -> None:
        self._extent_file = extent_file
        state = State() if extent_file is None else extent_file.state
        self.next, self.by = state.next, state.by
        self._slots: list[Slot] = []
        self._slot_indexes: dict[Slot, int] = {}
        self._ends = dict(state.slots)
        self._own_extents: dict[Slot, tuple[array[int], array[int]]] = {}
        for slot in self._ends:
            self._slot_index(slot)
        # The extents in memory, as parallel arrays. ``_before`` is the number of older extents, which only the file
        # has; ``_put`` is the number of extents in memory that the file has, too.
        self._slot_of = array("i")
        self._firsts = array("q")
        self._starts = array("q")
        self._before = state.count
        self._put = 0

    def __len__(self) -> int:
        return self._before + len(self._firsts)

    def end(self, slot: Slot) -> int:
        """Return the offset before which all offsets of a partition have numbers."""
        return self._ends.get(slot, 0)

    def continues(self, extents: Extents) -> bool:
        """Whether extents follow the accepted ones without a gap."""
        if extents.first != self.next or not extents.extents:
            return False
        ends: dict[Slot, int] = {}
        for extent in extents.extents:
            slot = (extent.topic, extent.partition)
            if extent.start != ends.get(slot, self.end(slot)) or extent.end <= extent.start:
                return False
            ends[slot] = extent.end
        return True

    def take(self, extents: Extents) -> bool:
        """Apply the next extents; return False if they have no effect."""
        if not self.continues(extents):
            return False
        self.by = extents.by
        for extent in extents.extents:
            self._append((extent.topic, extent.partition), extent.start, extent.end)
        return True

    def number(self, slot: Slot, offset: int) -> int:
        """Return the sequence number of an offset; raises LookupError if it has none."""
        starts, firsts = self._own_extents[slot]
        if starts and offset >= starts[0]:
            index = bisect.bisect_right(starts, offset) - 1
            return firsts[index] + offset - starts[index]
        if self._extent_file is None:
            raise LookupError(f"{slot[0]}/{slot[1]} has no number at offset {offset}")
        first, start = self._extent_file.extent_start(self._slot_indexes[slot], offset)
        return first + offset - start

    def after(self, number: int) -> Iterator[Numbered]:
        """Yield the ranges after a number, in order; the first one may be the rest of an extent."""
        while number + 1 < self.next:
            for stretch in self._ranges_from(number + 1):
                yield stretch
                number = stretch.first + stretch.end - stretch.start - 1

    def unwritten_count(self) -> int:
        """Return how many extents the file does not have yet."""
        return len(self._firsts) - self._put

    def put(self, read: int, record: bytes) -> tuple[State, list[Row]]:
        """Return the state of the sequence, and the extents that the file does not have yet, to be stored together.

        ``read`` is the next offset in the topic ``sequence``, ``record`` the value of the record before that offset.
        Call ``mark_written`` after storing the result.
        """
        slots = tuple((slot, self._ends[slot]) for slot in self._slots)
        rows = zip(
            self._firsts[self._put :], self._slot_of[self._put :], self._starts[self._put :], strict=True
        )
        return State(self.next, self.by, read, record, len(self), slots), list(rows)

    def mark_written(self, count: int) -> None:
        """Record that the file has ``count`` more extents; drop the oldest ones from memory if there are many."""
        self._put += count
        if self._put >= 2 * EXTENTS_KEPT:
            self._forget(self._put - EXTENTS_KEPT)

    def _forget(self, count: int) -> None:
        forgotten: dict[int, int] = {}
        for slot_index in self._slot_of[:count]:
            forgotten[slot_index] = forgotten.get(slot_index, 0) + 1
        for slot_index, slot_count in forgotten.items():
            for column in self._own_extents[self._slots[slot_index]]:
                del column[:slot_count]
        for column in (self._slot_of, self._firsts, self._starts):
            del column[:count]
        self._before += count
        self._put -= count

    def _ranges_from(self, number: int) -> list[Numbered]:
        """Return up to ``_RANGES_READ_MAX`` ranges in order, beginning at ``number``, which must exist."""
        if self._extent_file is None or (self._firsts and number >= self._firsts[0]):
            index = bisect.bisect_right(self._firsts, number) - 1
            parts = (
                column[index : index + _RANGES_READ_MAX + 1]
                for column in (self._firsts, self._slot_of, self._starts)
            )
            rows, end = list(zip(*parts, strict=True)), self.next
        else:
            rows, end = self._extent_file.rows(number, _RANGES_READ_MAX + 1)
        ranges: list[Numbered] = []
        for index, (first, slot_index, start) in enumerate(rows[:_RANGES_READ_MAX]):
            following = rows[index + 1][0] if index + 1 < len(rows) else end
            skipped = max(number - first, 0)
            ranges.append(
                Numbered(self._slots[slot_index], start + skipped, start + following - first, first + skipped)
            )
        return ranges

    def _slot_index(self, slot: Slot) -> int:
        index = self._slot_indexes.get(slot)
        if index is None:
            index = self._slot_indexes[slot] = len(self._slots)
            self._slots.append(slot)
            self._own_extents[slot] = (array("q"), array("q"))
        return index

    def _append(self, slot: Slot, start: int, end: int) -> None:
        self._slot_of.append(self._slot_index(slot))
        self._firsts.append(self.next)
        self._starts.append(start)
        starts, firsts = self._own_extents[slot]
        starts.append(start)
        firsts.append(self.next)
        self._ends[slot] = end
        self.next += end - start


def extents(
    sequence: Sequence, by: str, ends: Iterable[tuple[Slot, int]], refused: tuple[int, ...] = ()
) -> Extents:
    """Return extents for all unnumbered offsets before these ends, in the order of the ends.

    ``ends`` may have several entries for a partition; each one gives an extent.
    """
    reached: dict[Slot, int] = {}
    added: list[Extent] = []
    for slot, end in ends:
        start = reached.get(slot, sequence.end(slot))
        if end > start:
            added.append(Extent(slot[0], slot[1], start, end))
            reached[slot] = end
    return Extents(sequence.next, by, tuple(added), refused)
