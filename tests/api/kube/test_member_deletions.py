"""Deletions and evictions in a simulated member."""

import httpx
import pytest

from events.json_values import Json
from tests.api.kube.client import MEMBER, MERGE, member
from tests.api.servers import NOW_MS
from tests.builders.manifests import config_map, definition, deployment

PODS = f"{MEMBER}/api/v1/namespaces/default/pods"
MAPS = f"{MEMBER}/api/v1/namespaces/default/configmaps"


async def _create(client: httpx.AsyncClient, path: str, value: Json) -> str:
    answer = await client.post(path, json=value)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["metadata"]["uid"])


async def test_eviction_follows_its_delete_options() -> None:
    pod: Json = {"metadata": {"name": "one"}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}
    async with member() as client:
        uid = await _create(client, PODS, pod)
        refused: list[tuple[Json, int]] = [
            ({"dryRun": ["All"]}, 201),
            ({"preconditions": {"uid": "another"}}, 409),
            ({"preconditions": []}, 400),
            ({"dryRun": ["Some"]}, 422),
        ]
        for options, code in refused:
            eviction: Json = {"apiVersion": "policy/v1", "kind": "Eviction", "deleteOptions": options}
            assert (await client.post(f"{PODS}/one/eviction", json=eviction)).status_code == code
            assert (await client.get(f"{PODS}/one")).status_code == 200
        eviction = {"kind": "Eviction", "deleteOptions": {"preconditions": {"uid": uid}}}
        assert (await client.post(f"{PODS}/one/eviction", json=eviction)).status_code == 201
        assert (await client.get(f"{PODS}/one")).status_code == 404


@pytest.mark.parametrize(("version", "code"), [("v1", 201), ("v1beta1", 201), ("v2", 400)])
async def test_pods_are_evicted_by_both_versions_of_evictions(version: str, code: int) -> None:
    pod: Json = {"metadata": {"name": "one"}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}
    async with member() as client:
        await _create(client, PODS, pod)
        eviction: Json = {"apiVersion": f"policy/{version}", "kind": "Eviction", "metadata": {"name": "one"}}
        assert (await client.post(f"{PODS}/one/eviction", json=eviction)).status_code == code


@pytest.mark.parametrize(
    "selector",
    [
        {"matchLabels": {"app": "web"}},
        {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "other"]}]},
        {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["other"]}]},
        {},
    ],
)
async def test_budget_protects_running_pods_until_it_is_deleted(selector: Json) -> None:
    now_ms = [NOW_MS]
    web = f"{MEMBER}/apis/apps/v1/namespaces/default/deployments"
    budgets = f"{MEMBER}/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    async with member(lambda: now_ms[0]) as client:
        spec = {"selector": selector, "minAvailable": "100%"}
        await _create(client, budgets, {"metadata": {"name": "all"}, "spec": spec})
        await _create(client, web, deployment("web", 2))

        async def evicted() -> int:
            (name, *_) = [pod["metadata"]["name"] for pod in (await client.get(PODS)).json()["items"]]
            return (await client.post(f"{PODS}/{name}/eviction", json={"kind": "Eviction"})).status_code

        assert await evicted() == 201
        now_ms[0] += 1_000
        await _create(client, MAPS, config_map("any"))
        assert await evicted() == 429
        assert (await client.delete(f"{budgets}/all")).status_code == 200
        assert await evicted() == 201


async def test_deletion_without_a_body_has_its_options_in_the_query() -> None:
    async with member() as client:
        for query, orphans in (("propagationPolicy=Orphan", True), ("orphanDependents=1", True), ("", False)):
            uid = await _create(client, MAPS, config_map("owner"))
            owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}
            owned = {**config_map("owned"), "metadata": {"name": "owned", "ownerReferences": [owner]}}
            await _create(client, MAPS, owned)
            assert (await client.delete(f"{MAPS}/owner?{query}")).status_code == 200
            metadata = (await client.get(f"{MAPS}/owned")).json()["metadata"]
            assert ("ownerReferences" not in metadata) == orphans
            await client.delete(f"{MAPS}/owned")
        await _create(client, MAPS, config_map("owner"))
        assert (await client.delete(f"{MAPS}/owner?propagationPolicy=Sideways")).status_code == 422
        assert (await client.get(f"{MAPS}/owner")).status_code == 200


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("apis/apps/v1/namespaces/default/deployments", deployment("web", 1)),
        ("apis/policy/v1/namespaces/default/poddisruptionbudgets", {"spec": {"minAvailable": 1}}),
    ],
)
async def test_deletion_that_waits_for_a_finalizer_raises_the_generation(path: str, value: Json) -> None:
    path = f"{MEMBER}/{path}"
    async with member() as client:
        await _create(client, path, {**value, "metadata": {"name": "web", "finalizers": ["a/b"]}})
        for _ in range(2):
            assert (await client.delete(f"{path}/web")).status_code == 200
            kept = (await client.get(f"{path}/web")).json()["metadata"]
            assert (kept["generation"], "deletionTimestamp" in kept) == (2, True)


async def test_deletion_of_a_definition_deletes_the_objects_of_its_kind() -> None:
    definitions = f"{MEMBER}/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    widgets = f"{MEMBER}/apis/example.io/v1/namespaces/default/widgets"
    widget: Json = {"apiVersion": "example.io/v1", "kind": "Widget"}
    async with member() as client:
        await _create(client, definitions, definition("widgets", "Widget"))
        await _create(client, widgets, {**widget, "metadata": {"name": "one"}})
        waiting: Json = {"name": "two", "finalizers": ["example.io/wait"]}
        await _create(client, widgets, {**widget, "metadata": waiting})
        refused = await client.delete(f"{definitions}/widgets.example.io")
        assert (refused.status_code, "(1)" in refused.json()["message"]) == (409, True)
        freed = await client.patch(f"{widgets}/two", json={"metadata": {"finalizers": None}}, headers=MERGE)
        assert freed.is_success
        assert (await client.delete(f"{definitions}/widgets.example.io")).is_success
        await _create(client, definitions, definition("widgets", "Widget"))
        assert (await client.get(widgets)).json()["items"] == []
