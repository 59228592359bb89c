"""The one order of all records: extents of partitions, in the topic ``sequence`` (design section 2).

An extent is a stretch of one partition; its first record has the extent's first number, and each offset counts, those
of the brokers' own marks too. Extents that don't join what was accepted before have no effect, whoever wrote them: so
several replicas may append them at once, and all fold the same order.
"""

import bisect
from array import array
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec import Struct

from engine.log.kafka.clients import Slot
from events import records
from events.records import Record, StoredRecord

TOPIC: Final = "sequence"
SLOT: Final = (TOPIC, 0)


class Extent(Struct, frozen=True, array_like=True, gc=False):
    """Offsets of a partition from ``start`` up to, not including, ``end``."""

    topic: str
    partition: int
    start: int
    end: int


class Extents(Struct, frozen=True):
    """Extents in their order; the first one begins with number ``first``. ``by`` is the replica that wrote them."""

    first: int
    by: str
    extents: tuple[Extent, ...]


class Numbered(Struct, frozen=True):
    """A stretch of a partition and the number of its first offset."""

    slot: Slot
    start: int
    end: int
    first: int


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Extents).decode


def record(extents: Extents) -> Record:
    """Extents as a record."""
    return records.record(TOPIC, 0, TOPIC, {"content-type": "application/json"}, _encode(extents))


def read(found: StoredRecord) -> Extents | None:
    """The extents in a record; None for what are none."""
    try:
        return _decode(found.value)
    except msgspec.DecodeError:
        return None


class Sequence:
    """Which number each offset has, as far as extents were taken in."""

    def __init__(self) -> None:
        self.next = 1
        self.by = ""
        self._slots: list[Slot] = []
        self._places: dict[Slot, int] = {}
        self._slot_of = array("i")
        self._firsts = array("q")
        self._starts = array("q")
        self._mine: dict[Slot, tuple[array[int], array[int]]] = {}
        self._ends: dict[Slot, int] = {}

    def __len__(self) -> int:
        """How many stretches of partitions it has."""
        return len(self._firsts)

    def end(self, slot: Slot) -> int:
        """Up to which offset a partition is numbered."""
        return self._ends.get(slot, 0)

    def joins(self, extents: Extents) -> bool:
        """Whether extents follow what was accepted."""
        if extents.first != self.next or not extents.extents:
            return False
        ends: dict[Slot, int] = {}
        for each in extents.extents:
            slot = (each.topic, each.partition)
            if each.start != ends.get(slot, self.end(slot)) or each.end <= each.start:
                return False
            ends[slot] = each.end
        return True

    def take(self, extents: Extents) -> bool:
        """Takes in the next extents; False where they have no effect."""
        if not self.joins(extents):
            return False
        self.by = extents.by
        for each in extents.extents:
            self._append((each.topic, each.partition), each.start, each.end)
        return True

    def number(self, slot: Slot, offset: int) -> int:
        """The number of an offset that is numbered already."""
        starts, firsts = self._mine[slot]
        index = bisect.bisect_right(starts, offset) - 1
        return firsts[index] + offset - starts[index]

    def after(self, number: int) -> Iterator[Numbered]:
        """The stretches behind a number, in order; the first one may be the rest of one."""
        if number + 1 >= self.next:
            return
        index = bisect.bisect_right(self._firsts, number + 1) - 1
        while index < len(self._firsts):
            first, start = self._firsts[index], self._starts[index]
            following = self._firsts[index + 1] if index + 1 < len(self._firsts) else self.next
            skipped = max(number + 1 - first, 0)
            slot = self._slots[self._slot_of[index]]
            yield Numbered(slot, start + skipped, start + following - first, first + skipped)
            index += 1

    def _append(self, slot: Slot, start: int, end: int) -> None:
        place = self._places.get(slot)
        if place is None:
            place = self._places[slot] = len(self._slots)
            self._slots.append(slot)
            self._mine[slot] = (array("q"), array("q"))
        self._slot_of.append(place)
        self._firsts.append(self.next)
        self._starts.append(start)
        starts, firsts = self._mine[slot]
        starts.append(start)
        firsts.append(self.next)
        self._ends[slot] = end
        self.next += end - start


def extents(sequence: Sequence, by: str, ends: Iterable[tuple[Slot, int]]) -> Extents:
    """What is new up to these ends, in their order."""
    found = tuple(
        Extent(slot[0], slot[1], sequence.end(slot), end) for slot, end in ends if end > sequence.end(slot)
    )
    return Extents(sequence.next, by, found)
