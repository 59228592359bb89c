"""A TCP relay that can be cut off: nothing passes and nothing is closed, as in a partition of the network."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import urlsplit

_CHUNK: Final = 65_536


class Relay:
    """``passing`` is cleared during a partition; ``url`` leads through the relay."""

    def __init__(self, url: str) -> None:
        self._url = urlsplit(url)
        self.url = ""
        self.passing = asyncio.Event()
        self.passing.set()

    async def serve(self) -> asyncio.Server:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        return server

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(self._url.hostname, self._url.port)
        with contextlib.suppress(ConnectionError):
            await asyncio.gather(self._pass(reader, back), self._pass(there, writer))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while chunk := await reader.read(_CHUNK):
                await self.passing.wait()
                writer.write(chunk)
                await writer.drain()
        finally:
            writer.close()


@asynccontextmanager
async def relayed(url: str) -> AsyncGenerator[Relay]:
    """Relay connections to a URL until the block ends."""
    relay = Relay(url)
    server = await relay.serve()
    try:
        yield relay
    finally:
        server.close()
