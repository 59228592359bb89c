"""The running process: an installation with its servers, until it is stopped.

The server's address and token are stored in ``endpoint.json`` in the data directory, which only its owner may
read; other commands find them there.
"""

import asyncio
import contextlib
import datetime as dt
import functools
import os
import socket
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio.lowlevel
import msgspec
from msgspec import Struct
from prometheus_client.registry import Collector

from engine import diagnostics, loop_lag, private_files
from engine.controllers import autoscaling, cron_scaling, finished_jobs
from engine.controllers.controller import Access
from engine.http import app, incoming_requests, request_metrics, services, sessions
from engine.http import server as http_server
from engine.http.kube import app as kube_app
from engine.http.kube import write_modes
from engine.http.kube.members import endpoints as member_endpoints
from engine.http.query import health
from engine.identity import certificates, client_certificates, kubeconfig, server_token
from engine.identity import endpoint as endpoints
from engine.karmada.default_tolerations import TolerationSeconds
from engine.log.kafka import address
from engine.process import (
    checkpoint_signing,
    health_endpoint,
    installation,
    kept_ports,
    log_locations,
    periodic_drills,
    shared_keys,
    stop_signals,
)
from engine.process.log_queries import LogInquiry
from engine.process.plans.remote import PlanProcesses
from engine.process.replica import Replica, clock_ms
from engine.simulation import specs
from engine.writing import write_api
from engine.writing.planned_writes import PlannedWrites
from events.validation import manifests
from projections import as_of_views

if TYPE_CHECKING:
    # Import this module for types only: loading it takes a tenth of the start-up time, and most servers do not need it.
    from engine.process import observer_service

_ANY_ADDRESS: Final = "0.0.0.0"  # noqa: S104  # compared with, not listened on
_NO_TLS: Final = "use --tls, or a proxy with TLS in front of the server"
_log = diagnostics.logger(__name__)


class Options(Struct, frozen=True, kw_only=True):
    """Options of a server: data directory, listening address, simulated members.

    - ``kube_port``: port of the Kubernetes API, which always uses TLS.
    - ``hosts``: names, besides the loopback, that clients use for the server; ``connections_max`` is for each API.
    - ``tls``: serve the query API with TLS, with the local certificate or the ``configured_certificates``.
    - ``log``: address of a log on Kafka; None for the file in the directory.
    - ``works``: whether this process also owns shards (on Kafka).
    - ``token``: the server's token; empty to create one. ``login_seconds``: validity of the browser login code.
    - ``tolerated``: seconds for which policies that set no tolerations tolerate failing clusters.
    - ``checkpoints``: when and where checkpoints of the log are signed; None for never.
    - ``observed``: another control plane whose objects and decisions this one observes.
    - ``drill_every_s``: how often the failure of each cluster, zone, region and provider is predicted; 0 for never.
    - ``on_ready``: called with the endpoint and the ports of the last run that were not free.

    Port 0 means the port of the last run if it is free, else any.
    """

    directory: Path
    host: str = health_endpoint.LOOPBACK
    port: int = 0
    kube_port: int = 0
    hosts: Sequence[str] = ()
    connections_max: int = http_server.CONNECTIONS_MAX
    tls: bool = False
    configured_certificates: certificates.Certificates | None = None
    members: Sequence[specs.MemberSpec] = ()
    log: str | None = None
    works: bool = True
    token: str = ""
    login_seconds: float = sessions.LOGIN_SECONDS
    tolerated: TolerationSeconds = TolerationSeconds()
    checkpoints: checkpoint_signing.Schedule | None = None
    observed: "observer_service.Observed | None" = None
    drill_every_s: float = 0
    on_ready: Callable[[endpoints.Endpoint, Sequence[int]], None] | None = None


