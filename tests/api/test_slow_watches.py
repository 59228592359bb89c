"""Watches whose clients read slowly: the client misses no change when it resumes from the last bookmark."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast

import httpx
import pytest

from engine.http.kube.app import create_app
from engine.http.kube.rate_limits import Limits
from engine.http.services import Services
from events.json_values import Json, object_at
from tests.api.kube.client import MAPS, create, version
from tests.api.servers import NOW_MS, TOKEN, kube_client, serving
from tests.builders.manifests import config_map

pytestmark = pytest.mark.virtual_time


class SlowReader:
    """A client of a watch that reads nothing more after the first line, until ``go_on``."""

    def __init__(self, services: Services, limits: Limits) -> None:
        self.lines: list[Json] = []
        self.waits = asyncio.Event()
        self._may_read = asyncio.Event()
        self._application = create_app(services, lambda: NOW_MS, limits=limits)

    def go_on(self) -> None:
        self._may_read.set()

    async def run(self) -> None:
        """Watch ConfigMaps with bookmarks until the server ends the watch."""
        scope = {
            "type": "http",
            "method": "GET",
            "path": MAPS,
            "query_string": b"watch=true&allowWatchBookmarks=true&resourceVersion=1",
            "headers": [(b"authorization", f"Bearer {TOKEN}".encode())],
        }
        async with asyncio.timeout(10):
            await self._application(scope, self._receive, self._send)  # pyright: ignore[reportArgumentType]

    async def _receive(self) -> Json:
        await asyncio.Event().wait()
        return {}

    async def _send(self, message: Json) -> None:
        body = cast("bytes", message.get("body", b""))
        self.lines += [json.loads(line) for line in body.splitlines()]
        if body:
            self.waits.set()
            await self._may_read.wait()


@asynccontextmanager
async def slow_reader(limits: Limits) -> AsyncGenerator[tuple[SlowReader, httpx.AsyncClient, Services]]:
    """Start a watch whose client waits after the line about the ConfigMap ``first``."""
    async with serving() as services, kube_client(services) as client:
        await create(client, config_map("zero"))
        reader = SlowReader(services, limits)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(reader.run())
            await asyncio.sleep(0.1)
            await create(client, config_map("first"))
            await asyncio.wait_for(reader.waits.wait(), 5)
            yield reader, client, services


@pytest.mark.parametrize("ends", ["queue", "stop"])
async def test_client_that_resumes_from_the_last_bookmark_misses_no_change(ends: str) -> None:
    async with slow_reader(Limits(queue=2 if ends == "queue" else 100)) as (reader, client, services):
        for name in ("second", "third", "fourth"):
            await create(client, config_map(name))
        # The feed queues them.
        await asyncio.sleep(0.1)
        if ends == "stop":
            services.stopping.set()
        reader.go_on()
    *changes, bookmark = reader.lines
    assert [object_at(line, "object", "metadata")["name"] for line in changes] == ["first"]
    assert bookmark["type"] == "BOOKMARK"
    assert version(object_at(bookmark, "object")) == version(object_at(changes[-1], "object"))
