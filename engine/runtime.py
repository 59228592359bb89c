"""The running process: an installation with its doors, until it is told to stop.

Where the server listens, and the token that it asks for, stand in ``endpoint.json`` in the data directory, which only
its owner may read; the other commands find them there.
"""

import asyncio
import contextlib
import datetime as dt
import os
import signal
import socket
import sys
import threading
import uuid
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Sequence
from pathlib import Path
from typing import Final

import msgspec
import uvicorn
import uvloop
from msgspec import Struct
from prometheus_client.registry import Collector

from engine import (
    certificates,
    diagnostics,
    installation,
    kept_tokens,
    kubeconfig,
    loop_lag,
    scaleout,
    sharing,
)
from engine import endpoint as endpoints
from engine.gateway import app, door, door_views, services, watching
from engine.gateway.kube import app as kube_app
from engine.gateway.kube import connecting
from engine.inquiry import LogInquiry
from engine.kube.default_tolerations import TolerationSeconds
from engine.log.kafka import address
from engine.members import defaults, specs
from engine.replica import Replica, clock_ms
from events import forms
from projections import moments

LOOPBACK: Final = "127.0.0.1"
_BACKLOG: Final = 256
_STOP_SECONDS: Final = 5
_KEEP_ALIVE_SECONDS: Final = 120
"""Longer than Go's clients keep a connection that nobody uses, so that no request meets one that is being closed."""

END_SECONDS: Final = 15
"""A process that was told to stop has ended by then: clients of brokers that are gone would wait for them for ever."""

_NOT_IN_TIME: Final = (
    b"error: not stopped in time, ending as it is; the next start finds out what is in the log\n"
)

_log = diagnostics.logger(__name__)


class Options(Struct, frozen=True, kw_only=True):
    """How to run: where the data are, where to listen (port 0 for any), which members.

    ``kube_port`` is that of the Kubernetes API, which speaks TLS.

    ``log`` is the address of a log on Kafka, None for the file in the directory; ``works`` tells whether this process
    owns shards too. ``token`` is what the server asks for; empty for one that it makes. ``tolerated`` is for how long
    policies tolerate clusters that fail, where they don't say. ``on_ready`` is told where the server listens, once it
    does.
    """

    directory: Path
    host: str = LOOPBACK
    port: int = 0
    kube_port: int = 0
    members: Sequence[specs.MemberSpec] = ()
    log: str | None = None
    works: bool = True
    token: str = ""
    tolerated: TolerationSeconds = TolerationSeconds()
    on_ready: Callable[[endpoints.Endpoint], None] | None = None


class Watch(Struct, frozen=True, kw_only=True):
    """Where a process without a gateway shows whether it is well; port 0 for any."""

    host: str = LOOPBACK
    port: int = 0


def default_members() -> list[specs.MemberSpec]:
    """The three clusters of the tutorial."""
    return defaults.three()


async def serve(options: Options) -> None:
    """Runs until SIGTERM or SIGINT, then decides what waits, within a deadline, and stops.

    Raises port.LogLockedError where another process runs on the directory, OSError where the port is taken.
    """
    with (
        contextlib.closing(_listen(options.host, options.port)) as listening,
        contextlib.closing(_listen(options.host, options.kube_port)) as secured,
    ):
        async with loop_lag.measured() as lag, _running(options) as running:
            running.collectors.append(lag)
            entrance = _door(running, options.tolerated)
            if options.log is not None:
                await sharing.share(options.directory, entrance, running.views)
            endpoint, found = await asyncio.to_thread(_endpoint, options, listening, secured)
            parts = _services(running, entrance, endpoint.token, options.log)
            members = running.members if options.members else None
            kube_application = kube_app.create_app(parts, clock_ms, members, authority=found.authority)
            server = _Server(_config(app.create_app(parts, members, kube_application)))
            kube = _Server(_config(kube_application, found))
            with _signals((server, kube), parts.stopping):
                await asyncio.to_thread(_publish, options.directory, endpoint)
                _log.info("ready", url=endpoint.url, data=str(options.directory))
                if options.on_ready is not None:
                    options.on_ready(endpoint)
                names = [member.name for member in options.members]
                await asyncio.gather(
                    server.serve(sockets=[listening]),
                    kube.serve(sockets=[secured]),
                    connecting.connect(parts, names, endpoint.kube_url, found.authority),
                    *([sharing.answer(parts, options.directory)] if options.log is not None else ()),
                )
                await asyncio.to_thread((options.directory / endpoints.FILE).unlink, missing_ok=True)
            _log.info("stopping", data=str(options.directory))


async def serve_alone(application: Callable[..., object], directory: Path) -> None:
    """Serves one application with TLS until SIGTERM or SIGINT; its address is left in the directory as by ``serve``."""
    options = Options(directory=directory)
    with contextlib.closing(_listen(LOOPBACK, 0)) as secured:
        endpoint, found = await asyncio.to_thread(_endpoint, options, secured, secured)
        server = _Server(_config(application, found))
        with _signals((server,), asyncio.Event()):
            await asyncio.to_thread(_publish, directory, endpoint)
            await server.serve(sockets=[secured])


