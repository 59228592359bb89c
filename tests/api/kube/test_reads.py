"""Pages, tables and partial metadata, and watches from any number."""

import asyncio
from typing import cast

import pytest

from events.json_values import Json
from tests.api.kube.client import MAPS, MEMBER, api, create, member, version, watched
from tests.builders import inputs
from tests.builders.log_records import record
from tests.builders.manifests import config_map, manifest


async def test_paged_list_is_a_snapshot_of_its_first_page() -> None:
    async with api() as (client, _):
        for name in "dacb":
            await create(client, config_map(name))
        first = (await client.get(MAPS, params={"limit": 3})).json()
        await create(client, config_map("e"))
        token = first["metadata"]["continue"]
        rest = (await client.get(MAPS, params={"limit": 3, "continue": token})).json()
        names = [item["metadata"]["name"] for item in (*first["items"], *rest["items"])]
        assert names == ["a", "b", "c", "d", "e"]
        assert version(rest) == version(first), "a watch from it must report later changes"
        assert (await client.get(MAPS, params={"continue": "nonsense"})).status_code == 400


async def test_tables_and_partial_metadata_are_rendered() -> None:
    async with api() as (client, _):
        await create(client, config_map("one", a="1"))
        table = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
        shown = (await client.get(MAPS, headers=table)).json()
        assert [row["cells"][:2] for row in shown["rows"]] == [["one", 1]]
        partial = {"accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}
        alone = (await client.get(MAPS, headers=partial)).json()
        assert set(alone["items"][0]) == {"apiVersion", "kind", "metadata"}


def events_of(lines: list[Json]) -> list[str]:
    return [
        f"{line['type']} {cast('Json', cast('Json', line['object'])['metadata'])['name']}" for line in lines
    ]


async def test_watch_continues_from_any_number() -> None:
    async with api() as (client, services):
        await create(client, config_map("one"))
        listed = (await client.get(MAPS)).json()
        await create(client, config_map("two"))
        await client.patch(
            f"{MAPS}/one",
            content='{"data":{"a":"b"}}',
            headers={"content-type": "application/merge-patch+json"},
        )
        await client.delete(f"{MAPS}/two")
        path = f"{MAPS}?watch=true&resourceVersion={version(listed)}"
        seen = events_of(await watched(services, path, 3))
        assert seen == ["ADDED two", "MODIFIED one", "DELETED two"]
        everything = await watched(services, f"{MAPS}?watch=true", 1)
        assert events_of(everything) == ["ADDED one"]


async def test_streamed_list_of_a_watch_ends_with_a_bookmark() -> None:
    async with api() as (client, services):
        await create(client, config_map("one"))
        query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        first, mark = await watched(services, f"{MAPS}?{query}", 2)
        assert events_of([first]) == ["ADDED one"]
        metadata = cast("Json", cast("Json", mark["object"])["metadata"])
        assert mark["type"] == "BOOKMARK"
        assert metadata["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_read_at_a_malformed_version_is_refused() -> None:
    async with api() as (client, _):
        await create(client, config_map("one"))
        answer = await client.get(f"{MAPS}/one", params={"resourceVersion": "x"})
        assert answer.status_code == 400
        assert answer.json()["message"].startswith('resourceVersion: Invalid value: "x"')


async def test_list_not_older_than_a_future_version_times_out() -> None:
    async with api() as (client, _):
        number = version(await create(client, config_map("one")))
        for known in ("0", "1", number):
            assert (await client.get(MAPS, params={"resourceVersion": known})).status_code == 200
        answer = await client.get(MAPS, params={"resourceVersion": "999999"})
        assert (answer.status_code, answer.json()["reason"]) == (504, "Timeout")
        (cause,) = answer.json()["details"]["causes"]
        assert cause["reason"] == "ResourceVersionTooLarge"


@pytest.mark.parametrize("name", ["one", "missing"])
async def test_object_not_older_than_a_future_version_times_out(name: str) -> None:
    async with api() as (client, _):
        number = version(await create(client, config_map("one")))
        for known in ("0", "1", number):
            assert (await client.get(f"{MAPS}/one", params={"resourceVersion": known})).status_code == 200
        answer = await client.get(f"{MAPS}/{name}", params={"resourceVersion": "999999"})
    assert (answer.status_code, answer.json()["reason"]) == (504, "Timeout")
    assert answer.json()["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


async def test_object_of_a_member_not_older_than_a_future_version_times_out() -> None:
    async with member() as client:
        path = f"{MEMBER}/api/v1/namespaces/default"
        number = (await client.get(path)).json()["metadata"]["resourceVersion"]
        for requested, status in ((number, 200), (str(2**63), 504)):
            assert (await client.get(path, params={"resourceVersion": requested})).status_code == status


@pytest.mark.parametrize("path", [MAPS, "/api/v1/events"])
async def test_response_to_head_with_watch_ends_at_once(path: str) -> None:
    async with api() as (client, _), asyncio.timeout(10):
        answer = await client.head(path, params={"watch": "true"})
        assert (answer.status_code, answer.content) == (200, b"")


async def test_watch_from_a_future_number_is_expired() -> None:
    async with api() as (client, _):
        answer = await client.get(MAPS, params={"watch": "true", "resourceVersion": "999999"})
        assert (answer.status_code, answer.json()["reason"]) == (410, "Expired")


async def test_definition_of_another_producer_without_version_names_is_listed() -> None:
    group = "apiextensions.k8s.io/v1"
    spec = {"group": "example.io", "versions": [{"storage": True}, {"name": "v1", "storage": True}]}
    definition = manifest(group, "CustomResourceDefinition", "ships.example.io", spec=spec)
    async with api() as (client, services):
        await services.log.append([record(inputs.applied(definition))])
        for suffix in ("", "/ships.example.io"):
            answer = await client.get(f"/apis/{group}/customresourcedefinitions{suffix}")
            assert answer.status_code == 200, answer.text
        assert answer.json()["status"]["storedVersions"] == ["v1"]
