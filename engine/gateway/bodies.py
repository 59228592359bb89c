"""Bodies of requests, read no further than their limit."""

from starlette.requests import Request


class TooLargeError(Exception):
    """A body over its limit; the words name it."""


async def read(request: Request, bytes_max: int) -> bytes:
    """The whole body; raises TooLargeError as soon as it is over the limit."""
    found = bytearray()
    async for chunk in request.stream():
        found += chunk
        if len(found) > bytes_max:
            raise TooLargeError(f"over {bytes_max} bytes")
    return bytes(found)
