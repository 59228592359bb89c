"""Bodies of requests, read no further than their limit, and for no longer than a client goes on sending."""

import asyncio
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from engine import diagnostics, loop_share

SILENT_SECONDS: Final = 30.0
"""How long a client may send nothing in the middle of a body."""

_CLOSED: Final = 499
"""Nobody reads this answer; proxies log the same number for a client that closed its connection."""

_log = diagnostics.logger("gateway")


class TooLargeError(Exception):
    """A body over its limit; the message names it."""


class StalledError(Exception):
    """A client stopped sending in the middle of a body; the message says for how long."""


def announced(request: Request) -> int:
    """How large a body is, as the client says; one that does not say may be large."""
    length = request.headers.get("content-length", "")
    return int(length) if length.isdecimal() else loop_share.LARGE_BYTES + 1


async def read(request: Request, bytes_max: int) -> bytes:
    """The whole body.

    Raises TooLargeError as soon as it is over the limit, StalledError where the client stops sending, and
    ClientDisconnect where it disconnects.
    """
    found = bytearray()
    chunks = aiter(request.stream())
    while True:
        try:
            async with asyncio.timeout(SILENT_SECONDS):
                found += await anext(chunks)
        except StopAsyncIteration:
            return bytes(found)
        except TimeoutError:
            raise StalledError(f"nothing of the body came for {SILENT_SECONDS:.0f} s") from None
        if len(found) > bytes_max:
            raise TooLargeError(f"over {bytes_max} bytes")


async def disconnected(request: Request, _error: Exception) -> Response:
    """The answer to a client that disconnected in the middle of a body, for ``exception_handlers``."""
    _log.debug("client disconnected", method=request.method, path=request.url.path)
    return Response(status_code=_CLOSED)
