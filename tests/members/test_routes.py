"""The members over HTTP: pods, workloads and faults."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from engine.http.errors import RefusalError
from engine.http.query import member_routes, parameters
from tests.members import examples


@asynccontextmanager
async def _serving(*members: str) -> AsyncGenerator[tuple[examples.Stage, httpx.AsyncClient]]:
    """Yield members that run one nginx each, and a client of their routes."""
    stage = examples.Stage(*(examples.member(name) for name in members))
    offset = await stage.template("nginx", 1)
    await stage.work(*(examples.applied("nginx", 1, cluster=name, offset=offset) for name in members))
    await stage.settle()
    app = Starlette(routes=[*member_routes.routes(stage.members)], exception_handlers={RefusalError: _refuse})
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://reballast/api/v1") as client:
        yield stage, client


async def _refuse(_request: Request, error: Exception) -> Response:
    return cast("RefusalError", error).response()


async def test_pods_of_all_members_are_listed() -> None:
    async with _serving("member1", "member2") as (_, client):
        items = (await client.get("/members/pods", params={"labelSelector": "app=nginx"})).json()["items"]
        assert [(pod["cluster"], pod["phase"], pod["ready"]) for pod in items] == [
            ("member1", "Running", True),
            ("member2", "Running", True),
        ]
        assert items[0]["createdMs"] == examples.START_MS
        response = await client.get("/members/pods", params={"cluster": "member2", "namespace": "default"})
        assert [pod["name"] for pod in response.json()["items"]] == [items[1]["name"]]
        none = await client.get("/members/pods", params={"labelSelector": "app notin (nginx)"})
        assert none.json()["items"] == []


async def test_workloads_are_listed_with_their_start_times() -> None:
    async with _serving("member1", "member2") as (_, client):
        items = (await client.get("/members/workloads", params={"cluster": "member1"})).json()["items"]
        assert [(workload["key"], workload["ready"], workload["createdMs"]) for workload in items] == [
            (examples.key_of("nginx"), 1, examples.START_MS)
        ]


@pytest.mark.parametrize("path", ["/members/pods", "/members/workloads"])
async def test_list_says_whether_more_match_than_its_limit(path: str) -> None:
    async with _serving("member1", "member2") as (_, client):
        first, both = [(await client.get(path, params={"limit": limit})).json() for limit in (1, 2)]
        assert (len(first["items"]), first["truncated"]) == (1, True)
        assert (len(both["items"]), both["truncated"]) == (2, False)


async def test_fault_is_set_and_removed() -> None:
    async with _serving("member1") as (stage, client):
        answer = await client.post("/members/member1/fault", json={"kind": "slow", "amount": 7})
        assert [status["slowness"] for status in answer.json()["items"]] == [7]
        await client.post("/members/member1/fault", json={"kind": "down"})
        assert stage.members.statuses()[0].down
        healed = await client.post("/members/member1/heal")
        assert healed.json() == (await client.get("/members")).json()
        assert not stage.members.statuses()[0].down


@pytest.mark.parametrize(
    ("path", "body", "status", "field"),
    [
        ("/members/member9/fault", b'{"kind": "down"}', 404, "name"),
        ("/members/member9/heal", b"", 404, "name"),
        ("/members/member1/fault", b'{"kind": "slow", "amount": 0}', 400, "amount"),
        ("/members/member1/fault", b'{"kind": "tired"}', 400, "body"),
        ("/members/member1/fault", b'{"kind": "down", "why": "fun"}', 400, "body"),
        ("/members/member1/fault", b"\xff", 400, "body"),
        ("/members/member1/fault", b"[" * 4000, 400, "body"),
        ("/members/member1/fault", b" " * 5000, 413, "body"),
    ],
)
async def test_invalid_fault_request_is_refused_with_its_field(
    path: str, body: bytes, status: int, field: str
) -> None:
    async with _serving("member1") as (_, client):
        answer = await client.post(path, content=body)
        assert (answer.status_code, answer.json()["error"]["field"]) == (status, field)


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=many", "colour=red", "labelSelector=a%20b", "labelSelector=,"]
)
async def test_invalid_query_is_refused(query: str) -> None:
    async with _serving("member1") as (_, client):
        assert (await client.get(f"/members/pods?{query}")).status_code == 400


@pytest.mark.parametrize(
    ("selector", "labels", "fits"),
    [
        ("", {}, True),
        ("app=nginx", {"app": "nginx"}, True),
        ("app==nginx,tier=gold", {"app": "nginx"}, False),
        ("app!=nginx", {}, True),
        ("app != nginx", {"app": "nginx"}, False),
        ("app", {"app": "x"}, True),
        ("!app", {"app": "x"}, False),
        ("app in (a, b),!old", {"app": "b"}, True),
        ("app notin (a,b)", {"app": "b"}, False),
    ],
)
def test_selectors_are_parsed_as_by_kubectl(selector: str, labels: dict[str, str], fits: bool) -> None:
    matches = parameters.label_test(selector)

    assert (matches is None or matches(labels)) is fits
