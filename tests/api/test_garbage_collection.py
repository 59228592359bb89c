"""Objects whose owners were deleted are deleted by the control plane, as by the garbage collector of Kubernetes."""

from collections.abc import AsyncIterator, Sequence
from typing import Final

import httpx
import pytest

from engine.controllers.controller import Access
from engine.controllers.garbage_collection import GarbageCollection
from engine.http.kube.app import create_app
from engine.http.services import Services
from events.json_values import Json
from tests.api.kube.client import MERGE
from tests.api.servers import NOW_MS, kube_client, serving
from tests.builders.manifests import config_map, definition

MAPS: Final = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/default/deployments"
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGET: Final = ("example.io/v1", "Widget")


class World:
    """A server and its garbage collector, which looks at the views when ``settle`` is called."""

    def __init__(self, services: Services, client: httpx.AsyncClient) -> None:
        self.client = client
        self._services = services
        self._collector = self.collector()
        self._position = -1

    def collector(self) -> GarbageCollection:
        plane = create_app(self._services, lambda: NOW_MS).plane
        return GarbageCollection(Access(self._services, plane, self._services.write_api, lambda: NOW_MS))

    def restart(self) -> None:
        """Continue with a collector that has seen no change."""
        self._collector, self._position = self.collector(), -1

    async def settle(self) -> None:
        """Carry out turns until one finds no change."""
        before = None
        while before != self._position:
            await self._services.catch_up()
            before, self._position = self._position, await self._collector.turn(self._position)

    async def create(self, name: str, *owners: Json, **metadata: object) -> Json:
        """Create a ConfigMap with owners; return a reference to it."""
        value = config_map(name)
        value["metadata"] = {"name": name, "ownerReferences": list(owners), **metadata}
        answer = await self.client.post(MAPS, json=value)
        assert answer.status_code == 201, answer.text
        return reference("v1", "ConfigMap", answer.json())

    async def delete(self, name: str, propagation: str = "Background") -> None:
        answer = await self.client.delete(f"{MAPS}/{name}", params={"propagationPolicy": propagation})
        assert answer.is_success, answer.text

    async def patch(self, name: str, metadata: Json) -> None:
        answer = await self.client.patch(f"{MAPS}/{name}", json={"metadata": metadata}, headers=MERGE)
        assert answer.is_success, answer.text

    async def names(self) -> list[str]:
        """Return the names of the ConfigMaps of clients."""
        listed = (await self.client.get(MAPS)).json()["items"]
        return [item["metadata"]["name"] for item in listed if item["metadata"]["name"] != "kube-root-ca.crt"]

    async def metadata(self, name: str) -> Json:
        metadata: Json = (await self.client.get(f"{MAPS}/{name}")).json()["metadata"]
        return metadata


def reference(api_version: str, kind: str, value: Json, **fields: object) -> Json:
    metadata = value["metadata"]
    assert isinstance(metadata, dict)
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": metadata["name"],
        "uid": metadata["uid"],
        **fields,
    }


def blocking(owner: Json) -> Json:
    return {**owner, "blockOwnerDeletion": True}


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with serving() as services, kube_client(services) as client:
        yield World(services, client)


async def test_dependents_are_deleted_after_their_owner_and_so_are_theirs(world: World) -> None:
    root = await world.create("root")
    middle = await world.create("middle", root)
    await world.create("leaf", middle)
    await world.create("other")
    await world.settle()
    assert await world.names() == ["leaf", "middle", "other", "root"]
    await world.delete("root")
    await world.settle()
    assert await world.names() == ["other"]


async def test_dependents_of_an_owner_deleted_while_no_server_ran_are_deleted_at_the_start(
    world: World,
) -> None:
    root = await world.create("root")
    await world.create("leaf", root)
    await world.delete("root")
    world.restart()
    await world.settle()
    assert await world.names() == []


