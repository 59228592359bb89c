"""TCP proxy in front of a broker that drops responses or resets connections.

The client then does not know whether its request took effect.
"""

import asyncio
import contextlib
import random
import socket
import struct
import threading
from collections.abc import Generator
from typing import Final

from tests.brokers.processes import LocalBrokers

_BYTES: Final = 65_536
_NO_LINGER: Final = struct.pack("ii", 1, 0)
"""SO_LINGER value with which close() sends a reset (RST) instead of an orderly end (FIN)."""


class Proxy:
    """Runs in its own thread; ``drop_responses``, ``answer`` and ``reset`` are safe to call from other threads."""

    def __init__(self, chance: random.Random) -> None:
        self.port = 0
        self.swallowed = 0
        self.broken = 0
        self._target = 0
        self._chance = chance
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)
        self._mute: set[asyncio.StreamWriter] = set()
        self._lost: set[asyncio.StreamWriter] = set()
        self._open: set[asyncio.StreamWriter] = set()

    def start(self) -> None:
        self._thread.start()
        self._started.wait()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def connect(self, port: int) -> None:
        """Set the broker's port."""
        self._target = port

    def drop_responses(self, share: float) -> None:
        """Drop the responses on this share (0 to 1) of the connections, until ``answer`` is called."""

        def mute() -> None:
            writers = sorted(self._open, key=id)
            self._mute = set(self._chance.sample(writers, round(len(writers) * share)))

        self._loop.call_soon_threadsafe(mute)

    def answer(self) -> None:
        """Pass responses again; connections that lost some are aborted, since half a response cannot be parsed."""

        def cut() -> None:
            for writer in self._lost:
                writer.transport.abort()
            self._mute.clear()
            self._lost.clear()

        self._loop.call_soon_threadsafe(cut)

    def reset(self, share: float) -> None:
        """Reset this share (0 to 1) of the open connections, in the middle of any transfer."""

        def cut() -> None:
            writers = sorted((writer for writer in self._open if not writer.is_closing()), key=id)
            for writer in self._chance.sample(writers, round(len(writers) * share)):
                connection: socket.socket = writer.get_extra_info("socket")
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
                writer.transport.abort()
                self.broken += 1

        self._loop.call_soon_threadsafe(cut)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        self._started.set()
        self._loop.run_forever()
        server.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            target_reader, back = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        self._open.add(writer)
        try:
            with contextlib.suppress(OSError):
                await asyncio.gather(self._pass(reader, back), self._pass(target_reader, writer))
        finally:
            self._open.discard(writer)
            for stream in (writer, back):
                stream.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_BYTES):
            if writer in self._mute or writer in self._lost:
                self._lost.add(writer)
                self.swallowed += 1
                continue
            writer.write(data)
            await writer.drain()
        raise ConnectionResetError("one side is gone")


class ProxiedBroker(LocalBrokers):
    """A broker with two listeners: clients connect through the proxy, the broker's own traffic bypasses it."""

    def __init__(self, port: int) -> None:
        # The port is chosen by the base class, so the listeners are added afterwards.
        properties = {"listener.security.protocol.map": _PROTOCOLS}
        super().__init__(1, properties=properties)
        (node,) = self.nodes
        own = f"PLAINTEXT://127.0.0.1:{node.port}"
        proxied = f"PROXIED://127.0.0.1:{node.port - _BELOW}"
        controller = f"CONTROLLER://127.0.0.1:{node.controller_port}"
        properties["listeners"] = f"{own},{controller},{proxied}"
        properties["advertised.listeners"] = f"{own},PROXIED://127.0.0.1:{port}"
        self.proxied_port = node.port - _BELOW


_PROTOCOLS: Final = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,PROXIED:PLAINTEXT"
_BELOW: Final = 12_000
"""Distance of the proxied listener's port below the broker's own; outside the range used for brokers."""


@contextlib.contextmanager
def proxied(seed: str) -> Generator[tuple[ProxiedBroker, Proxy]]:
    """Start a broker behind a proxy; clients connect to ``proxy.port``."""
    proxy = Proxy(random.Random(seed))  # noqa: S311  # choices of a test
    proxy.start()
    try:
        with ProxiedBroker(proxy.port) as broker:
            proxy.connect(broker.proxied_port)
            yield broker, proxy
    finally:
        proxy.stop()
