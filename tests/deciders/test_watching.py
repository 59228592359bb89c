"""Silent and failing clusters: taints by policies, their pace, and when nothing is tainted."""

import pytest

from engine.deciders import cluster_health
from events import cluster_decisions, clusters
from tests.builders.inputs import (
    capacity,
    conditions_reported,
    deployment,
    health_reported,
    joined,
    key,
    policy,
    rebalancer,
    ref,
    taint_policy,
    untainted,
)
from tests.builders.manifests import DYNAMIC, on
from tests.deciders.story import Story

WEB = key("web")
MEMBERS = tuple(f"member{index}" for index in range(1, 7))
CONFIRM_S = cluster_health.CONFIRM_MS // 1000
PACE_S = cluster_health.PACE_MS // 1000
BUILT_IN = "cluster.karmada.io/"
NOT_READY = ("cluster.karmada.io/not-ready", "NoSchedule")
UNREACHABLE = ("cluster.karmada.io/unreachable", "NoSchedule")


@pytest.fixture(autouse=True)
async def six_members(story: Story) -> None:
    await story.submit(*(joined(name) for name in MEMBERS), *(capacity(name) for name in MEMBERS))
    await story.submit(*(health_reported(name) for name in MEMBERS))


async def taints(story: Story) -> dict[str, list[str]]:
    """Return the effects of the taints that policies added, per tainted cluster."""
    return {
        name: effects
        for name, found in _taints(story).items()
        if (effects := [effect for taint_key, effect in found if not taint_key.startswith(BUILT_IN)])
    }


def built_in_taints(story: Story) -> dict[str, list[tuple[str, str]]]:
    """Return key and effect of the taints that no policy added, per tainted cluster."""
    return {
        name: built_in
        for name, found in _taints(story).items()
        if (built_in := [taint for taint in found if taint[0].startswith(BUILT_IN)])
    }


async def tainted_by_policies(story: Story) -> list[str]:
    """Return the clusters to which policies added taints, in order."""
    return [
        each.name
        for each in await story.recorded(clusters.ClusterTainted)
        if not each.taint.key.startswith(BUILT_IN)
    ]


def _taints(story: Story) -> dict[str, list[tuple[str, str]]]:
    fleet = story.worker.facts.fleet
    found = {name: cluster for name in MEMBERS if (cluster := fleet.get(name)) is not None}
    return {
        name: [(taint.key, taint.effect) for taint in cluster.spec.taints] for name, cluster in found.items()
    }


# --- taints without policies ---


async def test_new_workloads_avoid_unready_clusters_and_running_ones_stay(story: Story) -> None:
    await story.submit(policy("p", on(*MEMBERS)), deployment("web", 1))
    await story.submit(health_reported("member1", ready=False))
    await story.pass_ms(cluster_health.CONFIRM_MS - 1)
    assert built_in_taints(story) == {}
    await story.pass_ms(1)
    assert built_in_taints(story) == {"member1": [NOT_READY]}
    await story.submit(policy("q", on(*MEMBERS)), deployment("late", 1))
    assert set(story.placed(key("late"))) == {*MEMBERS} - {"member1"}
    assert set(story.placed(WEB)) == {*MEMBERS}
    await story.submit(health_reported("member1"))
    await story.pass_s(CONFIRM_S)
    assert built_in_taints(story) == {}


async def test_silent_cluster_is_unreachable_at_once_and_not_ready_later(story: Story) -> None:
    await story.submit(health_reported("member1", grace_s=40))
    await story.pass_s(40)
    assert built_in_taints(story) == {"member1": [UNREACHABLE]}
    await story.submit(health_reported("member1", ready=False))
    await story.pass_s(CONFIRM_S)
    assert built_in_taints(story) == {"member1": [NOT_READY]}


async def test_ready_clusters_without_taints_cost_no_step(story: Story) -> None:
    steps = await story.steps()
    await story.pass_s(10 * CONFIRM_S)
    assert await story.steps() == steps


# --- silence ---


