"""The trace of a request stands in the envelopes of what it wrote."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx
from starlette.applications import Starlette
from starlette.middleware import Middleware

from engine.gateway import door_routes, tracing
from events.envelope import from_headers
from events.tracing import NO_TRACE, Trace
from tests.api.doors import House, open_house
from tests.api.test_door import DEPLOYMENT

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-{span:016x}-01"


@asynccontextmanager
async def opened(directory: Path) -> AsyncGenerator[tuple[House, httpx.AsyncClient]]:
    async with open_house(directory) as house:
        app = Starlette(routes=door_routes.routes(house.door), middleware=[Middleware(tracing.Traced)])
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://here/api/v1/") as client:
            yield house, client


async def traces(house: House) -> list[Trace]:
    """The trace of each record, in order."""
    return [from_headers(record.headers).trace for record in await house.log.read_all(0, 1000)]


async def test_a_request_in_a_trace(tmp_path: Path) -> None:
    async with opened(tmp_path) as (house, client):
        headers = [("traceparent", PARENT.format(span=1)), ("tracestate", "a=1"), ("tracestate", "b=2")]
        await client.post("apply", content=DEPLOYMENT, headers=headers)
        await client.post("scale", json={"kind": "deploy", "name": "foo", "replicas": 4})
        assert await traces(house) == [Trace(PARENT.format(span=1), "a=1,b=2"), NO_TRACE]


async def test_requests_at_once_keep_their_own(tmp_path: Path) -> None:
    async with opened(tmp_path) as (house, client):

        async def apply(span: int) -> None:
            content = DEPLOYMENT.replace(b"foo", f"foo-{span}".encode())
            answer = await client.post(
                "apply", content=content, headers={"traceparent": PARENT.format(span=span)}
            )
            assert answer.status_code == 200

        async with anyio.create_task_group() as tasks:
            for span in range(1, 11):
                tasks.start_soon(apply, span)
        named = {
            record.key.split("-")[1]: from_headers(record.headers).traceparent
            for record in await house.log.read_all(0, 1000)
        }
        assert named == {str(span): PARENT.format(span=span) for span in range(1, 11)}


async def test_a_malformed_trace_is_left_out(tmp_path: Path) -> None:
    async with opened(tmp_path) as (house, client):
        await client.post("apply", content=DEPLOYMENT, headers={"traceparent": "00-1-2-3"})
        assert await traces(house) == [NO_TRACE]
