"""Clusters that fall silent or fail: what policies make of it, how fast, and when they leave everything alone."""

import pytest

from engine.deciders import cluster_health
from events import clusters, decisions
from tests.deciders.story import Story
from tests.deciders.writing import (
    DYNAMIC,
    deployment,
    heard,
    joined,
    key,
    on,
    policy,
    rebalancer,
    ref,
    room,
    taint_policy,
    untainted,
)

WEB = key("web")
MEMBERS = tuple(f"member{index}" for index in range(1, 7))
CONFIRM_S = cluster_health.CONFIRM_MS // 1000
PACE_S = cluster_health.PACE_MS // 1000


@pytest.fixture(autouse=True)
async def six_members(story: Story) -> None:
    await story.say(*(joined(name) for name in MEMBERS), *(room(name) for name in MEMBERS))
    await story.say(*(heard(name) for name in MEMBERS))


async def taints(story: Story) -> dict[str, list[str]]:
    """The effects of the taints that each cluster has now, where it has any."""
    facts = story.worker.facts
    found = {name: facts.fleet.get(name) for name in MEMBERS}
    return {
        name: [taint.effect for taint in cluster.spec.taints]
        for name, cluster in found.items()
        if cluster is not None and cluster.spec.taints
    }


# --- silence ---


async def test_who_promises_to_report_and_does_not_is_silent_to_the_millisecond(story: Story) -> None:
    await story.say(heard("member1", grace_s=40))
    await story.pass_ms(39_999)
    assert await story.told(decisions.ClusterSilenced) == []
    await story.pass_ms(1)
    (told,) = await story.told(decisions.ClusterSilenced)
    assert (told.name, told.grace_seconds) == ("member1", 40)
    assert story.worker.facts.health["member1"].status == "Unknown"


async def test_each_report_begins_the_time_anew_and_costs_no_step(story: Story) -> None:
    await story.say(heard("member1", grace_s=40))
    steps = await story.steps()
    for _ in range(10):
        await story.pass_s(39)
        await story.say(heard("member1", grace_s=40))
    assert await story.told(decisions.ClusterSilenced) == []
    assert await story.steps() == steps


async def test_a_silence_is_told_once_and_ends_with_the_next_report(story: Story) -> None:
    await story.say(heard("member1", grace_s=40))
    await story.pass_s(1_000)
    await story.restart()
    await story.pass_s(1_000)
    assert len(await story.told(decisions.ClusterSilenced)) == 1
    await story.say(heard("member1", grace_s=40))
    assert story.worker.facts.health["member1"].status == "True"
    await story.pass_s(1_000)
    assert len(await story.told(decisions.ClusterSilenced)) == 2


async def test_who_promised_nothing_may_be_silent_for_ever(story: Story) -> None:
    await story.pass_s(1_000_000)
    assert await story.told(decisions.ClusterSilenced) == []


async def test_a_report_on_its_way_counts_more_than_the_silence_before_it(story: Story) -> None:
    await story.say(heard("member1", grace_s=40))
    story.now_ms += 40_000
    story.write_first(heard("member1", grace_s=40))
    await story.settle()
    assert len(await story.told(decisions.ClusterSilenced)) == 1
    assert story.worker.facts.health["member1"].status == "True"


async def test_a_cluster_that_left_is_not_waited_for(story: Story) -> None:
    await story.say(heard("member1", grace_s=40))
    await story.say(clusters.ClusterLeft(name="member1"))
    await story.pass_s(1_000)
    assert await story.told(decisions.ClusterSilenced) == []


async def test_who_takes_over_waits_for_the_next_report_as_long_as_was_promised(story: Story) -> None:
    # While the control plane is away nobody is heard, however well they are.
    await story.say(heard("member1", grace_s=40))
    story.now_ms += 1_000_000
    await story.restart()
    await story.pass_ms(39_999)
    assert await story.told(decisions.ClusterSilenced) == []
    await story.pass_ms(1)
    assert len(await story.told(decisions.ClusterSilenced)) == 1


async def test_a_silence_says_nothing_of_a_cluster_that_is_another_one_by_then(story: Story) -> None:
    await story.say(heard("member1", grace_s=40))
    story.now_ms += 40_000
    story.write_first(clusters.ClusterLeft(name="member1"), joined("member1"))
    await story.settle()
    assert len(await story.told(decisions.ClusterSilenced)) == 1
    assert "member1" not in story.worker.facts.health


# --- conditions become taints ---


