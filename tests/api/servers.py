"""A server over a log in memory: in the test's own loop, or on a port for clients that need one."""

import asyncio
import contextlib
import itertools
import socket
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager

import httpx
import msgspec
import uvicorn
from msgspec import Struct
from starlette.applications import Starlette

from engine.http.app import create_app
from engine.http.kube import app as kube_app
from engine.http.kube.bootstrap_objects import BootstrapObjects
from engine.http.kube.control_plane import Figures
from engine.http.kube.derived_fields import DerivedFields
from engine.http.kube.members.planes import MemberPlanes
from engine.http.kube.write_modes import planned
from engine.http.query import health
from engine.http.request_metrics import RequestMetrics
from engine.http.services import Services
from engine.http.sessions import Login
from engine.karmada.default_tolerations import TolerationSeconds
from engine.log.local import MemoryLog
from engine.log.port import NumberedLog
from engine.plans import questions
from engine.proof import verification
from engine.reconcilers import explanation, explanation_types
from engine.simulation.member_fleet import Members
from engine.simulation.specs import MemberSpec
from engine.writing.write_api import ProjectedObjects, WriteApi
from events.json_values import Json
from events.records import Record
from events.validation import manifests
from projections import view_verification
from projections.as_of_views import AsOfViews
from projections.runner import Projector
from projections.store import Store
from tests.plans import worlds

TOKEN = "a-token-for-tests"  # noqa: S105  # it opens nothing
NOW_MS = 1_716_630_591_120


class LogInquiry:
    """Answers explain and verify from the log, with the engine's own functions."""

    def __init__(self, log: NumberedLog, store: Store) -> None:
        self._log = log
        self._store = store

    async def explain(self, key: str, number: int | None) -> explanation_types.Explained | None:
        """See ``services.Inquiry``."""
        return await explanation.explain(self._log, key, number)

    async def verify(self, *, views: bool = False) -> Struct:
        """See ``services.Inquiry``."""
        report = await verification.verify(self._log)
        if views:
            differences = await view_verification.differing(self._log, self._store, manifests.check)
            report.findings += [
                verification.Finding("views", name, difference) for name, difference in differences.items()
            ]
        return report


class LogPlanner:
    """Predicts from the log, in this process."""

    def __init__(self, log: NumberedLog) -> None:
        self._log = log

    async def predict(self, question: questions.Question, progress: Callable[[int], None]) -> bytes:
        """See ``services.Planner``."""
        return msgspec.json.encode(await worlds.predict(self._log, question, progress))


@asynccontextmanager
async def serving(
    batch: Sequence[Record] = (),
    log: MemoryLog | None = None,
    tolerated: TolerationSeconds | None = None,
    login: str = "",
    hosts: Sequence[str] = (),
) -> AsyncGenerator[Services]:
    """Services over a log that begins with these records; the views have folded all of it."""
    log = log or MemoryLog()
    await log.append(batch)
    store = await asyncio.to_thread(Store)
    projector = Projector(log, store, manifests.check)
    following = asyncio.create_task(projector.run())
    moments = AsOfViews(log, manifests.check)
    ids = (f"id-{count}" for count in itertools.count())
    views = ProjectedObjects(projector)
    write_api = WriteApi(log, views, lambda: NOW_MS, lambda: next(ids), tolerated=tolerated)
    services = Services(
        log=log,
        views=projector,
        as_of_views=moments,
        write_api=write_api,
        inquiry=LogInquiry(log, store),
        planner=LogPlanner(log),
        token=TOKEN,
        login=Login(login),
        hosts=hosts,
    )
    try:
        yield services
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        projector.close()
        await moments.close()
        await asyncio.to_thread(store.close)


def application(services: Services, members: Members | None = None) -> Starlette:
    """Return the query server, with plans."""
    return create_app(
        services,
        members,
        planning=lambda writes: kube_app.create_app(services, lambda: NOW_MS, writes=planned(writes)),
    )


def get_scope(address: str) -> Json:
    """Return the ASGI scope of a GET with the server's token; ``address`` is a path, perhaps with a query."""
    path, _, query = address.partition("?")
    return {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": query.encode(),
        "headers": [(b"authorization", f"Bearer {TOKEN}".encode()), (b"host", b"127.0.0.1")],
    }


def client(services: Services, token: str = TOKEN) -> httpx.AsyncClient:
    """Return a client of the server without a network."""
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(application(services), raise_app_exceptions=False),
        base_url="http://reballast",
        headers={"authorization": f"Bearer {token}"} if token else {},
    )


def kube_client(
    services: Services,
    application: kube_app.KubeApplication | None = None,
    headers: Mapping[str, str] | None = None,
) -> httpx.AsyncClient:
    """Return a client of the Kubernetes API, with the server's token."""
    app = application or kube_app.create_app(services, lambda: NOW_MS)
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app, raise_app_exceptions=False),
        base_url="http://kube",
        headers={"authorization": f"Bearer {TOKEN}", **(headers or {})},
    )


def plane_parts(services: Services) -> tuple[Services, BootstrapObjects, DerivedFields, Figures]:
    """Return the arguments of a ControlPlane without members."""
    derived_fields = DerivedFields(TOKEN, b"")
    planes = MemberPlanes(None, services, lambda: NOW_MS, derived_fields)
    return services, BootstrapObjects(services, "", b"", lambda: NOW_MS), derived_fields, planes.figures


class Served:
    """A server on a port; ``append`` writes to its log from outside."""

    def __init__(self, url: str, loop: asyncio.AbstractEventLoop, services: Services) -> None:
        self.url = url
        self.services = services
        self._loop = loop

    def append(self, batch: Sequence[Record]) -> None:
        """Append records in the server's loop."""
        asyncio.run_coroutine_threadsafe(self.services.log.append(batch), self._loop).result(5)


@contextlib.contextmanager
def on_a_port(batch: Sequence[Record] = (), members: Sequence[MemberSpec] = ()) -> Generator[Served]:
    """Run the server in a thread with its own loop; members are simulated on request."""
    started: list[tuple[asyncio.AbstractEventLoop, Services, uvicorn.Server]] = []
    ready = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    async def serve() -> None:
        async with serving(batch) as services:
            fleet = Members(services.log, lambda: NOW_MS, members) if members else None
            server = uvicorn.Server(
                uvicorn.Config(
                    application(services, fleet),
                    lifespan="off",
                    log_level="error",
                    timeout_graceful_shutdown=1,
                )
            )
            started.append((asyncio.get_running_loop(), services, server))
            ready.set()
            await server.serve(sockets=[listener])

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(60)
    loop, services, server = started[0]
    try:
        yield Served(f"http://127.0.0.1:{listener.getsockname()[1]}", loop, services)
    finally:
        server.should_exit = True
        thread.join(5)
        listener.close()


async def served_requests() -> RequestMetrics:
    """Return the metrics of one request for ``/healthz`` and two, with unusual methods, for an unknown path."""
    metrics = RequestMetrics()
    transport = httpx.ASGITransport(metrics.measured("query", health.monitoring_app(lambda: True, [])))
    async with httpx.AsyncClient(transport=transport, base_url="http://a") as http:
        await http.get("/healthz")
        await http.request("BREW", "/nothing")
        await http.request("PROPFIND", "/nothing")
    return metrics
