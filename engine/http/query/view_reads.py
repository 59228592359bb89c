"""Reads of the views in a thread: after they have caught up with the log, or as of an earlier number."""

import re
import time
from collections.abc import Callable
from typing import Final, TypeVar

import anyio.to_thread

from engine.http.errors import RefusalError
from engine.log.port import NumberedLog
from engine.writing.read_side import ReadSide
from events import times, topics
from projections import as_of_views, query
from projections.port import Rows, Tables

_Answer = TypeVar("_Answer")
_Item = TypeVar("_Item")
_NUMBER_DIGITS_MAX: Final = 18
_CLOCK_DIFFERENCE_MS: Final = times.MINUTE_MS
"""How far a client's clock may be ahead of this server's clock, in milliseconds."""
_POSITION: Final = re.compile(r"(\w{1,32})/([0-9]{1,6})/([0-9]{1,18})", re.ASCII)


class Reader:
    """Run queries on the views, as of a sequence number; None means the current state."""

    def __init__(self, reads: ReadSide, past: as_of_views.AsOfViews) -> None:
        self._reads = reads
        self._past = past

    async def resolve(self, as_of: str) -> int | None:
        """Return the number of the last record that an as-of value includes, as ``resolve`` of this module does."""
        return await resolve(self._reads.log, as_of)

    async def read(self, number: int | None, select: Callable[[Rows], _Answer]) -> _Answer:
        """Query the views as of a number.

        None means the current state. In this case, first wait until the views include every answered write of any
        replica.
        """
        if number is None:
            return await self._reads.read(select)
        async with self._past.at(number) as store:
            return await anyio.to_thread.run_sync(_query_store, store, select)

    async def page(
        self, number: int | None, list_page: Callable[..., query.Page[_Item]], limit: int, after: str
    ) -> query.Page[_Item]:
        """Return a page of a list as of a number; raises RefusalError if ``after`` is not the end of a page."""
        try:
            return await self.read(number, lambda rows: list_page(rows, limit=limit, after=after))
        except ValueError as error:
            remedy = "use the value of continue in the previous page"
            raise RefusalError(400, "continue", str(error), remedy) from None


def _query_store(store: Tables, select: Callable[[Rows], _Answer]) -> _Answer:
    with store.reading() as rows:
        return select(rows)


async def resolve(log: NumberedLog, as_of: str) -> int | None:
    """Return the number of the last record that an as-of value includes; None for an empty one (now).

    ``as_of`` is a number, a position (``topic/partition/offset``), a time (RFC 3339) or a duration before now.
    Raises RefusalError if it has another form, is beyond the end of the log, or in the future.
    """
    if not as_of:
        return None
    if as_of.isdecimal() and as_of.isascii():
        return await _checked(log, as_of)
    if position := _POSITION.fullmatch(as_of):
        return await _number_of(log, position[1], int(position[2]), int(position[3]))
    now_ms = time.time_ns() // 1_000_000
    if (ago_ms := times.duration_ms(as_of)) is not None:
        return await as_of_views.number_at(log, max(now_ms - ago_ms, 0))
    try:
        # An unescaped plus in a query string arrives as a space.
        at_ms = times.from_text(as_of.replace(" ", "+"))
    except (ValueError, OverflowError):
        reason = f"{as_of[:40]!r} is neither a duration, nor a time, nor a number or position of the log"
        remedy = "write 10m (ago), 2024-05-25T09:49:51Z, 1234, or decisions/3/41"
        raise RefusalError(400, "asOf", reason, remedy) from None
    if at_ms > now_ms + _CLOCK_DIFFERENCE_MS:
        raise RefusalError(400, "asOf", f"{as_of[:40]} is in the future", "use an earlier time")
    return await as_of_views.number_at(log, at_ms)


async def _checked(log: NumberedLog, digits: str) -> int:
    """Parse a number; raises RefusalError if it is beyond the end of the log."""
    number = int(digits[: _NUMBER_DIGITS_MAX + 1])
    last = log.last_number()
    if number > last:
        # Another replica may have appended the record with this number.
        last = await log.newest()
    if number > last:
        raise RefusalError(400, "asOf", f"the log ends at number {last}", "use a number up to that")
    return number


async def _number_of(log: NumberedLog, topic: str, partition: int, offset: int) -> int:
    """The sequence number of the record at a position; raises RefusalError if there is none."""
    if topic not in topics.TOPICS:
        remedy = f"use one of: {', '.join(topics.TOPICS)}"
        raise RefusalError(400, "asOf", f"unknown topic {topic!r}", remedy)
    end = log.ends().get((topic, partition), 0)
    if offset >= end:
        await log.newest()
        end = log.ends().get((topic, partition), 0)
    records = await log.read(topic, partition, offset, 1) if offset < end else []
    # On Kafka some offsets have no record: the ends of transactions.
    if not records or records[0].offset != offset:
        reason = f"there is no record {topic}/{partition}/{offset}"
        hint = f"{topic}/{partition} ends with offset {end - 1}" if end else f"{topic}/{partition} is empty"
        raise RefusalError(400, "asOf", f"{reason}: {hint}", "use a position from a timeline or the log")
    return records[0].number