async def test_a_report_that_comes_late_counts_from_when_it_came(story: Story) -> None:
    await story.say(taint_policy("failing"))
    late = story.record(heard("member1", ready=False))
    await story.pass_s(CONFIRM_S * 2)
    await story.log.append([late])
    await story.settle()
    assert await taints(story) == {}
    await story.pass_ms(cluster_health.CONFIRM_MS - 1)
    assert await taints(story) == {}
    await story.pass_ms(1)
    assert await taints(story) == {"member1": ["NoExecute"]}


async def test_not_ready_for_long_enough_it_is_tainted_and_emptied(story: Story) -> None:
    await story.say(taint_policy("failing"))
    await story.say(policy("p", on("member1", "member2", scheduling=DYNAMIC)), deployment("web", 4))
    await story.say(heard("member1", ready=False))
    await story.pass_ms(cluster_health.CONFIRM_MS - 1)
    assert story.placed(WEB) == {"member1": 2, "member2": 2}
    await story.pass_ms(1)
    assert await taints(story) == {"member1": ["NoExecute"]}
    assert story.placed(WEB) == {"member2": 4}


async def test_ready_again_for_long_enough_it_loses_the_taint_and_a_rebalancer_spreads_again(
    story: Story,
) -> None:
    await story.say(taint_policy("failing"))
    await story.say(policy("p", on("member1", "member2", scheduling=DYNAMIC)), deployment("web", 4))
    await story.say(heard("member1", ready=False))
    await story.pass_s(CONFIRM_S)
    await story.report(WEB, "member2")
    await story.say(heard("member1"))
    await story.pass_ms(cluster_health.CONFIRM_MS - 1)
    assert await taints(story) == {"member1": ["NoExecute"]}
    await story.pass_ms(1)
    assert await taints(story) == {}
    assert story.placed(WEB) == {"member2": 4}
    await story.say(rebalancer("spread", ref("web")))
    assert story.placed(WEB) == {"member1": 2, "member2": 2}


async def test_a_cluster_that_flaps_moves_nothing(story: Story) -> None:
    await story.say(taint_policy("failing"))
    for _ in range(20):
        await story.say(heard("member1", ready=False))
        await story.pass_s(CONFIRM_S - 1)
        await story.say(heard("member1"))
        await story.pass_s(1)
    assert await story.told(clusters.ClusterTainted) == []


async def test_silence_needs_no_confirmation(story: Story) -> None:
    await story.say(taint_policy("silent", "NoExecute", "Unknown"))
    await story.say(heard("member1", grace_s=40))
    await story.pass_s(40)
    assert await taints(story) == {"member1": ["NoExecute"]}


async def test_a_policy_means_the_clusters_that_it_names(story: Story) -> None:
    await story.say(taint_policy("failing", on=("member2",)))
    await story.say(heard("member1", ready=False), heard("member2", ready=False))
    await story.pass_s(CONFIRM_S + PACE_S)
    assert await taints(story) == {"member2": ["NoExecute"]}


async def test_a_policy_that_comes_later_finds_what_is_so_already(story: Story) -> None:
    await story.say(heard("member1", ready=False))
    await story.pass_s(CONFIRM_S)
    await story.say(taint_policy("failing"))
    assert await taints(story) == {"member1": ["NoExecute"]}


async def test_a_taint_that_somebody_takes_away_comes_back_while_the_reason_holds(story: Story) -> None:
    await story.say(taint_policy("failing"))
    await story.say(heard("member1", ready=False))
    await story.pass_s(CONFIRM_S)
    await story.say(untainted("member1", "not-ready"))
    assert await taints(story) == {"member1": ["NoExecute"]}


async def test_without_conditions_for_it_a_taint_stays(story: Story) -> None:
    await story.say(taint_policy("failing", removeOnConditions=[]))
    await story.say(heard("member1", ready=False))
    await story.pass_s(CONFIRM_S)
    await story.say(heard("member1"))
    await story.pass_s(1_000)
    assert await taints(story) == {"member1": ["NoExecute"]}


async def test_what_was_told_is_told_once(story: Story) -> None:
    await story.say(taint_policy("failing"))
    await story.say(heard("member1", ready=False))
    await story.pass_s(1_000)
    await story.restart()
    await story.pass_s(1_000)
    assert len(await story.told(decisions.ClusterJudged)) == 1
    assert len(await story.told(clusters.ClusterTainted)) == 1


# --- storms ---


