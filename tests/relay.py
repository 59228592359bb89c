"""A TCP relay: cut off, nothing passes and nothing is closed, as in a partition; stopped, it resets connections."""

import asyncio
import contextlib
import ssl
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
        self._is_stopped = False
        self._open: set[asyncio.StreamWriter] = set()

    def stop(self) -> None:
        """Reset all connections, and new ones at once."""
        self._is_stopped = True
        for writer in self._open:
            writer.transport.abort()

    def start(self) -> None:
        """Serve again."""
        self._is_stopped = False

    async def serve(self, tls: ssl.SSLContext | None = None, port: int = 0) -> asyncio.Server:
        server = await asyncio.start_server(self._connected, "127.0.0.1", port, ssl=tls)
        self.url = f"http{'s' * bool(tls)}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        return server

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_stopped:
            writer.transport.abort()
            return
        target_reader, back = await asyncio.open_connection(self._url.hostname, self._url.port)
        self._open |= {writer, back}
        # Cancelled if a test ends during a partition.
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            await asyncio.gather(self._pass(reader, back), self._pass(target_reader, writer))
        self._open -= {writer, back}

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while chunk := await reader.read(_CHUNK):
                await self.passing.wait()
                if writer.is_closing():
                    return
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