async def test_cluster_is_silenced_exactly_after_its_grace_seconds(story: Story) -> None:
    await story.submit(health_reported("member1", grace_s=40))
    await story.pass_ms(39_999)
    assert await story.recorded(cluster_decisions.ClusterSilenced) == []
    await story.pass_ms(1)
    (told,) = await story.recorded(cluster_decisions.ClusterSilenced)
    assert (told.name, told.grace_seconds) == ("member1", 40)
    assert story.worker.facts.health["member1"].status == "Unknown"


async def test_each_report_restarts_the_grace_time_without_a_step(story: Story) -> None:
    await story.submit(health_reported("member1", grace_s=40))
    steps = await story.steps()
    for _ in range(10):
        await story.pass_s(39)
        await story.submit(health_reported("member1", grace_s=40))
    assert await story.recorded(cluster_decisions.ClusterSilenced) == []
    assert await story.steps() == steps


async def test_silence_is_reported_once_and_ends_with_the_next_report(story: Story) -> None:
    await story.submit(health_reported("member1", grace_s=40))
    await story.pass_s(1_000)
    await story.restart()
    await story.pass_s(1_000)
    assert len(await story.recorded(cluster_decisions.ClusterSilenced)) == 1
    await story.submit(health_reported("member1", grace_s=40))
    assert story.worker.facts.health["member1"].status == "True"
    await story.pass_s(1_000)
    assert len(await story.recorded(cluster_decisions.ClusterSilenced)) == 2


async def test_cluster_without_grace_seconds_is_never_silenced(story: Story) -> None:
    await story.pass_s(1_000_000)
    assert await story.recorded(cluster_decisions.ClusterSilenced) == []


async def test_concurrent_report_outranks_the_silence_before_it(story: Story) -> None:
    await story.submit(health_reported("member1", grace_s=40))
    story.now_ms += 40_000
    story.write_first(health_reported("member1", grace_s=40))
    await story.settle()
    assert len(await story.recorded(cluster_decisions.ClusterSilenced)) == 1
    assert story.worker.facts.health["member1"].status == "True"


async def test_removed_cluster_is_not_silenced(story: Story) -> None:
    await story.submit(health_reported("member1", grace_s=40))
    await story.submit(clusters.ClusterLeft(name="member1"))
    await story.pass_s(1_000)
    assert await story.recorded(cluster_decisions.ClusterSilenced) == []


async def test_new_owner_waits_a_full_grace_time(story: Story) -> None:
    # Reports during downtime of the control plane are lost, however healthy the clusters are.
    await story.submit(health_reported("member1", grace_s=40))
    story.now_ms += 1_000_000
    await story.restart()
    await story.pass_ms(39_999)
    assert await story.recorded(cluster_decisions.ClusterSilenced) == []
    await story.pass_ms(1)
    assert len(await story.recorded(cluster_decisions.ClusterSilenced)) == 1


async def test_silence_does_not_apply_to_a_rejoined_cluster(story: Story) -> None:
    await story.submit(health_reported("member1", grace_s=40))
    story.now_ms += 40_000
    story.write_first(clusters.ClusterLeft(name="member1"), joined("member1"))
    await story.settle()
    assert len(await story.recorded(cluster_decisions.ClusterSilenced)) == 1
    assert "member1" not in story.worker.facts.health


# --- conditions become taints ---


async def test_late_report_counts_from_its_arrival(story: Story) -> None:
    await story.submit(taint_policy("failing"))
    late = story.record(health_reported("member1", ready=False))
    await story.pass_s(CONFIRM_S * 2)
    await story.log.append([late])
    await story.settle()
    assert await taints(story) == {}
    await story.pass_ms(cluster_health.CONFIRM_MS - 1)
    assert await taints(story) == {}
    await story.pass_ms(1)
    assert await taints(story) == {"member1": ["NoExecute"]}


async def test_unready_cluster_is_tainted_and_emptied_after_confirmation(story: Story) -> None:
    await story.submit(taint_policy("failing"))
    await story.submit(policy("p", on("member1", "member2", scheduling=DYNAMIC)), deployment("web", 4))
    await story.submit(health_reported("member1", ready=False))
    await story.pass_ms(cluster_health.CONFIRM_MS - 1)
    assert story.placed(WEB) == {"member1": 2, "member2": 2}
    await story.pass_ms(1)
    assert await taints(story) == {"member1": ["NoExecute"]}
    assert story.placed(WEB) == {"member2": 4}


