"""The order in which records get sequence numbers: no effect before its cause.

An output gets its number after the step that its id names. A step gets its number after its inputs, which are the
records before the offsets in its ``ends``. Brokers show the partitions of a transaction one after the other, so a cause
may become visible later than its effect. Then the effect and all later records of its partition wait for the cause;
other partitions continue.

A record may name a cause that will never exist; such a record must not block its partition. All causes of a genuine
record were written before the record was committed. So when this replica first sees the record, it queries up to which
offsets the partitions of the causes are written, open transactions included. If a cause is not found up to these
offsets, it does not exist.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct, field

from engine.log import port
from engine.log.kafka.clients import Slot
from events import codec, decisions, ids, topics
from events.records import StoredRecord

ORDER: Final = tuple(topics.TOPICS)
"""Topics in the order in which they are examined: causes before effects, so that few passes are needed."""

_READ: Final = 2_000
_SCANNED_MAX: Final = 10_000
"""Records of a partition that are examined per turn; a longer backlog is numbered in several turns."""

_STEPS_MAX: Final = 65_536
"""Number of steps whose offsets are kept. Older steps have been read, so their outputs need not wait for them."""


_NOT_ASKED: Final[Mapping[Slot, int]] = {}


class Partitions(Protocol):
    """The methods of a log that ``Ordering`` uses."""

    def ends(self) -> port.Ends:
        """Return the known end of the committed records of each partition."""
        ...

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        """Return committed records of a partition from an offset on."""
        ...

    async def passed(self, slots: Sequence[Slot]) -> Mapping[Slot, int]:
        """Return the offsets up to which partitions were read, control records included."""
        ...

    async def written(self, slots: Sequence[Slot]) -> Mapping[Slot, int]:
        """Return the offsets up to which partitions are written, open transactions included."""
        ...


class Need(Struct, frozen=True):
    """A cause of a record: its partition and the offset after it; for a step, its id, as its offset is unknown."""

    slot: Slot
    end: int = 0
    step: str = ""


class _Waiting(Struct, frozen=True):
    """A record that is numbered only after its causes (``needs``).

    ``before`` is the offset after the previous record; while the record waits, the partition is numbered up to
    there. Control records between ``before`` and ``offset`` are numbered together with the record, so that no
    ``OffsetRange`` consists of control records only.
    """

    offset: int
    before: int
    needs: tuple[Need, ...]


class _Queue(Struct):
    """Scan state of a partition: the offset up to which it is scanned, and its records with causes."""

    scanned: int = 0
    waiting: deque[_Waiting] = field(default_factory=deque)


class _BlockingRecord(Struct):
    """The record at ``offset``, which blocks its partition because one of its causes has no number yet.

    ``written`` has the end of the partition of each cause, open transactions included, as it was when this replica
    first saw the record.
    """

    offset: int
    written: Mapping[Slot, int] = {}


class OffsetRange(Struct, frozen=True):
    """A range of offsets of a partition that may be numbered next."""

    slot: Slot
    start: int
    end: int


class Ordering:
    """Plans which records can be numbered, from the records that this replica has read."""

    def __init__(self, log: Partitions) -> None:
        self._log = log
        self._queues: dict[Slot, _Queue] = {}
        self._steps: dict[str, int] = {}
        self._blocking_records: dict[Slot, _BlockingRecord] = {}

    async def plan(self, numbered: Callable[[Slot], int]) -> list[OffsetRange]:
        """Return the ranges to number next, in order; ``numbered`` returns a partition's first offset without a number.

        Raises LogError or KafkaError if the brokers do not answer.
        """
        needed = sorted({slot for blocking in self._blocking_records.values() for slot in blocking.written})
        passed = await self._log.passed(needed)
        # Read the ends only after the ``passed`` offsets: the scan then includes all records before these offsets.
        ends = {slot: end for slot, end in self._log.ends().items() if slot[0] in ORDER}
        start = {slot: numbered(slot) for slot in ends}
        for slot, end in ends.items():
            await self._scan(slot, start[slot], end)
        attempt = _Plan(self._queues, self._steps, self._blocking_records, start, passed, ends)
        stretches = attempt.ranges()
        await self._query_causes(attempt)
        return stretches

    async def _scan(self, slot: Slot, start: int, end: int) -> None:
        """Scan the new records of a partition for causes."""
        queue = self._queues.setdefault(slot, _Queue())
        while queue.waiting and queue.waiting[0].offset < start:
            queue.waiting.popleft()
        queue.scanned = max(queue.scanned, start)
        if slot[0] == topics.HEALTH:
            # Reports have no causes to wait for: no step emits them, and a member only reports on works it has read.
            queue.scanned = max(queue.scanned, end)
        last = min(end, queue.scanned + _SCANNED_MAX)
        while queue.scanned < last:
            batch = await self._log.read(*slot, queue.scanned, min(_READ, last - queue.scanned))
            for record in batch:
                if record.offset >= end:
                    break
                before, queue.scanned = queue.scanned, record.offset + 1
                if needs := _needs(record):
                    queue.waiting.append(_Waiting(record.offset, before, needs))
                if (step := _step(record)) is not None:
                    self._steps.setdefault(step, record.offset)
                    if len(self._steps) > _STEPS_MAX:
                        del self._steps[next(iter(self._steps))]
            if not batch or batch[-1].offset >= end:
                # Only control records lie between the last record and the end.
                queue.scanned = end if not batch else queue.scanned
                break

    async def _query_causes(self, attempt: "_Plan") -> None:
        """For each newly waiting record, query the written ends of its causes' partitions (see ``_BlockingRecord``)."""
        waiting = attempt.waiting()
        self._blocking_records = {
            slot: blocking
            for slot, blocking in self._blocking_records.items()
            if slot in waiting and waiting[slot].offset == blocking.offset
        }
        new = {slot: front for slot, front in waiting.items() if slot not in self._blocking_records}
        if not new:
            return
        slots = sorted({need.slot for front in new.values() for need in front.needs})
        # Query only now that the records are known: unless a record is forged, its causes were written before
        # it was committed, so the queried ends include them.
        written = dict(await self._log.written(slots))
        for slot, front in new.items():
            self._blocking_records[slot] = _BlockingRecord(
                front.offset, {need.slot: written[need.slot] for need in front.needs}
            )


