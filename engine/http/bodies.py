"""Request bodies, read with a size limit and a timeout for silent clients."""

import asyncio
from typing import Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from engine import diagnostics, loop_share

SILENT_SECONDS: Final = 30.0
"""Longest pause of a client in the middle of a body."""

_CLOSED: Final = 499
"""No client reads this response; proxies log the same status for a closed connection."""

_log = diagnostics.logger("gateway")


class TooLargeError(Exception):
    """The body exceeds its limit; the message names the limit."""


class StalledError(Exception):
    """The client stopped sending in the middle of a body; the message names the timeout."""


def announced(request: Request) -> int:
    """Content-Length in bytes; without it, just over the limit above which work is moved off the event loop."""
    length = request.headers.get("content-length", "")
    return int(length) if length.isdecimal() else loop_share.LARGE_BYTES + 1


async def read(request: Request, bytes_max: int) -> bytes:
    """Read the whole body.

    Raises TooLargeError as soon as the limit is exceeded, StalledError if the client stops sending, and
    ClientDisconnect if it disconnects.
    """
    content = bytearray()
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(SILENT_SECONDS) as silence:
            while True:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                content += message.get("body", b"")
                if len(content) > bytes_max:
                    raise TooLargeError(f"the body has more than {bytes_max} bytes")
                if not message.get("more_body", False):
                    return bytes(content)
                silence.reschedule(loop.time() + SILENT_SECONDS)
    except TimeoutError:
        raise StalledError(f"no data of the request body arrived for {SILENT_SECONDS:.0f} s") from None


async def disconnected(request: Request, _error: Exception) -> Response:
    """The response for a client that disconnected in the middle of a body; for ``exception_handlers``."""
    _log.debug("client disconnected", method=request.method, path=request.url.path)
    return Response(status_code=_CLOSED)
