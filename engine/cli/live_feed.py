"""The live feed of the log, for commands that follow changes."""

from collections.abc import Generator, Iterator
from typing import Final, cast

import msgspec

from engine.cli.client import Client
from events.json_values import Json

_DATA: Final = "data:"


def last_number(client: Client) -> int:
    """The sequence number of the newest record."""
    return int(str(cast("Json", client.get("lag")).get("lastNumber", 0)))


def events(client: Client, after: int, topic: str = "") -> Iterator[Json]:
    """Records after a number as they are appended, until the server stops; reconnects if it was cut off."""
    mark: int | None = after
    while mark is not None:
        mark = yield from _followed(client, mark, topic)


def _followed(client: Client, after: int, topic: str) -> Generator[Json, None, int | None]:
    """Records of one connection; returns the number to continue from if it was cut off, None if the server stopped."""
    with client.stream("live", after=after, topic=topic) as lines:
        for line in lines:
            if not line.startswith(_DATA):
                continue
            event = msgspec.json.decode(line.removeprefix(_DATA), type=dict[str, object])
            if "number" not in event:
                return int(str(event.get("after", after)))
            yield event
    return None
