"""An answer in lines that goes on: it ends when the client goes, when it takes nothing, or when time is up."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from engine.gateway.kube import rendering

SECONDS_MAX: Final = 3_600
SECONDS: Final = 1_800
"""How long an answer goes on where the client does not say."""

_SEND_SECONDS: Final = 30
"""A client that takes nothing for so long is gone."""


class Lines(Response):
    """An answer of lines that ends when the client goes, when it takes nothing, or when there are no more.

    ``ended`` is told of the end.
    """

    def __init__(self, lines: AsyncGenerator[bytes], seconds: float) -> None:
        super().__init__(None, 200, media_type=rendering.JSON)
        del self.headers["content-length"]
        self._lines = lines
        self._seconds = seconds
        self.ended: Callable[[], None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  # as all answers
        """Sends the lines."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        sending = asyncio.ensure_future(self._send(send))
        gone = asyncio.ensure_future(_gone(receive))
        try:
            await asyncio.wait((sending, gone), timeout=self._seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, gone):
                task.cancel()
            ended, _ = await asyncio.gather(sending, gone, return_exceptions=True)
            await self._lines.aclose()
            if self.ended is not None:
                self.ended()
        # A client that went, or took nothing, is no fault; whatever else ended the lines is to be seen.
        if isinstance(ended, Exception) and not isinstance(ended, OSError | TimeoutError):
            raise ended
        with contextlib.suppress(OSError, TimeoutError):
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send(self, send: Send) -> None:
        # An empty part brings the head on its way, before anything happens.
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        async for line in self._lines:
            async with asyncio.timeout(_SEND_SECONDS):
                await send({"type": "http.response.body", "body": line, "more_body": True})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
