"""Watches of Kubernetes Events, and custom kinds with the name of Events."""

import asyncio

import msgspec
import pytest

from engine.http.kube.app import create_app
from events import observations, times
from events.json_values import object_at
from tests.api.kube.client import api, watched
from tests.api.servers import NOW_MS, kube_client, serving
from tests.builders import inputs
from tests.builders.log_records import envelope, record
from tests.builders.manifests import manifest

pytestmark = pytest.mark.virtual_time

EVENTS = "/api/v1/events"
ADDED = ["SyncImpersonationConfigSucceed", "CreateExecutionSpaceSucceed"]


@pytest.mark.parametrize("version", ["", "&resourceVersion=0", "&resourceVersion=1"])
async def test_initial_events_end_with_a_bookmark(version: str) -> None:
    async with api() as (_, services):
        await services.log.append([record(inputs.joined("member1"))])
        query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        *listed, mark = await watched(services, f"{EVENTS}?{query}{version}", 3)
        assert {object_at(line, "object")["reason"] for line in listed} == set(ADDED)
        assert mark["type"] == "BOOKMARK"
        assert object_at(mark, "object", "metadata") == {
            "resourceVersion": "1",
            "annotations": {"k8s.io/initial-events-end": "true"},
        }


@pytest.mark.parametrize(("version", "code"), [("999999", 410), ("x", 400)])
async def test_watch_from_an_unknown_version_is_refused(version: str, code: int) -> None:
    async with api() as (client, _):
        answer = await client.get(EVENTS, params={"watch": "true", "resourceVersion": version})
        assert answer.status_code == code, answer.text


async def test_ages_in_tables_are_those_at_the_time_of_each_event() -> None:
    now_ms = NOW_MS
    watch = {"watch": "true", "resourceVersion": "1", "timeoutSeconds": "2"}
    async with serving([record(inputs.joined("member1"))]) as services:
        app = create_app(services, lambda: now_ms)
        headers = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
        async with kube_client(services, app, headers) as client:
            watching = asyncio.create_task(client.get(EVENTS, params=watch))
            await asyncio.sleep(0.2)
            now_ms += 60_000
            head = envelope(time=times.to_text(now_ms))
            await services.log.append([record(inputs.joined("member2"), head)])
            lines = [msgspec.json.decode(line) for line in (await watching).text.splitlines()]
    assert [line["object"]["rows"][0]["cells"][0] for line in lines] == ["0s", "0s"]


async def test_watch_passes_over_deletions_without_an_object() -> None:
    async with api() as (_, services):
        deleted = observations.KubernetesEventDeleted(
            name="one", namespace="default", manifest=msgspec.Raw(b"[]")
        )
        joined = [record(inputs.joined(name)) for name in ("member1", "member2")]
        await services.log.append([joined[0], record(deleted, key=deleted.record_key), joined[1]])
        lines = await watched(services, f"{EVENTS}?watch=true&resourceVersion=1", 2)
        assert [object_at(line, "object", "involvedObject")["name"] for line in lines] == ["member2"] * 2


async def test_custom_kind_may_be_named_event() -> None:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    names = {"plural": "events", "kind": "Event"}
    spec = {"group": "example.io", "scope": "Namespaced", "names": names, "versions": [version]}
    group = "apiextensions.k8s.io/v1"
    definition = manifest(group, "CustomResourceDefinition", "events.example.io", spec=spec)
    path = "/apis/example.io/v1/namespaces/default/events"
    async with api() as (client, services):
        made = await client.post(f"/apis/{group}/customresourcedefinitions", json=definition)
        assert made.status_code == 201, made.text
        await services.log.append([record(inputs.joined("member1"))])
        value = manifest("example.io/v1", "Event", "one", "default", spec={"a": "b" * 20_000})
        made = await client.post(path, json=value)
        assert made.status_code == 201, made.text
        listed = (await client.get(path)).json()["items"]
        assert [event["metadata"]["name"] for event in listed] == ["one"]
        assert (await client.delete(f"{path}/one")).status_code == 200
        assert (await client.get(f"{path}/one")).status_code == 404


async def test_first_report_of_an_event_that_was_written_twice_is_that_it_was_added() -> None:
    path = "/api/v1/namespaces/default/events"
    body = {"metadata": {"name": "seen"}, "involvedObject": {"namespace": "default"}, "count": 1}
    async with api() as (client, services):
        assert (await client.put(f"{path}/before", json={**body, "metadata": {"name": "before"}})).is_success
        since = services.log.last_number()
        for count in (1, 2):
            assert (await client.put(f"{path}/seen", json={**body, "count": count})).is_success
        query = {"watch": "1", "timeoutSeconds": "2", "resourceVersion": str(since)}
        watching = asyncio.create_task(client.get(path, params=query))
        await asyncio.sleep(0.5)
        for name in ("seen", "before"):
            changed = {**body, "metadata": {"name": name}, "count": 3}
            assert (await client.put(f"{path}/{name}", json=changed)).is_success
        lines = [msgspec.json.decode(line) for line in (await watching).text.splitlines()]
    reported = [(line["type"], line["object"]["metadata"]["name"], line["object"]["count"]) for line in lines]
    assert reported == [("ADDED", "seen", 2), ("MODIFIED", "seen", 3), ("MODIFIED", "before", 3)]