def run(serving: Coroutine[object, object, None]) -> None:
    """Runs one of these on the event loop that servers run on: TLS costs half as much there."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serving)


def _endpoint(
    options: Options, listening: socket.socket, secured: socket.socket
) -> tuple[endpoints.Endpoint, certificates.Certificates]:
    """Where the servers are, with the kubeconfig that says so, and the certificate of the one with TLS."""
    addresses = tuple(sorted({LOOPBACK, options.host}))
    found = certificates.make(options.directory, dt.datetime.now(dt.UTC), addresses)
    token = options.token or kept_tokens.kept(options.directory)
    kube_url = f"https://{LOOPBACK}:{secured.getsockname()[1]}"
    names = [member.name for member in options.members]
    path = kubeconfig.write(options.directory, kube_url, token, found.authority, names)
    endpoint = endpoints.Endpoint(
        url=f"http://{LOOPBACK}:{listening.getsockname()[1]}",
        token=token,
        pid=os.getpid(),
        kube_url=kube_url,
        kubeconfig=str(path),
    )
    return endpoint, found


@contextlib.asynccontextmanager
async def _running(options: Options) -> AsyncGenerator[Replica]:
    """What stands behind the server, for as long as the block lasts."""
    if options.log is None:
        async with installation.opened(options.directory, options.members) as running:
            yield running
        return
    async with contextlib.AsyncExitStack() as stack:
        collectors: list[Collector] = []
        if options.works:
            working = await stack.enter_async_context(scaleout.worker_on(address.parse(options.log)))
            collectors.append(working.figures)
        found = await stack.enter_async_context(
            scaleout.replica_on(options.log, options.directory, options.members)
        )
        found.collectors.extend(collectors)
        yield found


async def work(where: str, watch: Watch | None = None) -> None:
    """Runs a worker on a log on Kafka until SIGTERM or SIGINT; ``watch`` it there, or nowhere.

    Raises OSError where that port is taken.
    """
    stopping = asyncio.Event()
    with on_signals(stopping.set):
        async with contextlib.AsyncExitStack() as stack:
            listening = stack.enter_context(_listening(watch)) if watch else None
            lag = await stack.enter_async_context(loop_lag.measured())
            working = await stack.enter_async_context(scaleout.worker_on(address.parse(where)))
            _log.info("working", log=address.parse(where).servers)
            if listening is not None:
                application = watching.create_app(working.is_ready, [working.figures, lag], working.reasons)
                await stack.enter_async_context(_served(application, listening))
            await stopping.wait()


@contextlib.asynccontextmanager
async def watched(
    watch: Watch, is_ready: Callable[[], bool], collector: Collector, reasons: Callable[[], Sequence[str]]
) -> AsyncGenerator[None]:
    """Shows, beside the block, whether the process is well; raises OSError where the port is taken."""
    with _listening(watch) as listening:
        async with loop_lag.measured() as lag:
            application = watching.create_app(is_ready, [collector, lag], reasons)
            async with _served(application, listening):
                yield


@contextlib.asynccontextmanager
async def _served(application: Callable[..., object], listening: socket.socket) -> AsyncGenerator[None]:
    """Serves beside the block."""
    server = _Server(_config(application))
    _log.info("watched", port=listening.getsockname()[1])
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(server.serve(sockets=[listening]))
        try:
            yield
        finally:
            server.should_exit = True


async def project(where: str, directory: Path) -> None:
    """Keeps the views in a directory level with a log on Kafka until SIGTERM or SIGINT."""
    stopping = asyncio.Event()
    with on_signals(stopping.set):
        async with scaleout.replica_on(where, directory, extends=False):
            _log.info("projecting", log=address.parse(where).servers, data=str(directory))
            await stopping.wait()


class _Server(uvicorn.Server):
    """A server whose signals are the process's own business."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leaves the signals as they are."""
        yield


def _door(running: Replica, tolerated: TolerationSeconds) -> door.Door:
    return door.Door(
        running.log,
        door_views.StoredViews(running.views),
        clock_ms,
        lambda: str(uuid.uuid4()),
        tolerated=tolerated,
    )


def _services(running: Replica, entrance: door.Door, token: str, where: str | None) -> services.Services:
    return services.Services(
        log=running.log,
        views=running.views,
        moments=moments.Moments(running.log, forms.check),
        door=entrance,
        inquiry=LogInquiry(running.directory, where),
        token=token,
        collectors=running.collectors,
    )


def _config(
    application: Callable[..., object], secured: certificates.Certificates | None = None
) -> uvicorn.Config:
    return uvicorn.Config(
        application,
        ssl_certfile=secured.certificate if secured else None,
        ssl_keyfile=secured.key if secured else None,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=_STOP_SECONDS,
        server_header=False,
        # Nobody stands before it whose word about clients would count.
        proxy_headers=False,
    )


def _listening(watch: Watch) -> contextlib.closing[socket.socket]:
    return contextlib.closing(_listen(watch.host, watch.port))


def _listen(host: str, port: int) -> socket.socket:
    # Named as TCP, so that asyncio turns off the delay of small writes on each connection.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
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
def _signals(servers: Sequence[uvicorn.Server], stopping: asyncio.Event) -> Generator[None]:
    """The first SIGTERM or SIGINT stops in order, the second at once; ``stopping`` ends what would go on for ever."""

    def stop() -> None:
        for server in servers:
            server.force_exit = server.should_exit
            server.should_exit = True
        stopping.set()

    with on_signals(stop):
        yield


@contextlib.contextmanager
def on_signals(stop: Callable[[], None]) -> Generator[None]:
    """Calls ``stop`` on SIGTERM or SIGINT; a process that has not ended some time later is ended as it is."""
    loop = asyncio.get_running_loop()
    kinds = (signal.SIGTERM, signal.SIGINT)

    def stop_in_time() -> None:
        stop()
        last = threading.Timer(END_SECONDS, _end)
        last.daemon = True
        last.start()

    for kind in kinds:
        loop.add_signal_handler(kind, stop_in_time)
    try:
        yield
    finally:
        for kind in kinds:
            loop.remove_signal_handler(kind)


def _end() -> None:
    """Ends the process as it is: whatever it left undone is found again by whoever goes on."""
    os.write(sys.stderr.fileno(), _NOT_IN_TIME)
    os._exit(1)
