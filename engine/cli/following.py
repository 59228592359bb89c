"""The live feed of the log, for commands that go on with what changes."""

from collections.abc import Generator, Iterator
from typing import Final, cast

import msgspec

from engine.cli.client import Client, Json

_DATA: Final = "data:"


def last_number(client: Client) -> int:
    """The number of the newest record."""
    return int(str(cast("Json", client.get("lag")).get("lastNumber", 0)))


def events(client: Client, after: int, topic: str = "") -> Iterator[Json]:
    """The records behind a number, as they come, until the server stops."""
    mark: int | None = after
    while mark is not None:
        mark = yield from _followed(client, mark, topic)


def _followed(client: Client, after: int, topic: str) -> Generator[Json, None, int | None]:
    """The records of one connection; where to go on if the server cut this reader off, None if it stopped."""
    with client.stream("live", after=after, topic=topic) as lines:
        for line in lines:
            if not line.startswith(_DATA):
                continue
            each = msgspec.json.decode(line.removeprefix(_DATA), type=dict[str, object])
            if "number" not in each:
                return int(str(each.get("after", after)))
            yield each
    return None
