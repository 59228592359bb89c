"""Watches that begin with or without the current objects (``sendInitialEvents``)."""

import asyncio
import json

import pytest

from events.json_values import Json, object_at
from tests.api.kube.client import MAPS, api, create
from tests.builders import inputs
from tests.builders.log_records import record
from tests.builders.manifests import config_map

pytestmark = pytest.mark.virtual_time

QUERY = {
    "watch": "1",
    "sendInitialEvents": "false",
    "resourceVersionMatch": "NotOlderThan",
    "timeoutSeconds": "2",
}


@pytest.mark.parametrize("version", ["", "0"])
@pytest.mark.parametrize("selector", ["", "metadata.name!=other"])
async def test_watch_without_initial_events_begins_now(version: str, selector: str) -> None:
    async with api() as (client, _):
        await create(client, config_map("one"))
        query = QUERY | {"resourceVersion": version, "fieldSelector": selector}
        watching = asyncio.create_task(client.get(MAPS, params=query))
        await asyncio.sleep(0.5)
        await create(client, config_map("two"))
        assert _reported((await watching).text) == [("ADDED", "two")]


@pytest.mark.parametrize("version", ["", "0"])
async def test_watch_of_events_without_initial_events_begins_now(version: str) -> None:
    async with api() as (client, services):
        await services.log.append([record(inputs.joined("member1"))])
        assert (await client.get("/api/v1/events")).json()["items"]
        answer = await client.get("/api/v1/events", params=QUERY | {"resourceVersion": version})
        assert _reported(answer.text) == []


def _reported(text: str) -> list[tuple[str, str]]:
    """Return the types of events and the names of their objects."""
    lines: list[Json] = [json.loads(line) for line in text.splitlines()]
    return [(str(line["type"]), str(object_at(line, "object", "metadata")["name"])) for line in lines]


@pytest.mark.parametrize("path", [MAPS, "/api/v1/events"])
async def test_client_that_allows_no_bookmarks_gets_none_after_the_initial_events(path: str) -> None:
    async with api() as (client, _):
        await create(client, config_map("one"))
        answer = await client.get(path, params=QUERY | {"sendInitialEvents": "true", "timeoutSeconds": "1"})
        assert [word for word, _name in _reported(answer.text)] == (["ADDED"] if path == MAPS else [])
