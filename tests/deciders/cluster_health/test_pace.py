"""Several clusters fail: they are emptied one by one, and not at all while most of them fail."""

import pytest

from events import clusters
from tests.builders.inputs import health_reported, joined, taint_policy
from tests.deciders.cluster_health.fleet import CONFIRM_S, MEMBERS, PACE_S, tainted_by_policies, taints
from tests.deciders.story import Story


async def test_failing_clusters_are_emptied_one_by_one(story: Story) -> None:
    await story.submit(taint_policy("failing"))
    await story.submit(
        health_reported("member4", ready=False),
        health_reported("member2", ready=False),
        health_reported("member3", ready=False),
    )
    await story.pass_s(CONFIRM_S)
    assert await taints(story) == {"member2": ["NoExecute"]}
    await story.pass_s(PACE_S)
    assert set(await taints(story)) == {"member2", "member3"}
    await story.pass_s(PACE_S)
    assert set(await taints(story)) == {"member2", "member3", "member4"}


async def test_no_schedule_taints_are_not_paced(story: Story) -> None:
    await story.submit(taint_policy("failing", "NoSchedule"))
    await story.submit(*(health_reported(name, ready=False) for name in MEMBERS))
    await story.pass_s(CONFIRM_S)
    assert await taints(story) == {name: ["NoSchedule"] for name in MEMBERS}


async def test_no_cluster_is_emptied_while_most_fail(story: Story) -> None:
    await story.submit(taint_policy("failing"))
    await story.submit(*(health_reported(name, ready=False) for name in MEMBERS[:4]))
    await story.pass_s(1_000)
    assert await taints(story) == {}
    # The others recover, so the control plane was not cut off.
    await story.submit(*(health_reported(name) for name in MEMBERS[1:4]))
    assert await taints(story) == {"member1": ["NoExecute"]}


@pytest.mark.parametrize(("failing", "total"), [(3, 5), (11, 20)])
async def test_no_cluster_is_emptied_while_just_enough_fail(story: Story, failing: int, total: int) -> None:
    names = [f"member{index}" for index in range(1, total + 1)]
    await story.submit(taint_policy("failing"), *(joined(name) for name in names[len(MEMBERS) :]))
    await story.submit(*(clusters.ClusterLeft(name=name) for name in MEMBERS[total:]))
    await story.submit(*(health_reported(name, ready=False) for name in names[:failing]))
    await story.pass_s(CONFIRM_S)
    assert await tainted_by_policies(story) == []
    await story.submit(health_reported(names[0]))
    await story.pass_s(CONFIRM_S)
    assert await tainted_by_policies(story) != []


async def test_pair_of_clusters_is_emptied_although_both_fail(story: Story) -> None:
    await story.submit(taint_policy("failing"), *(clusters.ClusterLeft(name=name) for name in MEMBERS[2:]))
    await story.submit(*(health_reported(name, ready=False) for name in MEMBERS[:2]))
    await story.pass_s(CONFIRM_S + PACE_S)
    assert set(await taints(story)) == {"member1", "member2"}


async def test_pace_and_confirmation_survive_restarts(story: Story) -> None:
    await story.submit(taint_policy("failing"))
    await story.submit(*(health_reported(name, ready=False) for name in MEMBERS[:3]))
    for _ in range(5):
        await story.pass_s(CONFIRM_S // 3)
        await story.restart()
    assert set(await taints(story)) == set(MEMBERS[:3])
    assert sorted(await tainted_by_policies(story)) == list(MEMBERS[:3])


async def test_clusters_are_emptied_one_by_one_after_a_majority_failure(story: Story) -> None:
    await story.submit(taint_policy("failing"))
    await story.submit(*(health_reported(name, ready=False) for name in MEMBERS[:4]))
    await story.pass_s(1_000)
    await story.submit(health_reported("member4"))
    assert set(await taints(story)) == {"member1"}
    await story.pass_s(PACE_S)
    assert set(await taints(story)) == {"member1", "member2"}
    await story.pass_s(PACE_S)
    assert set(await taints(story)) == {"member1", "member2", "member3"}


async def test_joining_clusters_end_a_majority_failure(story: Story) -> None:
    await story.submit(taint_policy("failing"))
    await story.submit(*(health_reported(name, ready=False) for name in MEMBERS[:4]))
    await story.pass_s(1_000)
    await story.submit(joined("member7"), joined("member8"))
    assert set(await taints(story)) == {"member1"}


async def test_recovered_cluster_does_not_advance_the_next_eviction(story: Story) -> None:
    await story.submit(taint_policy("failing"))
    await story.submit(*(health_reported(name, ready=False) for name in MEMBERS[:3]))
    await story.pass_s(CONFIRM_S + 1)
    await story.submit(health_reported("member1"))
    await story.pass_s(PACE_S - 2)
    assert set(await taints(story)) == {"member1"}
    await story.pass_s(1)
    assert set(await taints(story)) == {"member1", "member2"}


async def test_clusters_behind_recovered_ones_are_emptied_at_the_same_pace(story: Story) -> None:
    more = [f"more{index}" for index in range(20)]
    await story.submit(taint_policy("failing"), *map(joined, more))
    await story.submit(*(health_reported(name, ready=False) for name in more[:10]))
    await story.pass_s(CONFIRM_S)
    await story.submit(*(health_reported(name) for name in more[1:6]))
    for count in range(1, 6):
        emptied = set(await tainted_by_policies(story))
        assert emptied == {"more0", *more[6 : 5 + count]}
        await story.pass_s(PACE_S)


async def test_new_taint_policy_empties_clusters_one_by_one(story: Story) -> None:
    await story.submit(*(health_reported(name, ready=False) for name in MEMBERS[:2]))
    await story.pass_s(1_000)
    await story.submit(taint_policy("failing"))
    assert set(await taints(story)) == {"member1"}
    await story.pass_s(PACE_S)
    assert set(await taints(story)) == {"member1", "member2"}


async def test_cluster_that_failed_first_is_emptied_first(story: Story) -> None:
    for name in ("member2", "member1", "member2"):
        await story.submit(health_reported(name, ready=False))
        await story.pass_s(10)
    await story.pass_s(CONFIRM_S)
    await story.submit(taint_policy("failing"))
    assert set(await taints(story)) == {"member2"}


async def test_engine_does_not_catch_up_on_evictions_after_downtime(story: Story) -> None:
    await story.submit(taint_policy("failing"))
    await story.submit(*(health_reported(name, ready=False) for name in MEMBERS[:3]))
    await story.pass_s(CONFIRM_S - 1)
    story.now_ms += 1_000_000
    await story.restart()
    assert set(await taints(story)) == {"member1"}
    await story.pass_s(PACE_S)
    assert set(await taints(story)) == {"member1", "member2"}
