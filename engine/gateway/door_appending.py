"""The door's way into the log: events with envelopes, and whether they took effect.

Whether a write took effect follows from its partition alone: its version stands, or nobody wrote the object between
the look at it and the write.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from engine.gateway import door_wishes as wishes
from engine.gateway import tracing
from engine.gateway.door_results import Problem
from engine.log import port
from events import codec, envelope, partitioning, records, rejections, shapes, times, topics
from events.tracing import Trace

_CONTENT_BYTES_MAX: Final = 4096
_READ_RECORDS_MAX: Final = 1024
SOURCE: Final = "/reballast/door"


class Appended(Struct, frozen=True, kw_only=True):
    """Where the events of one write stand: the first offset, the last, and the last one's number."""

    first: int
    last: int
    number: int


class Writing(Struct, frozen=True):
    """Events about one object that go into the log together, and the trace that they belong to."""

    target: wishes.Target
    events: Sequence[shapes.Event]
    trace: Trace


class Report(NamedTuple):
    """What an agent says: the key that it stands under, the event, and the event's id, which a retry repeats."""

    key: str
    event: shapes.Event
    id: str


class Appending:
    """Puts events into envelopes and appends them. Clock and ids come from outside."""

    def __init__(self, log: port.NumberedLog, clock_ms: Callable[[], int], new_id: Callable[[], str]) -> None:
        self._log = log
        self._clock_ms = clock_ms
        self._new_id = new_id

    async def write(self, batch: Sequence[Writing], source: str) -> list[Appended]:
        """Appends the events of several writes, all or none; raises what the log raises."""
        time = times.to_text(self._clock_ms())
        flat: list[records.Record] = []
        for each in batch:
            key = each.target.key
            flat.extend(self._record(event, key, source, time, each.trace) for event in each.events)
        stored = iter(await self._log.append(flat))
        found: list[Appended] = []
        for each in batch:
            own = [next(stored) for _event in each.events]
            found.append(Appended(first=own[0].offset, last=own[-1].offset, number=own[-1].number))
        return found

    async def reject(self, unfit: Sequence[wishes.Unfit], source: str) -> None:
        """Leaves a rejection for each document that was refused."""
        if unfit:
            time = times.to_text(self._clock_ms())
            await self._log.append([self._rejection(entry, source, time) for entry in unfit])

    async def report(self, batch: Sequence[Report], source: str) -> None:
        """Appends reports, all or none; raises what the log raises."""
        if batch:
            time, trace = times.to_text(self._clock_ms()), tracing.current()
            flat = [self._record(each.event, each.key, source, time, trace, each.id) for each in batch]
            await self._log.append(flat)

    async def untouched(self, target: wishes.Target, start: int, end: int) -> bool:
        """Whether nobody wrote the object from offset ``start`` up to, not including, ``end``."""
        partition = partition_of(target)
        while start < end:
            found = await self._log.read(target.topic, partition, start, min(end - start, _READ_RECORDS_MAX))
            if any(record.key == target.key for record in found if record.offset < end):
                return False
            if not found:
                return True
            start = found[-1].offset + 1
        return True

    def _record(  # one argument for each part of an envelope
        self, event: shapes.Event, key: str, source: str, time: str, trace: Trace, given: str = ""
    ) -> records.Record:
        topic = codec.catalogue.BY_STRUCT[type(event)].topic
        head = envelope.Envelope(
            id=given or self._new_id(),
            source=source,
            type=codec.type_of(event),
            subject=key,
            time=time,
            traceparent=trace.parent,
            tracestate=trace.state,
        )
        partition = partitioning.partition_of(key, topics.TOPICS[topic].partitions)
        return codec.encode(event, head, partition=partition, key=key)

    def _rejection(self, unfit: wishes.Unfit, source: str, time: str) -> records.Record:
        target, problems = unfit.target, unfit.problems
        first = next(iter(problems))
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        topic = target.topic if target else topics.SPECS
        event = rejections.InputRejected(
            verdict="refused",
            field=first.field,
            reason=_whole(first) + more,
            topic=topic,
            key=target.key if target else "",
            source=source,
            content=cut(unfit.content),
        )
        return self._record(event, topic, source, time, tracing.current())


def partition_of(target: wishes.Target) -> int:
    """The partition on which all writes of an object stand."""
    return partitioning.partition_of(target.key, topics.TOPICS[target.topic].partitions)


def cut(content: str) -> str:
    """The beginning of a content, at most 4 KiB of UTF-8."""
    return content[:_CONTENT_BYTES_MAX].encode(errors="replace")[:_CONTENT_BYTES_MAX].decode(errors="ignore")


def _whole(problem: Problem) -> str:
    place = f"{problem.file}:{problem.line}: " if problem.file and problem.line else ""
    return f"{place}{problem.reason}" + (f"; {problem.remedy}" if problem.remedy else "")
