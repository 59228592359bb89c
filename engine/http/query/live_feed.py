"""The live feed: each record as a server-sent event, once the views have folded it.

Each reader reads the log at its own pace; nothing is buffered for slow readers. A reader that falls too far
behind is disconnected with a bookmark event to continue from.
"""

from collections.abc import AsyncGenerator
from typing import Final

import msgspec
from sse_starlette.event import ServerSentEvent
from sse_starlette.sse import EventSourceResponse
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from engine.http.counted_responses import CountedResponse
from engine.http.errors import RefusalError
from engine.http.query import parameters, record_pages
from engine.http.query.api_routes import feed_route, read_query
from engine.http.query.response_types import entry
from engine.log.port import LogCutError
from engine.writing.read_side import ReadSide

READERS_MAX: Final = 64
BEHIND_RECORDS_MAX: Final = 50_000
"""A reader that has caught up is disconnected when it falls more than this many sequence numbers behind."""

_BATCH_RECORDS: Final = 256
_PING_SECONDS: Final = 15
_ID_DIGITS_MAX: Final = 18
_encode = msgspec.json.Encoder().encode


def route(reads: ReadSide) -> Route:
    readers: set[Response] = set()

    async def live(request: Request) -> Response:
        query = read_query(request, parameters.LiveQuery)
        record_pages.check_topic(query.topic)
        after = _after(request, query, reads.log.last_number())
        if after < reads.views.folded:
            # Read once before the stream starts: if the records are no longer kept, the response is 410,
            # after which a browser does not reconnect.
            await reads.folded_records(after, 1)
        if len(readers) >= READERS_MAX:
            raise RefusalError(
                429, "live", f"the limit of {READERS_MAX} live feeds is reached", "try again later"
            )

        return _Feed(follow(reads, after, query.topic, query.key), readers)

    return feed_route("/live", live)


class _Feed(CountedResponse, EventSourceResponse):
    """The response of a live feed; it is counted in ``readers`` while it is sent."""

    def __init__(self, events: AsyncGenerator[ServerSentEvent], readers: set[Response]) -> None:
        super().__init__(events, ping=_PING_SECONDS)  # pyright: ignore[reportUnknownMemberType]
        self.open_responses = readers


async def follow(reads: ReadSide, after: int, topic: str, key: str) -> AsyncGenerator[ServerSentEvent]:
    """Yield the matching records after a sequence number, until the client disconnects.

    Ends with an event ``not-kept`` if the next records were deleted, and with a ``bookmark`` to continue from if
    the reader falls too far behind or the process stops.
    """
    was_level = False
    while await reads.is_more(after):
        behind = reads.views.folded - after
        if was_level and behind > BEHIND_RECORDS_MAX:
            break
        was_level = was_level or behind <= _BATCH_RECORDS
        try:
            records, level = await reads.folded_records(after, _BATCH_RECORDS)
        except LogCutError as error:
            yield ServerSentEvent(_encode({"reason": str(error)}).decode(), event="not-kept")
            return
        for record in records:
            after = record.number
            if record_pages.fits(record, topic, key):
                shown = entry(record)
                yield ServerSentEvent(_encode(shown).decode(), event=shown.type or "malformed", id=str(after))
        after = level
    yield bookmark(after)


def bookmark(after: int) -> ServerSentEvent:
    """The event that names the number to continue from, as ``after`` or ``Last-Event-ID``."""
    return ServerSentEvent(_encode({"after": after}).decode(), event="bookmark", id=str(after))


def _after(request: Request, query: parameters.LiveQuery, last: int) -> int:
    """The number that the feed starts after; Last-Event-ID, sent on reconnect, overrides the query."""
    remembered = request.headers.get("last-event-id", "")
    if not remembered:
        return last if query.after is None else query.after
    if not (remembered.isascii() and remembered.isdecimal() and len(remembered) <= _ID_DIGITS_MAX):
        raise RefusalError(
            400,
            "Last-Event-ID",
            f"{remembered[:40]!r} is not a number",
            "send the id of an event of this feed",
        )
    return int(remembered)
