"""A change of a Cluster object writes the same event for every client and every kind of write."""

import pytest

from engine.http.services import Services
from events import clusters, codec, topics
from events.json_values import Json
from tests.api.kube.client import CLUSTERS, MERGE, api
from tests.builders.manifests import cluster

JSON_PATCH = {"content-type": "application/json-patch+json"}
APPLY = {"content-type": "application/apply-patch+yaml"}
MEMBER1 = f"{CLUSTERS}/member1"
TAINT: Json = {"key": "maintenance", "effect": "NoExecute"}
HELD: Json = {"key": "held", "effect": "NoSchedule", "value": "a"}


async def events(services: Services) -> list[object]:
    """Return the events of clusters after the first one."""
    payloads: list[object] = []
    for record in await services.log.read(topics.CLUSTERS, 0, 1, 100):
        decoded = codec.decode(record)
        assert isinstance(decoded, codec.Decoded)
        payloads.append(decoded.data)
    return payloads


def tainted(*taints: Json) -> Json:
    """Return a Cluster with these taints."""
    member = cluster("member1")
    return {**member, "spec": {"syncMode": "Pull", "taints": list(taints)}}


@pytest.mark.parametrize("way", ["merge patch", "JSON patch", "apply", "replace"])
async def test_taint_writes_the_same_event_with_every_kind_of_write(way: str) -> None:
    async with api() as (kube, services):
        await kube.post(CLUSTERS, json=tainted(HELD))
        match way:
            case "merge patch":
                patch: Json = {"spec": {"taints": [HELD, TAINT]}}
                answer = await kube.patch(MEMBER1, json=patch, headers=MERGE)
            case "JSON patch":
                added = [{"op": "add", "path": "/spec/taints/-", "value": TAINT}]
                answer = await kube.patch(MEMBER1, json=added, headers=JSON_PATCH)
            case "apply":
                query = {"fieldManager": "shop", "force": "true"}
                answer = await kube.patch(MEMBER1, json=tainted(HELD, TAINT), headers=APPLY, params=query)
            case _:
                shown = (await kube.get(MEMBER1)).json()
                shown["spec"]["taints"].append(TAINT)
                answer = await kube.put(MEMBER1, json=shown)
        assert answer.status_code == 200, answer.text
        (event,) = await events(services)
        assert isinstance(event, clusters.ClusterTainted)
        assert (event.taint.key, event.taint.effect) == ("maintenance", "NoExecute")
        assert event.expects == 1
        assert {entry.manager for entry in event.managed_fields} >= ({"shop"} if way == "apply" else set())
        shown = (await kube.get(MEMBER1)).json()
        assert [taint["key"] for taint in shown["spec"]["taints"]] == ["held", "maintenance"]
        owned = [entry for entry in shown["metadata"]["managedFields"] if entry["manager"] != "reballast"]
        assert any("f:taints" in str(entry["fieldsV1"]) for entry in owned)


async def test_single_changes_are_small_events_and_combined_changes_replace_the_cluster() -> None:
    async with api() as (kube, services):
        await kube.post(CLUSTERS, json=tainted(HELD, TAINT))
        for patch in (
            {"spec": {"taints": [HELD]}},
            {"spec": {"taints": [{**HELD, "value": "b"}]}},
            {"metadata": {"labels": {"a": "b"}}},
            {"spec": {"region": "east", "zones": ["east-1"]}},
            {"spec": {"taints": [TAINT, {**TAINT, "key": "other"}]}},
            {"spec": {"taints": None, "region": "west"}},
        ):
            answer = await kube.patch(MEMBER1, json=patch, headers=MERGE)
            assert answer.status_code == 200, answer.text
        assert [type(event).__name__ for event in await events(services)] == [
            "ClusterUntainted",
            "ClusterTainted",
            "ClusterLabelled",
            "ClusterDescribed",
            "ClusterUntainted",
            "ClusterTainted",
            "ClusterTainted",
            "ClusterJoined",
        ]
        shown = (await kube.get(MEMBER1)).json()
        assert (shown["spec"]["region"], "taints" in shown["spec"]) == ("west", False)


