"""Streaming responses. They end when the client disconnects, or at a time limit.

The server disconnects clients that stop reading.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from engine.http.counted_responses import CountedResponse
from events import records

SECONDS_MAX: Final = 3_600
_SECONDS: Final = 1_800
"""Duration of a stream in seconds if the client sets no timeout."""


class Parts(Response):
    """A streaming response that sends parts of JSON for at most ``seconds``.

    ``ended``, unless None, is called when the response ends.
    """

    def __init__(self, parts: AsyncGenerator[bytes], seconds: float) -> None:
        super().__init__(None, 200, media_type=records.JSON)
        del self.headers["content-length"]
        self._parts = parts
        self._seconds = seconds
        self.ended: Callable[[], None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._stream(scope, receive, send)
        finally:
            if self.ended is not None:
                self.ended()

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        # End a response to HEAD at once: it has no body, so its client would only wait until the stream ends.
        sending = asyncio.ensure_future(
            asyncio.sleep(0) if scope.get("method") == "HEAD" else self._send(send)
        )
        disconnected = asyncio.ensure_future(_wait_for_disconnect(receive))
        try:
            await asyncio.wait(
                (sending, disconnected), timeout=self._seconds, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            for task in (sending, disconnected):
                task.cancel()
            ended, _ = await asyncio.gather(sending, disconnected, return_exceptions=True)
            # Close the generator explicitly, so that its ``finally`` ends the subscription now and not at a
            # later garbage collection.
            await self._parts.aclose()
        # Do not report a client that disconnected; raise any other error.
        if isinstance(ended, Exception) and not isinstance(ended, OSError):
            raise ended
        with contextlib.suppress(OSError):
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send(self, send: Send) -> None:
        # An empty part sends the headers at once, before the first event.
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        async for part in self._parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})


class Lines(CountedResponse, Parts):
    """The response to a watch: each part is a line. The response is in ``open_watches`` while it is sent.

    ``timeout_s`` is the duration that the client requests; 0 if it requests none.
    """

    def __init__(self, parts: AsyncGenerator[bytes], timeout_s: int, open_watches: set[Response]) -> None:
        super().__init__(parts, min(timeout_s or _SECONDS, SECONDS_MAX))
        self.open_responses = open_watches


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
