"""The running process: an installation with its doors, until it is told to stop.

Where the server listens, and the token that it asks for, stand in ``endpoint.json`` in the data directory, which only
its owner may read; the other commands find them there.
"""

import asyncio
import contextlib
import os
import secrets
import signal
import socket
import uuid
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Final

import msgspec
import structlog
import uvicorn
from msgspec import Struct

from engine import endpoint as endpoints
from engine import installation
from engine.gateway import app, door, door_views, services
from engine.inquiry import LogInquiry
from engine.installation import Installation
from engine.members import defaults, specs
from events import forms
from projections import rebuild

_TOKEN_BYTES: Final = 32
_BACKLOG: Final = 256
_STOP_SECONDS: Final = 5
_log = structlog.get_logger(__name__)


class Options(Struct, frozen=True, kw_only=True):
    """How to run: where the data are, which port of the loopback to listen on (0 for any), which members.

    ``on_ready`` is told where the server listens, once it does.
    """

    directory: Path
    port: int = 0
    members: Sequence[specs.MemberSpec] = ()
    on_ready: Callable[[endpoints.Endpoint], None] | None = None


def default_members() -> list[specs.MemberSpec]:
    """The three clusters of the tutorial."""
    return defaults.three()


async def serve(options: Options) -> None:
    """Runs until SIGTERM or SIGINT, then decides what waits, within a deadline, and stops.

    Raises port.LogLockedError where another process runs on the directory, OSError where the port is taken.
    """
    with contextlib.closing(_listen(options.port)) as listening:
        async with installation.opened(options.directory, options.members) as running:
            endpoint = endpoints.Endpoint(
                url=f"http://127.0.0.1:{listening.getsockname()[1]}",
                token=secrets.token_urlsafe(_TOKEN_BYTES),
                pid=os.getpid(),
            )
            parts = _services(running, endpoint.token)
            application = app.create_app(parts, running.members if options.members else None)
            server = _Server(_config(application))
            with _signals(server, parts.stopping):
                await asyncio.to_thread(_publish, options.directory, endpoint)
                _log.info("ready", url=endpoint.url, data=str(options.directory))
                if options.on_ready is not None:
                    options.on_ready(endpoint)
                await server.serve(sockets=[listening])
                await asyncio.to_thread((options.directory / endpoints.FILE).unlink, missing_ok=True)
            _log.info("stopping", data=str(options.directory))


class _Server(uvicorn.Server):
    """A server whose signals are the process's own business."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leaves the signals as they are."""
        yield


def _services(running: Installation, token: str) -> services.Services:
    entrance = door.Door(
        running.log,
        door_views.StoredViews(running.views),
        installation.clock_ms,
        lambda: str(uuid.uuid4()),
    )
    return services.Services(
        log=running.log,
        views=running.views,
        moments=rebuild.Moments(running.log, forms.check),
        door=entrance,
        inquiry=LogInquiry(running.directory),
        token=token,
    )


def _config(application: Callable[..., object]) -> uvicorn.Config:
    return uvicorn.Config(
        application,
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=_STOP_SECONDS,
        server_header=False,
    )


def _listen(port: int) -> socket.socket:
    # Named as TCP, so that asyncio turns off the delay of small writes on each connection.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        listening.listen(_BACKLOG)
    except OSError:
        listening.close()
        raise
    return listening


def _publish(directory: Path, endpoint: endpoints.Endpoint) -> None:
    """Writes the endpoint so that nobody ever reads half of it, and nobody else reads it at all."""
    path = directory / f"{endpoints.FILE}.new"
    path.touch(mode=0o600)
    path.write_bytes(msgspec.json.encode(endpoint))
    path.rename(directory / endpoints.FILE)


@contextlib.contextmanager
def _signals(server: uvicorn.Server, stopping: asyncio.Event) -> Generator[None]:
    """The first SIGTERM or SIGINT stops in order, the second at once; ``stopping`` ends what would go on for ever."""
    loop = asyncio.get_running_loop()

    def stop() -> None:
        server.force_exit = server.should_exit
        server.should_exit = True
        stopping.set()

    kinds = (signal.SIGTERM, signal.SIGINT)
    for kind in kinds:
        loop.add_signal_handler(kind, stop)
    try:
        yield
    finally:
        for kind in kinds:
            loop.remove_signal_handler(kind)
