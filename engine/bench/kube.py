"""Benchmark: the Kubernetes API; requests per second, and the time until a watch shows a decision.

All requests use TLS on the loopback, between two processes: the server with worker, members and views, and
this one as the client. The baseline is a plain route of the same HTTP server over TLS that returns the
request body, in the same run.
"""

import asyncio
import contextlib
import ssl
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from engine.bench import inputs, kube_requests, processes, runs, timing
from engine.bench.kube_requests import Connection
from engine.bench.runs import Figures, Progress
from engine.bench.timing import Act
from engine.identity.endpoint import Endpoint

CONNECTIONS: Final = 16
REFERENCE: Final = {"placed_per_s": 24, "decision_p50_ms": 55, "decision_p99_ms": 100}
"""Figures of Karmada for the same load on the same kind of machine."""

_PACE_S: Final = 0.01
_POLL_S: Final = 0.02
_MODULE: Final = "engine.bench.kube_server"


class Sizes(Struct, frozen=True, kw_only=True):
    """Sizes: ``bare``, ``gets``, ``paced`` are numbers of requests, ``events`` is the number of events per watch."""

    bare: int = 8_000
    gets: int = 4_000
    paced: int = 1_000
    watchers: int = 100
    events: int = 300


_USUAL: Final = Sizes()


def run(bindings: int, progress: Progress = lambda _: None, sizes: Sizes = _USUAL) -> Figures:
    """Run the benchmark in a temporary directory; return the figures."""
    with runs.directory() as directory:
        return asyncio.run(_measured(bindings, directory, progress, sizes))


async def _measured(bindings: int, directory: Path, progress: Progress, sizes: Sizes) -> Figures:
    figures: Figures = {"bindings": bindings, "connections": CONNECTIONS, "reference": REFERENCE}
    progress("a bare route, as baseline")
    async with served(directory / "bare", "bare") as bare:
        body = kube_requests.deployment("bare")
        figures["baseline"] = "POST to a bare Starlette route of the same server, same TLS, same body"
        baseline = await _rates(bare, "baseline", sizes.bare, lambda connection: connection.post("/", body))
        figures |= baseline
    async with served(directory / "run") as server:
        await server.write(kube_requests.POLICIES, inputs.policy().value)
        empty_mb = await server.resident_mb()
        progress("creates at 100 a second")
        figures |= await _paced(server, sizes.paced)
        progress(f"{bindings} creates over {CONNECTIONS} connections")
        created = await _created(server, bindings)
        figures |= created
        used_mb = await server.resident_mb() - empty_mb
        figures["memory_kb_per_binding"] = round(used_mb * 1024 / (bindings + sizes.paced), 1)
        progress("gets")
        path = f"{kube_requests.DEPLOYMENTS}/{inputs.name_of(0)}"
        figures |= await _rates(server, "get", sizes.gets, lambda connection: connection.get(path))
        progress("the list of all bindings")
        figures |= await _listed(server, bindings + sizes.paced)
        progress(f"{sizes.watchers} watchers")
        figures |= await _watch_fan_out(server, sizes)
    to_baseline = created["create_cpu_us"] / max(baseline["baseline_cpu_us"], 1.0)
    return figures | {"create_to_baseline": round(to_baseline, 1)}


class Server:
    """A running server process and its endpoint."""

    def __init__(self, pid: int, endpoint: Endpoint, secured: ssl.SSLContext) -> None:
        self.pid = pid
        self.endpoint = endpoint
        self.secured = secured

    async def connect(self) -> Connection:
        return await Connection.open(self.endpoint.kube_url, self.endpoint.token, self.secured)

    @asynccontextmanager
    async def connections(self, count: int = CONNECTIONS) -> AsyncGenerator[Sequence[Connection]]:
        """Open several connections; they are closed after the block."""
        opened = [await self.connect() for _ in range(count)]
        try:
            yield opened
        finally:
            for connection in opened:
                connection.close()

    async def write(self, path: str, event: bytes) -> None:
        """Create the object whose manifest is in an event."""
        manifest = msgspec.json.decode(event, type=dict[str, msgspec.Raw])["manifest"]
        async with self.connections(1) as (only,):
            await only.post(path, bytes(manifest))

    async def timed(self, act: Act) -> tuple[float, float]:
        """Elapsed seconds of an action, and processor seconds of the server and its child processes."""
        used_s = await asyncio.to_thread(self._used_s)
        took_s = await timing.seconds(act)
        return took_s, await asyncio.to_thread(self._used_s) - used_s

    async def resident_mb(self) -> float:
        """Resident memory of the server and its child processes in MiB; 0 without /proc."""
        return await asyncio.to_thread(lambda: processes.resident_of(*processes.tree(self.pid)))

    def _used_s(self) -> float:
        return processes.cpu_s(*processes.tree(self.pid))


async def _rates(
    server: Server, name: str, count: int, request: Callable[[Connection], Awaitable[object]]
) -> dict[str, float]:
    """Send a request ``count`` times; return requests per second, and the server's processor time for each."""
    async with server.connections() as connections:
        took_s, used_s = await server.timed(
            lambda: timing.divide(connections, count, lambda connection, _: request(connection))
        )
    return {f"{name}_per_s": round(count / took_s, 1), f"{name}_cpu_us": round(used_s / count * 1e6)}


