"""The live feed of the log, for commands that follow changes."""

from collections.abc import Generator, Iterator
from typing import Final

import msgspec
from msgspec import Struct

from engine.cli.client import Client
from engine.http.query.record_json import Entry
from engine.http.query.response_types import Lag

_DATA: Final = "data:"


class _Bookmark(Struct, frozen=True):
    """The last message of a connection. The next connection starts after the number ``after``.

    Records have a ``number``, bookmarks have none.
    """

    number: int | None = None
    after: int | None = None


def last_number(client: Client) -> int:
    """The sequence number of the newest record."""
    return client.get("lag", Lag).last_number


def events(client: Client, after: int, topic: str = "") -> Iterator[Entry]:
    """Yield the records after a number, and each later one once it is appended, until the server stops.

    The server may end a connection with a bookmark; a new connection then continues after the bookmark's number.
    """
    mark: int | None = after
    while mark is not None:
        mark = yield from _followed(client, mark, topic)


def _followed(client: Client, after: int, topic: str) -> Generator[Entry, None, int | None]:
    """Yield the records of a connection. Return the number in its last bookmark, or None if the server stopped."""
    with client.stream("live", after=after, topic=topic) as lines:
        for line in lines:
            if not line.startswith(_DATA):
                continue
            text = line.removeprefix(_DATA)
            bookmark = msgspec.json.decode(text, type=_Bookmark)
            if bookmark.number is None:
                return bookmark.after or after
            yield msgspec.json.decode(text, type=Entry)
    return None