async def test_ready_cluster_is_untainted_after_confirmation_and_a_rebalancer_spreads_again(
    story: Story,
) -> None:
    await story.submit(taint_policy("failing"))
    await story.submit(policy("p", on("member1", "member2", scheduling=DYNAMIC)), deployment("web", 4))
    await story.submit(health_reported("member1", ready=False))
    await story.pass_s(CONFIRM_S)
    await story.report(WEB, "member2")
    await story.submit(health_reported("member1"))
    await story.pass_ms(cluster_health.CONFIRM_MS - 1)
    assert await taints(story) == {"member1": ["NoExecute"]}
    await story.pass_ms(1)
    assert await taints(story) == {}
    assert story.placed(WEB) == {"member2": 4}
    await story.submit(rebalancer("spread", ref("web")))
    assert story.placed(WEB) == {"member1": 2, "member2": 2}


async def test_flapping_cluster_is_not_tainted(story: Story) -> None:
    await story.submit(taint_policy("failing"))
    for _ in range(20):
        await story.submit(health_reported("member1", ready=False))
        await story.pass_s(CONFIRM_S - 1)
        await story.submit(health_reported("member1"))
        await story.pass_s(1)
    assert await story.recorded(clusters.ClusterTainted) == []


async def test_silence_needs_no_confirmation(story: Story) -> None:
    await story.submit(taint_policy("silent", "NoExecute", "Unknown"))
    await story.submit(health_reported("member1", grace_s=40))
    await story.pass_s(40)
    assert await taints(story) == {"member1": ["NoExecute"]}


async def test_taint_policy_applies_to_its_named_clusters(story: Story) -> None:
    await story.submit(taint_policy("failing", on=("member2",)))
    await story.submit(health_reported("member1", ready=False), health_reported("member2", ready=False))
    await story.pass_s(CONFIRM_S + PACE_S)
    assert await taints(story) == {"member2": ["NoExecute"]}


async def test_new_taint_policy_applies_to_existing_conditions(story: Story) -> None:
    await story.submit(health_reported("member1", ready=False))
    await story.pass_s(CONFIRM_S)
    await story.submit(taint_policy("failing"))
    assert await taints(story) == {"member1": ["NoExecute"]}


async def test_manually_removed_taint_returns_while_its_condition_holds(story: Story) -> None:
    await story.submit(taint_policy("failing"))
    await story.submit(health_reported("member1", ready=False))
    await story.pass_s(CONFIRM_S)
    await story.submit(untainted("member1", "not-ready"))
    assert await taints(story) == {"member1": ["NoExecute"]}


async def test_taint_without_removal_conditions_is_kept(story: Story) -> None:
    await story.submit(taint_policy("failing", removeOnConditions=[]))
    await story.submit(health_reported("member1", ready=False))
    await story.pass_s(CONFIRM_S)
    await story.submit(health_reported("member1"))
    await story.pass_s(1_000)
    assert await taints(story) == {"member1": ["NoExecute"]}


async def test_judgement_and_taint_are_written_once(story: Story) -> None:
    await story.submit(taint_policy("failing"))
    await story.submit(health_reported("member1", ready=False))
    await story.pass_s(1_000)
    await story.restart()
    await story.pass_s(1_000)
    assert len(await story.recorded(cluster_decisions.ClusterJudged)) == 1
    assert len(await story.recorded(clusters.ClusterTainted)) == 2


# --- conditions that clients report ---


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


# --- storms ---


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


async def test_engine_does_not_catch_up_on_evictions_after_downtime(story: Story) -> None:
    await story.submit(taint_policy("failing"))
    await story.submit(*(health_reported(name, ready=False) for name in MEMBERS[:3]))
    await story.pass_s(CONFIRM_S - 1)
    story.now_ms += 1_000_000
    await story.restart()
    assert set(await taints(story)) == {"member1"}
    await story.pass_s(PACE_S)
    assert set(await taints(story)) == {"member1", "member2"}