async def test_object_created_with_an_owner_that_does_not_exist_is_deleted(world: World) -> None:
    root = await world.create("root")
    await world.create("stale", {**root, "uid": "of-an-earlier-object"})
    await world.settle()
    assert await world.names() == ["root"]


async def test_object_with_another_owner_only_loses_the_reference(world: World) -> None:
    first, second = await world.create("first"), await world.create("second")
    await world.create("shared", first, second)
    await world.delete("first")
    await world.settle()
    assert await world.names() == ["second", "shared"]
    shared = await world.metadata("shared")
    assert shared["ownerReferences"] == [second]
    await world.delete("second")
    await world.settle()
    assert await world.names() == []


async def test_orphaned_dependents_stay_without_the_reference(world: World) -> None:
    root = await world.create("root")
    await world.create("leaf", root)
    await world.delete("root", "Orphan")
    await world.settle()
    assert await world.names() == ["leaf"]
    assert "ownerReferences" not in await world.metadata("leaf")


async def test_owner_is_marked_before_orphaned_dependents_lose_the_reference(world: World) -> None:
    root = await world.create("root", finalizers=["example.io/wait"])
    await world.create("leaf", root)
    await world.delete("root", "Orphan")
    assert "deletionTimestamp" in await world.metadata("root")
    assert (await world.metadata("leaf"))["ownerReferences"] == [root]
    await world.patch("root", {"finalizers": ["orphan"]})
    assert await world.names() == ["leaf", "root"]
    await world.settle()
    assert await world.names() == ["leaf"]
    assert "ownerReferences" not in await world.metadata("leaf")


async def test_collector_that_restarts_finishes_an_orphaning_deletion(world: World) -> None:
    root = await world.create("root", finalizers=["example.io/wait"])
    await world.create("leaf", root)
    await world.delete("root", "Orphan")
    world.restart()
    await world.settle()
    assert "ownerReferences" not in await world.metadata("leaf")
    assert await world.names() == ["leaf", "root"]
    await world.patch("root", {"finalizers": ["orphan"]})
    await world.settle()
    assert await world.names() == ["leaf"]


async def test_finalizer_of_an_orphaning_deletion_keeps_dependents_too(world: World) -> None:
    root = await world.create("root", finalizers=["orphan"])
    await world.create("leaf", root)
    assert (await world.client.delete(f"{MAPS}/root")).is_success
    await world.settle()
    assert await world.names() == ["leaf"]


async def test_refused_orphaning_deletion_leaves_the_references(world: World) -> None:
    root = await world.create("root")
    await world.create("leaf", root)
    options = {"propagationPolicy": "Orphan", "preconditions": {"uid": "of-another-object"}}
    answer = await world.client.request("DELETE", f"{MAPS}/root", json=options)
    assert answer.status_code == 409
    assert (await world.metadata("leaf"))["ownerReferences"] == [root]


async def test_owner_deleted_in_the_foreground_waits_for_blocking_dependents(world: World) -> None:
    root = await world.create("root")
    await world.create("blocking", blocking(root), finalizers=["example.io/wait"])
    await world.create("other", root, finalizers=["example.io/wait"])
    await world.delete("root", "Foreground")
    await world.settle()
    assert await world.names() == ["blocking", "other", "root"]
    assert (await world.metadata("root"))["finalizers"] == ["foregroundDeletion"]
    assert "deletionTimestamp" in await world.metadata("other")
    await world.patch("blocking", {"finalizers": None})
    await world.settle()
    assert await world.names() == ["other"]
    await world.patch("other", {"finalizers": None})
    assert await world.names() == []


