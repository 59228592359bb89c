"""A client of the Kubernetes API of a server in this process."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import cast

import httpx

from engine.http.kube.app import create_app
from engine.http.services import Services
from engine.log.local import MemoryLog
from engine.simulation import defaults
from engine.simulation.member_fleet import Members
from events.json_values import Json
from tests.api.servers import NOW_MS, get_scope, kube_client, serving
from tests.builders.manifests import cluster

MAPS = "/api/v1/namespaces/default/configmaps"
MEMBER = "/apis/cluster.karmada.io/v1alpha1/clusters/member1/proxy"
POLICIES = "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies"


@asynccontextmanager
async def api(log: MemoryLog | None = None) -> AsyncGenerator[tuple[httpx.AsyncClient, Services]]:
    async with serving(log=log) as services, kube_client(services) as client:
        yield client, services


@asynccontextmanager
async def member(clock_ms: Callable[[], int] = lambda: NOW_MS) -> AsyncGenerator[httpx.AsyncClient]:
    """Yield a client of a server with three simulated members; ``MEMBER`` is the path of the first one's API."""
    async with serving() as services:
        fleet = Members(services.log, clock_ms, defaults.three_members())
        await fleet.turn()
        await services.catch_up()
        async with kube_client(services, create_app(services, clock_ms, fleet)) as client:
            yield client


async def create(client: httpx.AsyncClient, value: Json) -> Json:
    answer = await client.post(MAPS, json=value)
    assert answer.status_code == 201, answer.text
    return cast("Json", answer.json())


def version(value: Json) -> str:
    return str(cast("Json", value["metadata"])["resourceVersion"])


async def watched(services: Services, path: str, count: int, accept: str = "*/*") -> list[Json]:
    """Return the first lines of a watch, read directly from the application."""
    lines: list[Json] = []
    done = asyncio.Event()

    async def receive() -> Json:
        await done.wait()
        return {"type": "http.disconnect"}

    async def send(message: Json) -> None:
        lines.extend(json.loads(line) for line in cast("bytes", message.get("body", b"")).splitlines())
        if len(lines) >= count:
            done.set()

    app = create_app(services, lambda: NOW_MS)
    scope = get_scope(path)
    cast("list[tuple[bytes, bytes]]", scope["headers"]).append((b"accept", accept.encode()))
    async with asyncio.timeout(5):
        await app(scope, receive, send)  # pyright: ignore[reportArgumentType]
    return lines


CLUSTERS = "/apis/cluster.karmada.io/v1alpha1/clusters"

MERGE = {"content-type": "application/merge-patch+json"}


async def create_cluster(kube: httpx.AsyncClient, name: str = "edge") -> Json:
    answer = await kube.post(CLUSTERS, json=cluster(name))
    assert answer.status_code == 201, answer.text
    return metadata(answer)


def metadata(answer: httpx.Response) -> Json:
    return cast("Json", answer.json()["metadata"])
