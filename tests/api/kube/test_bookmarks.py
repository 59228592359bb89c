"""Watches that clients resume: bookmarks, and changes that are no longer kept."""

import asyncio

import pytest

from engine.http.kube import watches
from engine.http.kube.control_plane import ControlPlane, Listed
from engine.http.kube.requests import ObjectFilter
from engine.kubeapi.schema.resources import Resource
from events.json_values import object_at
from projections import changes
from tests.api.kube.client import MAPS, api, create, version, watched
from tests.builders.manifests import config_map

pytestmark = pytest.mark.virtual_time


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


@pytest.mark.parametrize(
    "query", ["sendInitialEvents=1&resourceVersionMatch=NotOlderThan", "resourceVersion="]
)
async def test_bookmarks_of_a_metadata_watch_have_the_form_of_its_objects(
    query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watches, "_BOOKMARK_SECONDS", 0.2)
    accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    async with api() as (client, services):
        await create(client, config_map("one"))
        path = f"{MAPS}?watch=1&allowWatchBookmarks=1&{query}"
        added, bookmark = await watched(services, path, 2, accept)
    assert [added["type"], bookmark["type"]] == ["ADDED", "BOOKMARK"]
    for line in (added, bookmark):
        shown = object_at(line, "object")
        assert (shown["kind"], shown["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")


async def test_watch_whose_changes_are_dropped_while_it_begins_ends_with_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listed = ControlPlane.listed
    monkeypatch.setattr(changes, "CHANGES_MAX", 3)
    async with api() as (client, services):
        await create(client, config_map("one"))

        async def overtaken(
            plane: ControlPlane, resource: Resource, namespace: str, fits: ObjectFilter, *, is_fresh: bool
        ) -> Listed:
            for number in range(5):
                await create(client, config_map(f"map-{number}"))
            return await listed(plane, resource, namespace, fits, is_fresh=is_fresh)

        monkeypatch.setattr(ControlPlane, "listed", overtaken)
        query = f"watch=1&labelSelector=%21a&resourceVersion={services.log.last_number()}"
        (line,) = await watched(services, f"{MAPS}?{query}", 1)
    assert (line["type"], object_at(line, "object").get("reason")) == ("ERROR", "Expired")
