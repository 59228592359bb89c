"""Deletion of a Cluster: the object stays until the cluster has left, as objects with finalizers do."""

import pytest

from engine.http.services import Services
from engine.log.local import MemoryLog
from engine.reconcilers.worker import Worker
from engine.simulation import defaults
from engine.simulation.member_fleet import Members
from events import catalogue, clusters, codec, topics
from events.json_values import Json, object_at
from tests.api.kube.client import CLUSTERS, MERGE, api, create_cluster, metadata, watched
from tests.api.servers import NOW_MS
from tests.builders.manifests import CONFIG_MAP, cluster, config_map, manifest, policy, selector

REMEDIES = "/apis/remedy.karmada.io/v1alpha1/remedies"
FINALIZER = "karmada.io/cluster-controller"


async def event_types(services: Services) -> list[str]:
    """Return the types of all events of clusters."""
    records = await services.log.read(topics.CLUSTERS, 0, 0, 100)
    return [catalogue.BY_TYPE[record.headers["ce_type"]].struct.__name__ for record in records]


async def test_deleted_cluster_gets_a_deletion_timestamp_and_stays() -> None:
    async with api() as (kube, services):
        new = await create_cluster(kube)
        assert new["finalizers"] == [FINALIZER]
        assert "deletionTimestamp" not in new
        answer = await kube.delete(f"{CLUSTERS}/edge")
        assert (answer.status_code, answer.json()["kind"]) == (200, "Cluster")
        standing = metadata(await kube.get(f"{CLUSTERS}/edge"))
        for fields in (metadata(answer), standing):
            assert fields["deletionTimestamp"] == "2024-05-25T09:49:51Z"
            assert (fields["deletionGracePeriodSeconds"], fields["finalizers"]) == (0, [FINALIZER])
        assert int(str(standing["resourceVersion"])) > int(str(new["resourceVersion"]))
        again = await kube.delete(f"{CLUSTERS}/edge")
        assert (again.status_code, metadata(again)) == (200, standing)
        assert await event_types(services) == ["ClusterJoined", "ClusterLeaving"]


async def test_failed_precondition_and_dry_run_mark_nothing() -> None:
    async with api() as (kube, services):
        await create_cluster(kube)
        other = {"preconditions": {"uid": "another"}}
        assert (await kube.request("DELETE", f"{CLUSTERS}/edge", json=other)).status_code == 409
        dry = await kube.request("DELETE", f"{CLUSTERS}/edge", json={"dryRun": ["All"]})
        assert "deletionTimestamp" in metadata(dry)
        assert "deletionTimestamp" not in metadata(await kube.get(f"{CLUSTERS}/edge"))
        assert await event_types(services) == ["ClusterJoined"]


@pytest.mark.parametrize("patch", [{"metadata": {"finalizers": None}}, {"metadata": {"finalizers": []}}])
async def test_removed_finalizer_ends_the_deletion_at_once(patch: Json) -> None:
    async with api() as (kube, services):
        uid = (await create_cluster(kube))["uid"]
        kept = await kube.patch(f"{CLUSTERS}/edge", json=patch, headers=MERGE)
        assert metadata(kept)["finalizers"] == [FINALIZER], "as long as it is wanted, it is put on again"
        await kube.delete(f"{CLUSTERS}/edge")
        released = await kube.patch(f"{CLUSTERS}/edge", json=patch, headers=MERGE)
        assert released.status_code == 200, released.text
        assert (await kube.get(f"{CLUSTERS}/edge")).status_code == 404
        (last,) = (await services.log.read(topics.CLUSTERS, 0, 0, 100))[-1:]
        decoded = codec.decode(last)
        assert isinstance(decoded, codec.Decoded)
        assert decoded.data == clusters.ClusterLeft(name="edge", uid=str(uid), expects=2)


async def test_last_version_of_a_cluster_shows_the_actions_of_remedies() -> None:
    async with api() as (kube, services):
        remedy = manifest(
            "remedy.karmada.io/v1alpha1", "Remedy", "all", "", spec={"actions": ["TrafficControl"]}
        )
        assert (await kube.post(REMEDIES, json=remedy)).status_code == 201
        since = (await create_cluster(kube))["resourceVersion"]
        await kube.delete(f"{CLUSTERS}/edge")
        await kube.patch(f"{CLUSTERS}/edge", json={"metadata": {"finalizers": None}}, headers=MERGE)
        events = await watched(services, f"{CLUSTERS}?watch=true&resourceVersion={since}", 2)
    assert [event["type"] for event in events] == ["MODIFIED", "DELETED"]
    for event in events:
        assert object_at(event, "object", "status")["remedyActions"] == ["TrafficControl"]


async def test_terminating_cluster_can_be_edited_and_keeps_terminating() -> None:
    async with api() as (kube, _):
        await create_cluster(kube)
        await kube.delete(f"{CLUSTERS}/edge")
        labels = {"metadata": {"labels": {"a": "b"}}, "spec": {"region": "east"}}
        answer = await kube.patch(f"{CLUSTERS}/edge", json=labels, headers=MERGE)
        assert (answer.status_code, metadata(answer)["labels"]) == (200, {"a": "b"})
        assert "deletionTimestamp" in metadata(await kube.get(f"{CLUSTERS}/edge"))


async def test_name_of_a_terminating_cluster_cannot_be_reused() -> None:
    async with api() as (kube, services):
        await create_cluster(kube)
        await kube.delete(f"{CLUSTERS}/edge")
        again = await kube.post(CLUSTERS, json=cluster("edge"))
        assert (again.status_code, again.json()["reason"]) == (409, "AlreadyExists")
        assert again.json()["message"] == (
            'object is being deleted: clusters.cluster.karmada.io "edge" already exists'
        )
        assert await event_types(services) == ["ClusterJoined", "ClusterLeaving"]


async def test_cluster_leaves_once_no_managed_object_runs_in_it() -> None:
    log = MemoryLog()
    worker, members = Worker(log, lambda: NOW_MS), Members(log, lambda: NOW_MS, defaults.three_members())
    async with api(log) as (kube, _):
        await worker.recover()

        async def settle(*, fleet: bool = True) -> None:
            for _ in range(20):
                await worker.turn()
                if fleet:
                    await members.turn()

        await settle()
        data = config_map("settings")
        everything = policy("all", None, selector(kind=CONFIG_MAP))
        policies = "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies"
        assert (await kube.post("/api/v1/namespaces/default/configmaps", json=data)).status_code == 201
        assert (await kube.post(policies, json=everything)).status_code == 201
        await settle()
        works = "/apis/work.karmada.io/v1alpha1/namespaces/karmada-es-{}/works"
        assert len((await kube.get(works.format("member3"))).json()["items"]) == 1

        await kube.delete(f"{CLUSTERS}/member3")
        await settle(fleet=False)
        assert (await kube.get(works.format("member3"))).json()["items"] == []
        assert (await kube.get(f"{CLUSTERS}/member3")).status_code == 200, "the member has not said so yet"
        await settle()
        assert (await kube.get(f"{CLUSTERS}/member3")).status_code == 404
        assert (await kube.get("/api/v1/namespaces/karmada-es-member3")).status_code == 404
        assert len((await kube.get(works.format("member1"))).json()["items"]) == 1
