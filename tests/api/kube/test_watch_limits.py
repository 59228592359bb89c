"""Limits on the number of open watches."""

import asyncio
from types import ModuleType

import pytest
from starlette.types import ASGIApp, Message

from engine.http.kube import watches
from engine.http.kube.app import create_app
from engine.http.kube.kubernetes_events import lists
from engine.http.kube.members import watches as member_watches
from engine.simulation import defaults
from engine.simulation.member_fleet import Members
from tests.api.servers import NOW_MS, TOKEN, serving

MEMBER = "/apis/cluster.karmada.io/v1alpha1/clusters/member1/proxy"


async def watched(app: ASGIApp, path: str, ended: asyncio.Event, statuses: list[int]) -> None:
    """Watch until ``ended`` is set."""
    headers = [(b"authorization", f"Bearer {TOKEN}".encode())]
    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"watch=1", "headers": headers}

    async def receive() -> Message:
        await ended.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        await asyncio.sleep(0)
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    await app(scope, receive, send)


@pytest.mark.parametrize(
    ("module", "name", "path"),
    [
        (watches, "WATCHERS_MAX", "/api/v1/configmaps"),
        (lists, "_WATCHERS_MAX", "/api/v1/events"),
        (member_watches, "_WATCHERS_MAX", f"{MEMBER}/api/v1/configmaps"),
    ],
)
async def test_watches_that_are_opened_at_once_are_limited(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str, path: str
) -> None:
    monkeypatch.setattr(module, name, 2)
    async with serving() as services:
        fleet = Members(services.log, lambda: NOW_MS, defaults.three_members())
        await fleet.turn()
        app = create_app(services, lambda: NOW_MS, fleet)
        for _ in range(2):
            ended, statuses = asyncio.Event(), list[int]()
            async with asyncio.TaskGroup() as tasks:
                for _ in range(5):
                    tasks.create_task(watched(app, path, ended, statuses))
                while len(statuses) < 5:  # noqa: ASYNC110  # the application shows nothing else
                    await asyncio.sleep(0.01)
                ended.set()
            assert sorted(statuses) == [200, 200, 429, 429, 429]