async def serve(options: Options) -> None:
    """Run a server until SIGTERM or SIGINT, then decide waiting inputs within a deadline and stop.

    Raises port.LogLockedError if another process uses the directory, port.LogMixedError, OSError if a port is taken.
    """
    http_server.allow_files(options.connections_max)
    kept = await asyncio.to_thread(kept_ports.read, options.directory)
    with (
        contextlib.closing(_listen_again(options.host, options.port, kept.port)) as listening,
        contextlib.closing(_listen_again(options.host, options.kube_port, kept.kube_port)) as secured,
    ):
        async with (
            loop_lag.measured() as lag,
            _running(options) as running,
            contextlib.aclosing(_planner(running, options)) as planner,
        ):
            running.collectors.extend([lag, requests := request_metrics.RequestMetrics()])
            observer = _observer(running, options)
            entrance = _write_api(running, options.tolerated)
            if options.log is not None:
                await shared_keys.share(options.directory, entrance, running.views)
            own = await asyncio.to_thread(_certificates, options)
            shown = (options.configured_certificates or own) if options.tls else None
            endpoint = await asyncio.to_thread(_endpoint, options, (listening, secured), own, shown)
            parts = _services(running, entrance, planner, endpoint, options, observer)
            periodic = _drills(parts, running, options)
            members = running.members if options.members else None
            kube_application = kube_app.create_app(parts, clock_ms, members, authority=own.authority)

            def planning(writes: PlannedWrites) -> http_server.Application:
                mode = write_modes.planned(writes)
                return kube_app.create_app(parts, clock_ms, members, authority=own.authority, writes=mode)

            application = app.create_app(parts, members, kube_application, planning)
            queries = requests.measured("query", application)
            server = http_server.server(queries, shown, options.connections_max)
            objects = requests.measured("kubernetes", kube_application)
            kube = http_server.server(objects, own, options.connections_max, own.clients)
            with stop_signals.stopping_servers((server, kube), parts.stopping):
                await asyncio.to_thread(_publish, options.directory, endpoint)
                ports = kept_ports.Ports(port=_port(listening), kube_port=_port(secured))
                await asyncio.to_thread(kept_ports.keep, options.directory, ports)
                _announce(options, endpoint, _lost_ports(options, kept, ports))
                names = [member.name for member in options.members]
                await asyncio.gather(
                    server.serve(sockets=[listening]),
                    kube.serve(sockets=[secured]),
                    member_endpoints.connect(parts, entrance, names, endpoint.kube_url, own.authority),
                    checkpoint_signing.run(
                        options.checkpoints,
                        lambda: contextlib.nullcontext(running.log),
                        clock_ms,
                        parts.stopping,
                    ),
                    _control(parts, kube_application, options),
                    *([observer.run(parts.stopping)] if observer is not None else ()),
                    *([periodic.run()] if periodic is not None else ()),
                )
                await asyncio.to_thread((options.directory / endpoints.FILE).unlink, missing_ok=True)
            _log.info("stopping", data=str(options.directory))


async def _control(
    parts: services.Services, kube_application: kube_app.KubeApplication, options: Options
) -> None:
    """Run the controllers that use the write API; on Kafka also answer other replicas' requests for the shared keys."""
    access = Access(parts, kube_application.plane, parts.write_api, clock_ms)
    await asyncio.gather(
        autoscaling.Autoscaling(access).run(),
        cron_scaling.CronScaling(access).run(),
        finished_jobs.FinishedJobs(access).run(),
        kube_application.run(),
        *([shared_keys.answer(parts, parts.write_api, options.directory)] if options.log is not None else ()),
    )


async def serve_alone(application: http_server.Application, directory: Path) -> None:
    """Serve one application with TLS until SIGTERM or SIGINT; writes the endpoint file as ``serve`` does."""
    options = Options(directory=directory)
    with contextlib.closing(http_server.listen(health_endpoint.LOOPBACK, 0)) as secured:
        own = await asyncio.to_thread(_certificates, options)
        endpoint = await asyncio.to_thread(_endpoint, options, (secured, secured), own, own)
        server = http_server.server(application, own)
        with stop_signals.stopping_servers((server,), asyncio.Event()):
            await asyncio.to_thread(_publish, directory, endpoint)
            await server.serve(sockets=[secured])


