"""Watches of the objects that come and go with namespaces and clusters, and are not in the log."""

import asyncio
import json

import httpx
import pytest

from engine.http.kube.control_plane import ControlPlane
from engine.http.kube.rate_limits import Limits
from engine.http.kube.watch_feed import Feed
from engine.kubeapi.schema.resources import control_plane
from events.json_values import Json, object_at
from tests.api.kube.client import MERGE, api, create_cluster
from tests.api.servers import kube_client, plane_parts, serving

pytestmark = pytest.mark.virtual_time

NAMESPACES = "/api/v1/namespaces"
WORKS = "karmada-es-edge"


@pytest.mark.parametrize(
    ("path", "name"), [(NAMESPACES, f"/{WORKS}"), ("/api/v1/serviceaccounts", f"{WORKS}/default")]
)
async def test_namespace_of_a_cluster_comes_and_goes_with_it(path: str, name: str) -> None:
    async with api() as (client, _):
        query = {"watch": "1", "timeoutSeconds": "2", "sendInitialEvents": "false"}
        query["resourceVersionMatch"] = "NotOlderThan"
        watching = asyncio.create_task(client.get(path, params=query))
        await asyncio.sleep(0.5)
        await create_cluster(client)
        labels: Json = {"metadata": {"labels": {"tier": "gold"}}}
        cluster = "/apis/cluster.karmada.io/v1alpha1/clusters/edge"
        assert (await client.patch(cluster, json=labels, headers=MERGE)).is_success
        await asyncio.sleep(0.2)
        assert (await client.delete(cluster)).is_success
        finalizers: Json = {"metadata": {"finalizers": []}}
        assert (await client.patch(cluster, json=finalizers, headers=MERGE)).is_success
        reported = _reported(await watching)
        assert reported == [("ADDED", name), ("DELETED", name)]
        assert (await client.get(f"{NAMESPACES}/{WORKS}")).status_code == 404


async def test_account_of_a_new_namespace_is_reported() -> None:
    async with api() as (client, _):
        query = {"watch": "1", "timeoutSeconds": "2", "sendInitialEvents": "false"}
        query["resourceVersionMatch"] = "NotOlderThan"
        watching = asyncio.create_task(client.get("/api/v1/serviceaccounts", params=query))
        await asyncio.sleep(0.5)
        assert (await client.post(NAMESPACES, json={"metadata": {"name": "new"}})).is_success
        assert _reported(await watching) == [("ADDED", "new/default")]


async def test_contents_of_a_namespace_that_changes_while_a_watch_begins_are_reported() -> None:
    async with serving() as services, kube_client(services) as client:
        created = await client.post(NAMESPACES, json={"metadata": {"name": "new"}})
        number = services.log.last_number()
        labels: Json = {"metadata": {"labels": {"tier": "gold"}}}
        assert (await client.patch(f"{NAMESPACES}/new", json=labels, headers=MERGE)).is_success
        plane = ControlPlane(*plane_parts(services))
        accounts = control_plane().of_kind("v1", "ServiceAccount")
        assert created.is_success
        assert accounts is not None
        feed = Feed(services, plane, Limits())
        behind = await feed.backlog(accounts, 0, number)
        later = await feed.backlog(accounts, number, services.log.last_number())
    assert [change.change_type for change in [*behind.changes, *later.changes]] == ["ADDED"]


def _reported(answer: httpx.Response) -> list[tuple[str, str]]:
    """Return the types of events, and the namespaces and names of their objects."""
    reported: list[tuple[str, str]] = []
    for line in answer.text.splitlines():
        event: Json = json.loads(line)
        metadata = object_at(event, "object", "metadata")
        reported.append((str(event["type"]), f"{metadata.get('namespace', '')}/{metadata['name']}"))
    return reported