class _Plan:
    """One planning run: how far each partition can be numbered."""

    def __init__(
        self,
        queues: Mapping[Slot, _Queue],
        steps: Mapping[str, int],
        blocking_records: Mapping[Slot, _BlockingRecord],
        start: Mapping[Slot, int],
        passed: Mapping[Slot, int],
        ends: Mapping[Slot, int],
    ) -> None:
        self._queues = queues
        self._steps = steps
        self._blocking_records = blocking_records
        self._at = dict(start)
        self._next = dict.fromkeys(start, 0)
        self._passed = passed
        self._ends = ends
        self._slots = sorted(start, key=lambda slot: (ORDER.index(slot[0]), slot[1]))

    def ranges(self) -> list[OffsetRange]:
        """Return all ranges that can be numbered, in order."""
        ordered: list[OffsetRange] = []
        while True:
            before = len(ordered)
            for slot in self._slots:
                start, self._at[slot] = self._at[slot], self._range_end(slot)
                if self._at[slot] > start:
                    ordered.append(OffsetRange(slot, start, self._at[slot]))
            if len(ordered) == before and not self._break_cycle():
                return ordered

    def waiting(self) -> dict[Slot, _Waiting]:
        """Return the first waiting record of each partition that has one."""
        return {slot: front for slot in self._slots if (front := self._first_waiting(slot)) is not None}

    def _first_waiting(self, slot: Slot) -> _Waiting | None:
        queue = self._queues[slot]
        return queue.waiting[self._next[slot]] if self._next[slot] < len(queue.waiting) else None

    def _range_end(self, slot: Slot) -> int:
        """Return the end of the offsets that can be numbered; a waiting record or the scanned end limits them."""
        while (front := self._first_waiting(slot)) is not None:
            if self._missing(slot, front) is not None:
                return max(front.before, self._at[slot])
            # Count the record as numbered: later records of the same partition may have it as a cause.
            self._at[slot] = front.offset + 1
            self._next[slot] += 1
        return max(self._queues[slot].scanned, self._at[slot])

    def _missing(self, slot: Slot, front: _Waiting) -> Need | None:
        """Return the first cause that has no number but exists or may exist; None if the record need not wait."""
        blocking = self._blocking_records.get(slot)
        written = blocking.written if blocking is not None and blocking.offset == front.offset else _NOT_ASKED
        return next((need for need in front.needs if not self._is_met(need, written.get(need.slot))), None)

    def _is_met(self, need: Need, written: int | None) -> bool:
        at = self._at.get(need.slot, 0)
        if need.step:
            offset = self._steps.get(need.step)
            if offset is not None:
                return at > offset
            return written is not None and self._read(need.slot) >= written
        if at >= need.end or (written is not None and need.end > written):
            return True
        return at >= self._ends.get(need.slot, 0) and self._read(need.slot) >= need.end

    def _read(self, slot: Slot) -> int:
        """Return the offset up to which a partition is scanned; includes control records after its last record."""
        queue = self._queues.get(slot)
        scanned = queue.scanned if queue is not None else 0
        return max(scanned, self._passed.get(slot, 0)) if scanned >= self._ends.get(slot, 0) else scanned

    def _break_cycle(self) -> bool:
        """If records wait for one another in a cycle, let one pass; only forged records can cause a cycle."""
        for first in self._slots:
            slot: Slot | None = first
            visited: set[Slot] = set()
            while slot is not None and slot not in visited:
                visited.add(slot)
                slot = self._blocking_partition(slot)
            if slot == first:
                self._next[first] += 1
                return True
        return False

    def _blocking_partition(self, slot: Slot) -> Slot | None:
        """Return the partition of the cause that a partition waits for; None if the cause has not been read."""
        front = self._first_waiting(slot)
        need = None if front is None else self._missing(slot, front)
        if need is None:
            return None
        end = self._steps.get(need.step, -1) + 1 if need.step else need.end
        return need.slot if 0 < end <= self._read(need.slot) else None