def run(serving: Coroutine[object, object, None]) -> None:
    """Run a coroutine, such as ``serve(...)``, on a new event loop of the kind that the servers use."""
    # anyio imports its asyncio backend at first use; cause that here, where the import does not block the event
    # loop of a starting server.
    anyio.run(anyio.lowlevel.checkpoint)
    with asyncio.Runner(loop_factory=http_server.new_event_loop) as runner:
        runner.run(serving)


def _certificates(options: Options) -> certificates.Certificates:
    """Create the local certificate with all names of the server."""
    names = {health_endpoint.LOOPBACK, options.host, *options.hosts} - {_ANY_ADDRESS}
    return certificates.make(options.directory, dt.datetime.now(dt.UTC), names)


def _endpoint(
    options: Options,
    sockets: tuple[socket.socket, socket.socket],
    own: certificates.Certificates,
    shown: certificates.Certificates | None,
) -> endpoints.Endpoint:
    """Return the addresses of both APIs and write the kubeconfig; ``shown`` is the query API's certificate, if any."""
    port, kube_port = map(_port, sockets)
    host = health_endpoint.LOOPBACK if options.host == _ANY_ADDRESS else options.host
    token = options.token or server_token.load_or_create(options.directory)
    kube_url = f"https://{host}:{kube_port}"
    names = [member.name for member in options.members]
    path = kubeconfig.write(options.directory, kube_url, token, own.authority, names)
    return endpoints.Endpoint(
        url=f"{'https' if shown else 'http'}://{host}:{port}",
        token=token,
        pid=os.getpid(),
        kube_url=kube_url,
        kubeconfig=str(path),
        authority=shown.authority.decode() if shown else "",
        login=sessions.new_code(),
        observes="" if options.observed is None else options.observed.name,
    )


@contextlib.asynccontextmanager
async def _running(options: Options) -> AsyncGenerator[Replica]:
    """Run log, views, members and, depending on the options, a worker, until the block ends; yield the replica."""
    if options.log is None:
        observes = options.observed is not None
        async with installation.opened(options.directory, options.members, observes=observes) as running:
            yield running
        return
    from engine.process import scaleout  # noqa: PLC0415  # a log in a file needs no client of Kafka

    async with contextlib.AsyncExitStack() as stack:
        collectors: list[Collector] = []
        if options.works:
            working = await stack.enter_async_context(scaleout.worker_on(address.parse(options.log)))
            collectors.append(working.figures)
        replica = await stack.enter_async_context(
            scaleout.replica_on(options.log, options.directory, options.members)
        )
        replica.collectors.extend(collectors)
        yield replica


async def work(
    where: str,
    watch: health_endpoint.Watch | None = None,
    checkpoints: checkpoint_signing.Schedule | None = None,
) -> None:
    """Run a worker on a log on Kafka until SIGTERM or SIGINT, with a health endpoint at ``watch`` if given.

    If ``checkpoints`` is set, the worker signs checkpoints of the log; set it for one worker of a log only. Raises
    OSError if the port of ``watch`` is taken.
    """
    from engine.process import scaleout  # noqa: PLC0415  # a log in a file needs no client of Kafka

    stopping = asyncio.Event()
    with stop_signals.on_signals(stopping.set):
        async with contextlib.AsyncExitStack() as stack:
            listening = stack.enter_context(health_endpoint.listen(watch)) if watch else None
            lag = await stack.enter_async_context(loop_lag.measured())
            working = await stack.enter_async_context(scaleout.worker_on(address.parse(where)))
            _log.info("worker started", log=address.parse(where).servers)
            if listening is not None:
                application = health.monitoring_app(working.is_ready, [working.figures, lag], working.reasons)
                await stack.enter_async_context(health_endpoint.served(application, listening))
            log_location = log_locations.LogLocation(address=where)
            await checkpoint_signing.run(
                checkpoints, lambda: log_locations.opened(log_location), clock_ms, stopping
            )
            await stopping.wait()