async def _created(server: Server, count: int) -> dict[str, float]:
    bodies = [kube_requests.deployment(inputs.name_of(index)) for index in range(count)]
    path = kube_requests.DEPLOYMENTS + kube_requests.CREATING
    placed_s = 0.0
    async with _decision_times(server) as seen, server.connections() as connections:
        start = time.perf_counter()

        async def create() -> None:
            nonlocal placed_s
            await timing.divide(
                connections, count, lambda connection, number: connection.post(path, bodies[number])
            )
            placed_s = time.perf_counter()
            await _until(lambda: len(seen) >= count)

        took_s, used_s = await server.timed(create)
        created_s = placed_s - start
    return {
        "create_per_s": round(count / created_s, 1),
        "placed_per_s": round(count / took_s, 1),
        "create_cpu_us": round(used_s / count * 1e6),
    }


async def _paced(server: Server, count: int) -> Figures:
    """Latency from sending a create to the watch event with its decision, at a hundred creates per second."""
    began: dict[bytes, float] = {}
    path = kube_requests.DEPLOYMENTS + kube_requests.CREATING
    async with _decision_times(server) as seen, server.connections() as connections:
        free = asyncio.Queue[Connection]()
        for connection in connections:
            free.put_nowait(connection)

        async def create(name: str) -> None:
            taken = await free.get()
            await taken.post(path, kube_requests.deployment(name))
            free.put_nowait(taken)

        start = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            for index in range(count):
                await asyncio.sleep(max(start + index * _PACE_S - time.perf_counter(), 0))
                name = f"paced-{index}"
                began[name.encode()] = time.perf_counter()
                tasks.create_task(create(name))
        await _until(lambda: len(seen) >= count)
    return {**runs.delays("decision_", (seen[name] - began_s for name, began_s in began.items()))}


async def _listed(server: Server, count: int) -> Figures:
    sizes: list[int] = []
    async with server.connections(1) as (only,):

        async def ask() -> None:
            sizes.append(len(await only.get(kube_requests.BINDINGS)))

        took_s, used_s = await server.timed(ask)
    return {
        "list_bindings": count,
        "list_ms": round(took_s * 1e3),
        "list_cpu_ms": round(used_s * 1e3),
        "list_mb": round(sizes[0] / 1e6, 1),
    }


async def _watch_fan_out(server: Server, sizes: Sizes) -> Figures:
    """Latency from sending a create until each watch has its event, at fifty creates per second."""
    delays: list[float] = []
    async with server.connections(sizes.watchers) as watching, server.connections(1) as (only,):

        async def watch(connection: Connection, version: str) -> None:
            seen = 0
            async for line in connection.lines(kube_requests.watch(kube_requests.MAPS, version)):
                at = time.perf_counter()
                began_s = kube_requests.stamp_of(line)
                if began_s is not None:
                    delays.append(at - began_s)
                    seen += 1
                if seen == sizes.events:
                    return

        version = kube_requests.version_of(await only.get(kube_requests.MAPS))

        async def post_and_watch() -> None:
            async with asyncio.TaskGroup() as tasks:
                for connection_ in watching:
                    tasks.create_task(watch(connection_, version))
                start = time.perf_counter()
                for index in range(sizes.events):
                    await asyncio.sleep(max(start + index * 2 * _PACE_S - time.perf_counter(), 0))
                    await only.post(kube_requests.MAPS, kube_requests.stamped(index, time.perf_counter()))

        took_s, used_s = await server.timed(post_and_watch)
    count = sizes.watchers * sizes.events
    return {
        "watchers": sizes.watchers,
        "watch_events_per_s": round(count / took_s),
        "watch_cpu_us_per_event": round(used_s / count * 1e6, 1),
        **runs.delays("watch_", delays),
    }


@asynccontextmanager
async def _decision_times(server: Server) -> AsyncGenerator[Mapping[bytes, float]]:
    """Watch bindings during the block; yield the ``perf_counter`` time of each decision, by Deployment name."""
    seen: dict[bytes, float] = {}
    async with server.connections(1) as (only,):
        version = kube_requests.version_of(await only.get(f"{kube_requests.BINDINGS}?limit=1"))

        async def watch() -> None:
            async for line in only.lines(kube_requests.watch(kube_requests.BINDINGS, version)):
                name = kube_requests.decided(line)
                if name:
                    seen.setdefault(name, time.perf_counter())

        watching = asyncio.create_task(watch())
        try:
            yield seen
        finally:
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching


async def _until(is_enough: Callable[[], bool]) -> None:
    async with asyncio.timeout(runs.WAIT_S):
        # Poll: the condition depends on lines of a watch, and no asyncio event is set when a line arrives.
        while not is_enough():  # noqa: ASYNC110
            await asyncio.sleep(_POLL_S / 10)


@asynccontextmanager
async def served(directory: Path, *arguments: str) -> AsyncGenerator[Server]:
    """Start a server in a new directory and stop it after the block; ``arguments`` are arguments of ``kube_server``."""
    stack = contextlib.ExitStack()

    def start() -> Server:
        directory.mkdir()
        served = processes.serving(directory, _MODULE, str(directory), *arguments)
        pid, endpoint = stack.enter_context(served)
        return Server(pid, endpoint, ssl.create_default_context(cafile=str(directory / "kube-ca.pem")))

    try:
        yield await asyncio.to_thread(start)
    finally:
        await asyncio.to_thread(stack.close)
