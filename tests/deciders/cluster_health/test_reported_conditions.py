"""Conditions that clients report become taints by policies."""

from events import clusters
from tests.builders.inputs import conditions_reported, health_reported, joined, taint_policy, untainted
from tests.deciders.cluster_health.fleet import CONFIRM_S, MEMBERS, PACE_S, tainted_by_policies, taints
from tests.deciders.story import Story


async def test_reported_condition_adds_and_removes_a_taint_at_once(story: Story) -> None:
    await story.submit(taint_policy("network", condition="NetworkReady"))
    await story.submit(conditions_reported("member1", NetworkReady="False", StorageReady="True"))
    assert await taints(story) == {"member1": ["NoExecute"]}
    await story.restart()
    await story.submit(conditions_reported("member1", NetworkReady="True", StorageReady="True"))
    assert await taints(story) == {}


async def test_cluster_that_never_reported_its_health_is_tainted_by_its_conditions(story: Story) -> None:
    await story.submit(taint_policy("network", "NoSchedule", condition="NetworkReady"))
    await story.submit(joined("member7"), conditions_reported("member7", NetworkReady="Unknown"))
    (tainted,) = await story.recorded(clusters.ClusterTainted)
    assert (tainted.name, tainted.taint.effect) == ("member7", "NoSchedule")
    await story.submit(health_reported("member7", ready=False))
    await story.pass_s(CONFIRM_S)
    assert await tainted_by_policies(story) == ["member7"]


async def test_condition_that_is_no_longer_reported_matches_no_policy(story: Story) -> None:
    await story.submit(taint_policy("network", condition="NetworkReady"))
    await story.submit(conditions_reported("member1", NetworkReady="False"))
    await story.submit(conditions_reported("member1"), untainted("member1", "not-ready"))
    assert await taints(story) == {}


async def test_conditions_of_ready_clusters_are_not_paced_and_those_of_failing_ones_are(story: Story) -> None:
    await story.submit(taint_policy("network", condition="NetworkReady"))
    await story.submit(*(conditions_reported(name, NetworkReady="False") for name in MEMBERS[:2]))
    assert set(await taints(story)) == set(MEMBERS[:2])
    await story.submit(*(health_reported(name, ready=False) for name in MEMBERS[2:]))
    await story.submit(*(conditions_reported(name, NetworkReady="False") for name in MEMBERS[2:]))
    await story.pass_s(1_000)
    assert set(await taints(story)) == set(MEMBERS[:2])
    await story.submit(health_reported("member3"))
    assert set(await taints(story)) == set(MEMBERS[:4])
    await story.pass_s(PACE_S)
    assert set(await taints(story)) == set(MEMBERS[:5])