@pytest.mark.parametrize("owners", [[], None], ids=["reference removed", "restarted"])
async def test_owner_stops_waiting_when_no_dependent_blocks_it(
    world: World, owners: Sequence[Json] | None
) -> None:
    root = await world.create("root")
    await world.create("leaf", blocking(root), finalizers=["example.io/wait"])
    await world.delete("root", "Foreground")
    await world.settle()
    assert "root" in await world.names()
    if owners is None:
        world.restart()
        await world.settle()
        assert "root" in await world.names()
        await world.patch("leaf", {"finalizers": None})
    else:
        await world.patch("leaf", {"ownerReferences": list(owners)})
    await world.settle()
    assert "root" not in await world.names()


async def test_foreground_deletion_reaches_the_dependents_of_dependents_first(world: World) -> None:
    root = await world.create("root")
    middle = await world.create("middle", blocking(root))
    await world.create("leaf", blocking(middle), finalizers=["example.io/wait"])
    await world.delete("root", "Foreground")
    await world.settle()
    assert await world.names() == ["leaf", "middle", "root"]
    await world.patch("leaf", {"finalizers": None})
    await world.settle()
    assert await world.names() == []


async def test_owners_of_each_other_are_deleted_in_the_foreground(world: World) -> None:
    first = await world.create("first")
    second = await world.create("second", blocking(first))
    await world.patch("first", {"ownerReferences": [blocking(second)]})
    await world.delete("first", "Foreground")
    await world.settle()
    assert await world.names() == []


async def test_foreground_deletion_without_dependents_is_immediate(world: World) -> None:
    await world.create("root")
    await world.delete("root", "Foreground")
    assert await world.names() == []


async def test_later_background_deletion_ends_the_wait(world: World) -> None:
    root = await world.create("root")
    await world.create("leaf", blocking(root), finalizers=["example.io/wait"])
    await world.delete("root", "Foreground")
    await world.delete("root")
    assert await world.names() == ["leaf"]


async def test_dependents_of_kinds_that_are_not_served_stay_until_a_definition_serves_them(
    world: World,
) -> None:
    owner: Json = {"apiVersion": WIDGET[0], "kind": WIDGET[1], "name": "gone", "uid": "unknown"}
    await world.create("leaf", owner)
    await world.settle()
    assert await world.names() == ["leaf"]
    created = await world.client.post(DEFINITIONS, json=definition("widgets", "Widget"))
    assert created.status_code == 201
    await world.settle()
    assert await world.names() == []


async def test_protected_dependent_stays_until_its_protection_ends(world: World) -> None:
    root = await world.create("root")
    protection = "resourcetemplate.karmada.io/deletion-protected"
    await world.create("leaf", root, labels={protection: "Always"})
    await world.delete("root")
    await world.settle()
    assert await world.names() == ["leaf"]
    await world.patch("leaf", {"labels": {protection: None}})
    await world.settle()
    assert await world.names() == []


async def test_cluster_scoped_object_with_a_namespaced_owner_stays(world: World) -> None:
    root = await world.create("root")
    role: Json = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "reader", "ownerReferences": [root]},
        "rules": [],
    }
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    assert (await world.client.post(path, json=role)).status_code == 201
    await world.delete("root")
    await world.settle()
    assert (await world.client.get(f"{path}/reader")).status_code == 200


async def test_namespaced_object_follows_its_cluster_scoped_owner(world: World) -> None:
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    role: Json = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "reader"},
    }
    created = await world.client.post(path, json={**role, "rules": []})
    await world.create("leaf", reference("rbac.authorization.k8s.io/v1", "ClusterRole", created.json()))
    await world.settle()
    assert await world.names() == ["leaf"]
    assert (await world.client.delete(f"{path}/reader")).is_success
    await world.settle()
    assert await world.names() == []


async def test_dry_run_deletes_nothing(world: World) -> None:
    root = await world.create("root")
    await world.create("leaf", root)
    answer = await world.client.delete(
        f"{MAPS}/root", params={"propagationPolicy": "Orphan", "dryRun": "All"}
    )
    assert answer.is_success
    await world.settle()
    assert (await world.metadata("leaf"))["ownerReferences"] == [root]