async def project(where: str, directory: Path) -> None:
    """Keep the views in a directory up to date with a log on Kafka until SIGTERM or SIGINT."""
    from engine.process import scaleout  # noqa: PLC0415  # a log in a file needs no client of Kafka

    stopping = asyncio.Event()
    with stop_signals.on_signals(stopping.set):
        async with scaleout.replica_on(where, directory, extends=False):
            _log.info("projector started", log=address.parse(where).servers, data=str(directory))
            await stopping.wait()


def _write_api(running: Replica, tolerated: TolerationSeconds) -> write_api.WriteApi:
    return write_api.WriteApi(
        running.log,
        write_api.ProjectedObjects(running.views),
        clock_ms,
        lambda: str(uuid.uuid4()),
        tolerated=tolerated,
    )


def _planner(running: Replica, options: Options) -> PlanProcesses:
    location = log_locations.of_server(running.directory, options.log)
    return PlanProcesses(location, options.members, running.members.statuses)


def _services(
    running: Replica,
    entrance: write_api.WriteApi,
    planner: PlanProcesses,
    endpoint: endpoints.Endpoint,
    options: Options,
    observer: "observer_service.Observing | None",
) -> services.Services:
    return services.Services(
        log=running.log,
        views=running.views,
        as_of_views=as_of_views.AsOfViews(running.log, manifests.check),
        write_api=entrance,
        inquiry=LogInquiry(running.directory, options.log),
        planner=planner,
        token=endpoint.token,
        url=endpoint.kube_url,
        sign=functools.partial(client_certificates.signed, options.directory),
        login=sessions.Login(endpoint.login, time.time() + options.login_seconds),
        hosts=(options.host, *options.hosts),
        faults=running.faults,
        collectors=running.collectors,
        compared=None if observer is None else observer.report,
    )


def _observer(running: Replica, options: Options) -> "observer_service.Observing | None":
    """Create the observer of another control plane and export its metrics; None if the options name none."""
    if options.observed is None:
        return None
    alone_in = options.directory if options.log is None else None
    observer = options.observed.observer(running.log, clock_ms, alone_in)
    running.collectors.append(observer)
    return observer


def _announce(options: Options, endpoint: endpoints.Endpoint, lost_ports: Sequence[int]) -> None:
    """Report that the server is ready."""
    _log.info("ready", url=endpoint.url, data=str(options.directory))
    if not options.tls and not incoming_requests.is_loopback(options.host):
        _log.warning("the query API is open to the network without TLS", remedy=_NO_TLS)
    if options.on_ready is not None:
        options.on_ready(endpoint, lost_ports)


def _drills(parts: services.Services, running: Replica, options: Options) -> periodic_drills.Drills | None:
    """Create the periodic drills and export their metrics; None if the options turn them off."""
    if not options.drill_every_s:
        return None
    periodic = periodic_drills.Drills(
        parts, parts.planner, parts.periodic_drills, options.drill_every_s, clock_ms
    )
    running.collectors.append(periodic)
    return periodic


def _listen_again(host: str, port: int, kept: int) -> socket.socket:
    """Listen on ``port``; for 0, on the port of the last run (``kept``), or on any port if that one is taken."""
    if not port and kept:
        with contextlib.suppress(OSError):
            return http_server.listen(host, kept)
    return http_server.listen(host, port)


def _port(listening: socket.socket) -> int:
    return int(listening.getsockname()[1])


def _lost_ports(options: Options, kept: kept_ports.Ports, ports: kept_ports.Ports) -> list[int]:
    """Return the ports of the last run that other processes use now."""
    port_choices = (
        (options.port, kept.port, ports.port),
        (options.kube_port, kept.kube_port, ports.kube_port),
    )
    return [before for requested, before, now in port_choices if before and not requested and before != now]


def _publish(directory: Path, endpoint: endpoints.Endpoint) -> None:
    """Write the endpoint file atomically and readable by its owner only."""
    private_files.write(directory / endpoints.FILE, msgspec.json.encode(endpoint))
