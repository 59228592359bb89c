"""Clusters at the door: they join, are described, tainted and labelled, and leave."""

from engine.gateway import door_clusters
from engine.gateway.door import cluster_target
from events import clusters
from events import topics as names
from tests.api.doors import House, said


async def test_a_cluster_joins_is_tainted_labelled_described_and_leaves(house: House) -> None:
    cluster = b"""
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: member1, labels: {location: us}}
spec: {provider: huaweicloud, region: east, zone: z1}
"""
    target = cluster_target("member1")
    taint = clusters.Taint(key="workload-rebalancer-test", effect="NoExecute")
    gone = door_clusters.TaintKey(key="workload-rebalancer-test", effect="NoExecute")

    assert said(await house.door.apply(cluster)) == ["cluster.cluster.karmada.io/member1 created"]
    assert said(await house.door.apply(cluster)) == ["cluster.cluster.karmada.io/member1 unchanged"]
    actions = [
        await house.door.taint("member1", added=[taint]),
        await house.door.taint("member1", added=[taint]),
        await house.door.taint("member1", removed=[gone]),
        await house.door.taint("member1", removed=[gone]),
        await house.door.cordon("member1", cordoned=True),
        await house.door.cordon("member1", cordoned=False),
        await house.door.label(target, {"location": "eu"}),
        await house.door.label(target, {"location": "eu"}, overwrite=True),
        await house.door.patch(target, {"spec": {"region": "west"}}),
        await house.door.delete(target),
    ]

    assert [result.action or result.problems[0].reason for result in actions] == [
        "tainted",
        "unchanged",
        "untainted",
        'taint "workload-rebalancer-test:NoExecute" not found on member1',
        "cordoned",
        "uncordoned",
        "is 'us' already",
        "labeled",
        "patched",
        "deleted",
    ]
    joined, tainted, _untainted, _cordoned, _uncordoned, labelled, described, left = await house.events(
        names.CLUSTERS
    )
    assert isinstance(joined, clusters.ClusterJoined)
    assert (joined.zones, joined.region, joined.expects) == (("z1",), "east", 0)
    assert any(api.group_version == "apps/v1" and "Deployment" in api.kinds for api in joined.apis)
    assert tainted == clusters.ClusterTainted(name="member1", taint=taint)
    assert labelled == clusters.ClusterLabelled(name="member1", labels={"location": "eu"}, expects=5)
    assert isinstance(described, clusters.ClusterDescribed)
    assert (described.region, described.provider, described.zones) == ("west", "huaweicloud", ("z1",))
    assert left == clusters.ClusterLeaving(name="member1", expects=7)


async def test_a_taint_of_the_wrong_form_is_refused(house: House) -> None:
    await house.door.apply(b"{apiVersion: cluster.karmada.io/v1alpha1, kind: Cluster, metadata: {name: m}}")

    result = await house.door.taint("m", added=[clusters.Taint(key="a", effect="Never")])

    assert result.problems[0].field == "spec.taints[0].effect"
