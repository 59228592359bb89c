"""Feeds and watches that several clients open at the same time."""

import asyncio

from starlette.types import ASGIApp, Message

from tests.api.servers import get_scope


async def statuses(app: ASGIApp, address: str, count: int, *, send_s: float = 0.0) -> list[int]:
    """Open feeds at once, end them when each has a response, and return the sorted HTTP statuses.

    ``address`` is a path, perhaps with a query. Each client takes ``send_s`` seconds to receive a part of a response.
    """
    ended, received = asyncio.Event(), list[int]()

    async def receive() -> Message:
        await ended.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        await asyncio.sleep(send_s)
        if message["type"] == "http.response.start":
            received.append(message["status"])

    async def open_feed() -> None:
        await app(get_scope(address), receive, send)

    async with asyncio.TaskGroup() as feeds:
        for _ in range(count):
            feeds.create_task(open_feed())
        while len(received) < count:  # noqa: ASYNC110  # the application shows nothing else
            await asyncio.sleep(0.01)
        ended.set()
    return sorted(received)
