"""Bookmarks of watches, from which their clients resume."""

import asyncio

import pytest

from engine.http.kube import watches
from events.json_values import object_at
from tests.api.kube.client import MAPS, api, create, version, watched
from tests.builders.manifests import config_map


@pytest.mark.parametrize("selector", ["labelSelector=a%3Db", "fieldSelector=metadata.namespace%3Dother"])
async def test_quiet_watch_of_a_busy_kind_gets_bookmarks(
    selector: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watches, "_BOOKMARK_SECONDS", 0.2)
    async with api() as (client, services):
        await create(client, config_map("one"))
        query = f"watch=1&allowWatchBookmarks=1&resourceVersion=1&{selector}"
        watching, number = asyncio.create_task(watched(services, f"{MAPS}?{query}", 2)), 0
        while not watching.done():
            number += 1
            await create(client, config_map(f"map-{number}"))
            await asyncio.sleep(0.01)
        first, second = watching.result()
    assert (first["type"], second["type"]) == ("BOOKMARK", "BOOKMARK")
    assert 1 < int(version(object_at(first, "object"))) < int(version(object_at(second, "object")))