async def test_resource_models_are_kept_by_other_changes_and_can_be_patched() -> None:
    grade: Json = {"grade": 0, "ranges": [{"name": "cpu", "min": "0", "max": str(2**63 - 1)}]}
    second: Json = {"grade": 1, "ranges": [{"name": "cpu", "min": "2", "max": str(2**63 - 1)}]}
    split = [{"op": "add", "path": "/spec/resourceModels/-", "value": second}]
    split.append({"op": "replace", "path": "/spec/resourceModels/0/ranges/0/max", "value": "2"})
    async with api() as (kube, services):
        await kube.post(CLUSTERS, json=cluster("member1", resourceModels=[grade]))
        await kube.patch(MEMBER1, json={"metadata": {"labels": {"a": "b"}}}, headers=MERGE)
        (labelled,) = await events(services)
        assert isinstance(labelled, clusters.ClusterLabelled)
        assert (await kube.get(MEMBER1)).json()["spec"]["resourceModels"] == [grade]
        patched = await kube.patch(MEMBER1, json=split, headers=JSON_PATCH)
        assert patched.status_code == 200, patched.text
        models = (await kube.get(MEMBER1)).json()["spec"]["resourceModels"]
        assert [model["ranges"][0]["min"] for model in models] == ["0", "2"]


async def test_label_change_keeps_the_time_of_a_taint() -> None:
    async with api() as (kube, services):
        await kube.post(CLUSTERS, json=tainted(TAINT))
        shown = (await kube.get(MEMBER1)).json()
        shown["metadata"]["labels"] = {"a": "b"}
        await kube.put(MEMBER1, json=shown)
        (event,) = await events(services)
        assert isinstance(event, clusters.ClusterLabelled)


async def test_client_changes_the_time_of_a_taint() -> None:
    later: Json = {**TAINT, "timeAdded": "2030-01-01T00:00:00Z"}
    async with api() as (kube, services):
        await kube.post(CLUSTERS, json=tainted(TAINT))
        patch: Json = {"spec": {"taints": [later]}}
        answer = await kube.patch(MEMBER1, json=patch, headers=MERGE)
        assert answer.json()["spec"]["taints"] == [later]
        assert (await kube.get(MEMBER1)).json()["spec"]["taints"] == [later]
        (event,) = await events(services)
        assert isinstance(event, clusters.ClusterJoined)
        again = await kube.patch(MEMBER1, json=patch, headers=MERGE)
        assert again.json()["metadata"]["resourceVersion"] == answer.json()["metadata"]["resourceVersion"]


async def test_each_field_of_a_cluster_is_shown_as_it_was_written() -> None:
    member = cluster("member1")
    spec: Json = {
        "id": "own",
        "syncMode": "Pull",
        "apiEndpoint": "https://member1:6443",
        "secretRef": {"namespace": "karmada-cluster", "name": "member1"},
        "impersonatorSecretRef": {"namespace": "karmada-cluster", "name": "member1-impersonator"},
        "proxyURL": "https://proxy:3128",
        "provider": "shop",
        "region": "east",
        "zones": ["east-1"],
        "taints": [{**HELD, "timeAdded": "2024-05-25T09:50:00Z"}],
    }
    async with api() as (kube, _):
        created = await kube.post(CLUSTERS, json={**member, "spec": spec})
        assert created.status_code == 201, created.text
        shown = (await kube.get(MEMBER1)).json()["spec"]
        assert shown | spec == shown
        described: Json = {"provider": "store", "region": "west", "zones": None, "zone": "west-1"}
        await kube.patch(MEMBER1, json={"spec": described}, headers=MERGE)
        shown = (await kube.get(MEMBER1)).json()["spec"]
    changed = {"provider": "store", "region": "west", "zones": ["west-1"]}
    assert shown | spec | changed == shown


async def test_unreadable_time_of_a_taint_is_refused() -> None:
    async with api() as (kube, services):
        answer = await kube.post(CLUSTERS, json=tainted({**TAINT, "timeAdded": "yesterday"}))
        assert (answer.status_code, services.log.last_number()) == (400, 0)
        assert "'yesterday' is no instant" in answer.json()["message"]