def _needs(record: StoredRecord) -> tuple[Need, ...]:
    """Return the causes of a record: the step of an output, or the inputs of a step, given by their ends."""
    if record.topic != topics.DECISIONS:
        step = _named_step(record)
        return () if step is None else (Need((topics.DECISIONS, step[0]), step=step[1]),)
    taken = codec.event_of(record) if _step(record) is not None else None
    return tuple(_inputs(record.partition, taken.ends)) if isinstance(taken, decisions.StepTaken) else ()


def _inputs(shard: int, ends: Mapping[str, int]) -> Iterator[Need]:
    for topic, end in sorted(ends.items()):
        if topic in topics.FACT_TOPICS or topic in topics.OWN_TOPICS:
            yield Need((topic, 0 if topic in topics.FACT_TOPICS else shard), end)


def _step(record: StoredRecord) -> str | None:
    """Return the id of the step in a decisions record; None for other records."""
    if record.topic != topics.DECISIONS or not record.headers.get("ce_id", "").endswith(_STEP_INDEX):
        return None
    named = _named_step(record)
    return named[1] if named is not None and named[0] == record.partition else None


_STEP_INDEX: Final = "-0"


def _named_step(record: StoredRecord) -> tuple[int, str] | None:
    """Return the shard and the step in a record's id; None for records that no step emitted."""
    if not record.headers.get("ce_source", "").startswith(ids.SHARD_SOURCE):
        return None
    output = record.headers.get("ce_id", "")
    try:
        shard, _term, _number = ids.step_of(output)
    except ValueError:
        return None
    return (shard, output.rpartition("-")[0]) if 0 <= shard < topics.SHARDS else None
