"""Append events of the write API to the log, and look up whether other writes were appended in between."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from engine.log import port
from engine.writing import tracing
from engine.writing.targets import Target
from events import catalogue, codec, keys, records, shapes, times, topics
from events.tracing import Trace

_READ_RECORDS_MAX: Final = 1024
SOURCE: Final = "/reballast/door"


class Appended(Struct, frozen=True, kw_only=True):
    """Offsets of the first and last event of one write, and the sequence number of the last."""

    first: int
    last: int
    number: int


class Writing(Struct, frozen=True):
    """Events about one object to append together, and their trace."""

    target: Target
    events: Sequence[shapes.Event]
    trace: Trace


class Report(NamedTuple):
    """One reported event: its record key, the event, and the event id, which a retry repeats for deduplication."""

    key: str
    event: shapes.Event
    id: str


class Appending:
    """Wrap events in envelopes and append them."""

    def __init__(self, log: port.NumberedLog, clock_ms: Callable[[], int], new_id: Callable[[], str]) -> None:
        self._log = log
        self._clock_ms = clock_ms
        self._new_id = new_id

    async def write(self, batch: Sequence[Writing], source: str) -> list[Appended]:
        """Append the events of several writes atomically. Raises the log's errors."""
        stored = iter(await self._log.append(self.records_of(batch, source)))
        appended: list[Appended] = []
        for writing in batch:
            own = [next(stored) for _event in writing.events]
            appended.append(Appended(first=own[0].offset, last=own[-1].offset, number=own[-1].number))
        return appended

    def records_of(self, batch: Sequence[Writing], source: str) -> list[records.Record]:
        """Return the records of several writes, in order, without appending them."""
        time = times.to_text(self._clock_ms())
        return [
            self._record(event, writing.target.key, source, time, writing.trace)
            for writing in batch
            for event in writing.events
        ]

    async def report(self, batch: Sequence[Report], source: str) -> None:
        """Append reports atomically. Raises the log's errors."""
        if batch:
            time, trace = times.to_text(self._clock_ms()), tracing.CURRENT.get()
            flat = [self._record(item.event, item.key, source, time, trace, item.id) for item in batch]
            await self._log.append(flat)

    async def untouched(self, target: Target, start: int, end: int) -> bool:
        """Whether the partition has no record of the object at offsets from ``start`` to ``end`` (exclusive)."""
        while start < end:
            page = await self._log.read(*target.slot, start, min(end - start, _READ_RECORDS_MAX))
            if any(record.key == target.key for record in page if record.offset < end):
                return False
            # No records up to the end: the remaining offsets belong to transaction markers or aborted
            # records.
            if not page:
                return True
            start = page[-1].offset + 1
        return True

    def _record(  # one argument for each part of an envelope
        self, event: shapes.Event, key: str, source: str, time: str, trace: Trace, event_id: str = ""
    ) -> records.Record:
        entry = catalogue.BY_STRUCT[type(event)]
        head = records.Envelope(
            id=event_id or self._new_id(),
            source=source,
            type=entry.type,
            subject=key,
            time=time,
            traceparent=trace.parent,
            tracestate=trace.state,
        )
        partition = keys.partition_of(key, topics.TOPICS[entry.topic].partitions)
        return codec.encode(event, head, partition=partition, key=key)
