"""Pages of log records for queries: by their numbers, or all after a number."""

from collections.abc import Sequence
from typing import Final

from engine import loop_share
from engine.http.errors import RefusalError
from engine.http.query import parameters, response_types
from engine.http.query.response_types import Entry, entry
from engine.log.port import LogCutError, NumberedLog
from events import attributes, topics, tracing
from events.limits import quoted
from events.records import StoredRecord
from projections.query import ROWS_READ_MAX

_BATCH_RECORDS: Final = 512
_GAP_FACTOR: Final = 8
_PAGE_BYTES_MAX: Final = 8 * 1024 * 1024


async def numbered(log: NumberedLog, numbers: Sequence[int], *, is_full: bool) -> response_types.Entries:
    """The records with these numbers; ``after`` is set if ``is_full`` (more may match) or if the page gets too large.

    Raises LogCutError if a record is no longer kept.
    """
    items: list[Entry] = []
    size, share = 0, loop_share.LoopShare()
    for number in numbers:
        await share.pause()
        if size > _PAGE_BYTES_MAX:
            return response_types.Entries(items=items, after=items[-1].number)
        batch = await log.read_all(number - 1, 1)
        if not batch or batch[0].number != number:
            raise _not_kept(number)
        items.append(entry(batch[0]))
        size += len(batch[0].value)
    return response_types.Entries(items=items, after=numbers[-1] if is_full else 0)


async def newest(log: NumberedLog, number: int) -> Entry | None:
    """The record with this number, or the last one before it, since numbers have gaps on Kafka; None for 0.

    Raises LogCutError if that record is no longer kept.
    """
    end, size = number, 1
    while end > 0:
        start = max(end - size, 0)
        batch = await log.read_all(start, end - start)
        while batch and batch[-1].number < end and (more := await log.read_all(batch[-1].number, 1)):
            batch += more
        records = [record for record in batch if record.number <= end]
        if records:
            return entry(records[-1])
        end, size = start, size * _GAP_FACTOR
    if number:
        raise _not_kept(number)
    return None


def check_topic(topic: str) -> None:
    """Raise RefusalError for an unknown topic; empty is allowed."""
    if topic and topic not in topics.TOPICS:
        names = ", ".join(topics.TOPICS)
        raise RefusalError(400, "topic", f"unknown topic {quoted(topic)}", f"use one of: {names}")


async def behind(log: NumberedLog, query: parameters.LogQuery) -> response_types.Entries:
    """One page of the matching records after a sequence number.

    A page may be short and still have ``after`` set: the number of records searched is limited. Raises
    RefusalError for an unknown topic, LogCutError if records after the number are no longer kept.
    """
    check_topic(query.topic)
    await log.newest()
    items: list[Entry] = []
    after, looked_at, size = query.after, 0, 0
    share = loop_share.LoopShare()
    while after < log.last_number():
        batch = await log.read_all(after, _BATCH_RECORDS)
        if not batch:
            # ``last_number`` is a record's number, so an empty batch means the records were deleted.
            raise _not_kept(after + 1)
        for record in batch:
            await share.pause()
            after = record.number
            looked_at += 1
            if fits(record, query.topic, query.key) and _is_of(record, query.plan):
                items.append(entry(record))
                size += len(record.value)
            if len(items) == query.limit or size > _PAGE_BYTES_MAX or looked_at == ROWS_READ_MAX:
                return response_types.Entries(items=items, after=after if after < log.last_number() else 0)
    return response_types.Entries(items=items)


def _not_kept(number: int) -> LogCutError:
    return LogCutError(f"the log no longer has number {number}; restore its records")


def fits(record: StoredRecord, topic: str, key: str) -> bool:
    """Whether a record has this topic and is about this key; an empty topic or key matches all records."""
    has_key = key in ("", record.key) or attributes.get(record, "subject") == key
    return topic in ("", record.topic) and has_key


def _is_of(record: StoredRecord, plan: str) -> bool:
    """Whether the change of the plan with the id ``plan`` caused a record; always True if ``plan`` is empty."""
    if not plan:
        return True
    # Records of producers may lack a valid envelope; their missing attributes are read as empty.
    parent, state = (attributes.get(record, name) for name in ("traceparent", "tracestate"))
    return tracing.plan_of(tracing.trace(parent, state)) == plan
