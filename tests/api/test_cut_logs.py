"""A log whose beginning was cut: requests that need it are answered 410, all others are served."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from engine.http.query import live_feed
from engine.http.services import Services
from engine.log import local, port
from events.records import StoredRecord
from tests.api.servers import client, kube_client, serving
from tests.projections.stories import Story

CUT = 20


class CutLog(local.MemoryLog):
    """A log without the records up to the number ``cut``."""

    cut = 0

    async def read_all(self, after: int, limit: int) -> list[StoredRecord]:
        stored = await super().read_all(after, limit)
        if stored and stored[0].number <= self.cut:
            raise port.LogCutError(f"specs/0 is not kept from {after} on any more; restore its records")
        return stored

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        stored = await super().read(topic, partition, start, limit)
        if stored and stored[0].number <= self.cut:
            raise port.LogCutError(f"{topic}/{partition} is not kept from {start} on any more")
        return stored


@asynccontextmanager
async def cut() -> AsyncGenerator[Services]:
    """Services whose views have folded a log whose beginning is gone."""
    log, story = CutLog(), Story(3)
    async with serving(story.opening(), log) as services:
        while log.last_number() < 2 * CUT:
            await log.append(story.more())
        await services.views.wait_folded(log.last_number())
        log.cut = CUT
        yield services


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/log",
        "/api/v1/log?topic=specs",
        "/api/v1/live?after=0",
        "/api/v1/bindings?asOf=30",
        "/api/v1/bindings?asOf=2024-05-25T09:49:51Z",
        "/api/v1/bindings?asOf=clusters/0/0",
        "/api/v1/timeline/cluster:member1",
        "/api/v1/verify",
    ],
)
async def test_request_that_needs_cut_records_is_answered_410(path: str) -> None:
    async with cut() as services, client(services) as http:
        refused = await http.get(path)

    assert (refused.status_code, refused.json()["error"]["field"]) == (410, "log"), refused.text
    assert "not kept" in refused.json()["error"]["reason"]


@pytest.mark.parametrize("path", [f"/api/v1/log?after={CUT}", "/api/v1/bindings", "/api/v1/objects", "/"])
async def test_request_that_needs_no_cut_records_is_served(path: str) -> None:
    async with cut() as services, client(services) as http:
        assert (await http.get(path)).status_code == 200


async def test_feed_that_reaches_cut_records_reports_it_and_ends() -> None:
    async with cut() as services:
        feed = live_feed.follow(services, 0, "", "")
        events = [event async for event in feed]

    assert [event.event for event in events] == ["not-kept"]
    assert "not kept" in json.loads(str(events[0].data))["reason"]


async def test_kubernetes_api_answers_expired_and_still_lists_namespaces() -> None:
    async with cut() as services, kube_client(services) as http:
        events = await http.get("/api/v1/events")
        namespaces = await http.get("/api/v1/namespaces")

    assert (events.status_code, events.json()["reason"]) == (410, "Expired")
    assert "not kept" in events.json()["message"]
    assert "default" in {namespace["metadata"]["name"] for namespace in namespaces.json()["items"]}
