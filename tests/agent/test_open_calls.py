"""Requests of users that stay open: an agent carries out a limited number at the same time."""

import asyncio
from collections.abc import AsyncGenerator

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route

from engine.agent import user_calls
from engine.agent.gateway_client import GatewayClient
from engine.agent.kubeconfigs import Access
from engine.agent.member_api import MemberApi
from engine.bench import karmada_api
from engine.http.kube.app import create_app
from events.client import statements
from tests.api.servers import NOW_MS, TOKEN, application, serving
from tests.background import background
from tests.builders.inputs import joined

pytestmark = pytest.mark.virtual_time

_PROXY = "/kubernetes/apis/cluster.karmada.io/v1alpha1/clusters/one/proxy"


async def _version(_request: Request) -> Response:
    return JSONResponse({"gitVersion": "v1.31.0"})


async def _quiet(_request: Request) -> Response:
    async def body() -> AsyncGenerator[bytes]:
        yield b"{}\n"
        await asyncio.Event().wait()

    return StreamingResponse(body())


async def test_watch_whose_client_has_left_takes_no_place_of_other_requests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(user_calls, "_CALLS_MAX", 1)
    routes = [Route("/version", _version), Route("/api/v1/pods", _quiet)]
    statement = statements.Statement(data=joined("one"), at_ms=1)
    async with serving([statements.record_of(statement, "/tests", 1, "")]) as services:
        kubernetes = create_app(services, lambda: NOW_MS)
        server = [Mount("/kubernetes", kubernetes), Mount("/", application(services))]
        async with (
            karmada_api.serving(routes) as member_url,
            karmada_api.serving(server) as server_url,
            httpx.AsyncClient(base_url=server_url, headers={"authorization": f"Bearer {TOKEN}"}) as user,
        ):
            control, api = GatewayClient(server_url, TOKEN, "one"), MemberApi(Access(server=member_url))
            async with background(user_calls.UserCalls("one", control, api).run()):
                await asyncio.sleep(0.5)
                async with user.stream("GET", f"{_PROXY}/api/v1/pods?watch=true") as watch:
                    assert watch.status_code == 200
                    assert await anext(watch.aiter_bytes()) == b"{}\n"
                async with asyncio.timeout(8):
                    assert (await user.get(f"{_PROXY}/version")).status_code == 200
            await api.aclose()
            await control.aclose()