async def test_clusters_that_fail_together_are_emptied_one_after_the_other(story: Story) -> None:
    await story.say(taint_policy("failing"))
    await story.say(
        heard("member4", ready=False), heard("member2", ready=False), heard("member3", ready=False)
    )
    await story.pass_s(CONFIRM_S)
    assert await taints(story) == {"member2": ["NoExecute"]}
    await story.pass_s(PACE_S)
    assert set(await taints(story)) == {"member2", "member3"}
    await story.pass_s(PACE_S)
    assert set(await taints(story)) == {"member2", "member3", "member4"}


async def test_nothing_new_goes_to_any_of_them_at_once(story: Story) -> None:
    await story.say(taint_policy("failing", "NoSchedule"))
    await story.say(*(heard(name, ready=False) for name in MEMBERS))
    await story.pass_s(CONFIRM_S)
    assert await taints(story) == {name: ["NoSchedule"] for name in MEMBERS}


async def test_where_most_fail_at_once_none_is_emptied(story: Story) -> None:
    await story.say(taint_policy("failing"))
    await story.say(*(heard(name, ready=False) for name in MEMBERS[:4]))
    await story.pass_s(1_000)
    assert await taints(story) == {}
    # The others are back: it was not the control plane that was cut off.
    await story.say(*(heard(name) for name in MEMBERS[1:4]))
    assert await taints(story) == {"member1": ["NoExecute"]}


async def test_all_that_goes_on_through_a_restart(story: Story) -> None:
    await story.say(taint_policy("failing"))
    await story.say(*(heard(name, ready=False) for name in MEMBERS[:3]))
    for _ in range(5):
        await story.pass_s(CONFIRM_S // 3)
        await story.restart()
    assert set(await taints(story)) == set(MEMBERS[:3])
    assert len(await story.told(clusters.ClusterTainted)) == 3


async def test_when_a_crowd_ends_they_are_emptied_one_after_the_other(story: Story) -> None:
    await story.say(taint_policy("failing"))
    await story.say(*(heard(name, ready=False) for name in MEMBERS[:4]))
    await story.pass_s(1_000)
    await story.say(heard("member4"))
    assert set(await taints(story)) == {"member1"}
    await story.pass_s(PACE_S)
    assert set(await taints(story)) == {"member1", "member2"}
    await story.pass_s(PACE_S)
    assert set(await taints(story)) == {"member1", "member2", "member3"}


async def test_a_crowd_ends_with_clusters_that_join_too(story: Story) -> None:
    await story.say(taint_policy("failing"))
    await story.say(*(heard(name, ready=False) for name in MEMBERS[:4]))
    await story.pass_s(1_000)
    await story.say(joined("member7"), joined("member8"))
    assert set(await taints(story)) == {"member1"}


async def test_who_is_back_gives_no_other_its_turn(story: Story) -> None:
    await story.say(taint_policy("failing"))
    await story.say(*(heard(name, ready=False) for name in MEMBERS[:3]))
    await story.pass_s(CONFIRM_S + 1)
    await story.say(heard("member1"))
    await story.pass_s(PACE_S - 2)
    assert set(await taints(story)) == {"member1"}
    await story.pass_s(1)
    assert set(await taints(story)) == {"member1", "member2"}


async def test_those_behind_clusters_that_are_back_are_emptied_at_the_same_pace(story: Story) -> None:
    more = [f"more{index}" for index in range(20)]
    await story.say(taint_policy("failing"), *map(joined, more))
    await story.say(*(heard(name, ready=False) for name in more[:10]))
    await story.pass_s(CONFIRM_S)
    await story.say(*(heard(name) for name in more[1:6]))
    for count in range(1, 6):
        emptied = {told.name for told in await story.told(clusters.ClusterTainted)}
        assert emptied == {"more0", *more[6 : 5 + count]}
        await story.pass_s(PACE_S)


async def test_a_policy_that_comes_later_empties_one_after_the_other(story: Story) -> None:
    await story.say(*(heard(name, ready=False) for name in MEMBERS[:2]))
    await story.pass_s(1_000)
    await story.say(taint_policy("failing"))
    assert set(await taints(story)) == {"member1"}
    await story.pass_s(PACE_S)
    assert set(await taints(story)) == {"member1", "member2"}


async def test_an_engine_that_was_away_makes_up_for_nothing(story: Story) -> None:
    await story.say(taint_policy("failing"))
    await story.say(*(heard(name, ready=False) for name in MEMBERS[:3]))
    await story.pass_s(CONFIRM_S - 1)
    story.now_ms += 1_000_000
    await story.restart()
    assert set(await taints(story)) == {"member1"}
    await story.pass_s(PACE_S)
    assert set(await taints(story)) == {"member1", "member2"}
