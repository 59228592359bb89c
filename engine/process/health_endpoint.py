"""The health endpoint of a process without an API: ``/healthz``, ``/readyz`` and ``/metrics``."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Final

from msgspec import Struct
from prometheus_client.registry import Collector

from engine import diagnostics, loop_lag
from engine.http import server as http_server
from engine.http.query import health

LOOPBACK: Final = "127.0.0.1"
_log = diagnostics.logger(__name__)


class Watch(Struct, frozen=True, kw_only=True):
    """Listening address of a health endpoint; port 0 means any free port."""

    host: str = LOOPBACK
    port: int = 0


@contextlib.asynccontextmanager
async def watched(
    watch: Watch, is_ready: Callable[[], bool], collector: Collector, reasons: Callable[[], Sequence[str]]
) -> AsyncGenerator[None]:
    """Serve a health endpoint until the block ends.

    ``reasons`` returns the reasons why the process is not ready. Raises OSError if the port is taken.
    """
    with listen(watch) as listening:
        async with loop_lag.measured() as lag:
            application = health.monitoring_app(is_ready, [collector, lag], reasons)
            async with served(application, listening):
                yield


@contextlib.asynccontextmanager
async def served(application: http_server.Application, listening: socket.socket) -> AsyncGenerator[None]:
    """Serve an application until the block ends."""
    server = http_server.server(application)
    _log.info("monitoring started", port=listening.getsockname()[1])
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(server.serve(sockets=[listening]))
        try:
            yield
        finally:
            server.should_exit = True


def listen(watch: Watch) -> contextlib.closing[socket.socket]:
    return contextlib.closing(http_server.listen(watch.host, watch.port))
