"""Taints: evictions, their times, graceful purge, and no automatic return."""

from itertools import pairwise

import pytest

from engine.deciders import eviction_rules, taint_manager
from engine.domain.bindings import SUCCESS
from events import clusters, decisions
from events.json_values import Json
from tests.builders import inputs, manifests
from tests.builders.inputs import capacity, deployment, joined, key, policy, tainted, untainted
from tests.builders.manifests import DUPLICATED, DYNAMIC, on
from tests.deciders.story import Story
from tests.deciders.taints.objects import ANYWHERE, GRACE_S, MEMBERS, WEB, finished_evictions


def tolerating(seconds: int | None, **placement: object) -> Json:
    toleration: Json = {"key": "maintenance", "operator": "Exists", "effect": "NoExecute"}
    if seconds is not None:
        toleration["tolerationSeconds"] = seconds
    return on(*MEMBERS, scheduling=DYNAMIC, clusterTolerations=[toleration], **placement)


async def test_no_schedule_keeps_new_workloads_away_and_running_ones_in_place(story: Story) -> None:
    await story.submit(policy("p", ANYWHERE), deployment("web", 4))
    await story.submit(tainted("member1", "NoSchedule"))
    assert story.placed(WEB) == {"member1": 2, "member2": 2}
    await story.submit(deployment("late", 4))
    assert story.placed(key("late")) == {"member2": 4}
    # A cluster that already runs the workload may get more replicas.
    await story.submit(deployment("web", 6))
    assert story.placed(WEB) == {"member1": 3, "member2": 3}


async def test_prefer_no_schedule_has_no_effect(story: Story) -> None:
    await story.submit(tainted("member1", "PreferNoSchedule"), policy("p", ANYWHERE), deployment("web", 4))
    assert story.placed(WEB) == {"member1": 2, "member2": 2}


async def test_tolerated_no_schedule_taint_has_no_effect(story: Story) -> None:
    toleration = {"key": "dedicated", "value": "special-user", "effect": "NoSchedule"}
    await story.submit(tainted("member1", "NoSchedule", "dedicated", "special-user"))
    await story.submit(policy("p", on("member1", clusterTolerations=[toleration])), deployment("web"))
    assert story.placed(WEB) == {"member1": 1}
    # Only this value is tolerated.
    await story.submit(tainted("member1", "NoSchedule", "dedicated", "somebody-else"), deployment("late"))
    assert story.placed(key("late")) == {}


@pytest.mark.parametrize(("cluster", "other"), [MEMBERS, MEMBERS[::-1]])
async def test_no_execute_evicts_untolerating_workloads_at_once(
    story: Story, cluster: str, other: str
) -> None:
    await story.submit(policy("p", ANYWHERE), deployment("web", 4))
    await story.submit(tainted(cluster, "NoExecute"))
    assert story.placed(WEB) == {other: 4}
    (eviction,) = await story.recorded(decisions.EvictionStarted)
    assert (eviction.cluster, eviction.replicas, eviction.reason) == (cluster, 2, "TaintUntolerated")


async def test_toleration_without_seconds_lasts_forever(story: Story) -> None:
    await story.submit(policy("p", tolerating(None)), deployment("web", 4))
    await story.submit(tainted("member1", "NoExecute"))
    await story.pass_s(1_000_000)
    assert story.placed(WEB) == {"member1": 2, "member2": 2}
    assert story.worker.next_timer_ms() is None


async def test_toleration_of_0_seconds_evicts_at_once(story: Story) -> None:
    await story.submit(policy("p", tolerating(0)), deployment("web", 4))
    await story.submit(tainted("member1", "NoExecute"))
    assert story.placed(WEB) == {"member2": 4}


async def test_workload_is_evicted_exactly_after_its_toleration_seconds(story: Story) -> None:
    await story.submit(policy("p", tolerating(30)), deployment("web", 4))
    await story.submit(tainted("member1", "NoExecute"))
    await story.pass_ms(29_999)
    assert story.placed(WEB) == {"member1": 2, "member2": 2}
    await story.pass_ms(1)
    assert story.placed(WEB) == {"member2": 4}


async def test_each_cluster_is_left_at_its_own_time(story: Story) -> None:
    await story.submit(policy("p", tolerating(30)), deployment("web", 4))
    await story.submit(tainted("member2", "NoExecute"))
    await story.pass_s(10)
    await story.submit(tainted("member1", "NoExecute"))
    await story.pass_s(20)
    assert [eviction.cluster for eviction in await story.recorded(decisions.EvictionStarted)] == ["member2"]
    await story.pass_s(10)
    assert story.placed(WEB) == {}


async def test_taint_removed_in_time_evicts_nothing(story: Story) -> None:
    await story.submit(policy("p", tolerating(30)), deployment("web", 4))
    await story.submit(tainted("member1", "NoExecute"))
    await story.pass_s(29)
    await story.submit(untainted("member1"))
    await story.pass_s(3_600)
    assert await story.recorded(decisions.EvictionStarted) == []


async def test_repeated_taint_does_not_restart_the_toleration_time(story: Story) -> None:
    await story.submit(policy("p", tolerating(30)), deployment("web", 4))
    await story.submit(tainted("member1", "NoExecute"))
    await story.pass_s(20)
    await story.submit(tainted("member1", "NoExecute"))
    await story.pass_s(10)
    assert story.placed(WEB) == {"member2": 4}


async def test_toleration_timer_survives_a_restart_and_fires_once(story: Story) -> None:
    await story.submit(policy("p", tolerating(30)), deployment("web", 4))
    await story.submit(tainted("member1", "NoExecute"))
    await story.pass_ms(29_999)
    await story.restart()
    assert story.placed(WEB) == {"member1": 2, "member2": 2}
    await story.pass_ms(1)
    await story.restart()
    await story.pass_s(3_600)
    assert len(await story.recorded(decisions.EvictionStarted)) == 1


async def test_overdue_toleration_timer_fires_at_the_start(story: Story) -> None:
    await story.submit(policy("p", tolerating(30)), deployment("web", 4))
    await story.submit(tainted("member1", "NoExecute"))
    story.now_ms += 3_600_000
    await story.restart()
    (eviction,) = await story.recorded(decisions.EvictionStarted)
    assert eviction.created_ms == story.now_ms
    assert story.placed(WEB) == {"member2": 4}


async def test_step_times_never_decrease_when_the_clock_goes_back(story: Story) -> None:
    await story.submit(policy("p", ANYWHERE), deployment("web", 4))
    story.now_ms -= 5_000
    await story.submit(deployment("web", 6))
    times = [step.time_ms for step in await story.recorded(decisions.StepTaken) if step.number > 1]
    assert times == sorted(times)


async def test_untaint_moves_nothing_back(story: Story) -> None:
    await story.submit(policy("p", ANYWHERE), deployment("web", 4))
    await story.submit(tainted("member1", "NoExecute"))
    await story.report(WEB, "member2")
    await story.submit(untainted("member1"))
    await story.pass_s(3_600)
    assert await story.replicas(WEB) == {"member2": 4}


# --- unclaimed workloads ---


async def test_unclaimed_workload_is_evicted_without_a_replacement(story: Story) -> None:
    # As in Karmada: its taint manager reads bindings only, and its scheduler skips unclaimed ones.
    await story.submit(policy("p", ANYWHERE), deployment("web", 4))
    await story.submit(inputs.policy_deleted("p"))
    await story.submit(tainted("member1", "NoExecute"))
    assert (story.placed(WEB), story.binding(WEB).condition) == ({"member2": 2}, SUCCESS)
    await story.report(WEB, "member2")
    await story.pass_s(GRACE_S)
    assert await story.replicas(WEB) == {"member1": 2, "member2": 2}, "it runs on for as long as it may"
    await story.pass_s(1)
    assert await finished_evictions(story) == [eviction_rules.EndReason.GRACE_PERIOD_OVER]
    assert await story.replicas(WEB) == {"member2": 2}


async def test_unclaimed_workload_keeps_the_tolerations_of_its_last_placement(story: Story) -> None:
    await story.submit(policy("p", tolerating(30)), deployment("web", 4))
    await story.submit(inputs.policy_deleted("p"))
    await story.submit(tainted("member1", "NoExecute"))
    await story.pass_s(29)
    assert story.placed(WEB) == {"member1": 2, "member2": 2}
    await story.pass_s(1)
    assert story.placed(WEB) == {"member2": 2}


@pytest.mark.parametrize("seconds", [1, GRACE_S + 1])
async def test_reclaimed_workload_is_scheduled_from_scratch(story: Story, seconds: int) -> None:
    await story.submit(policy("p", ANYWHERE), deployment("web", 4))
    await story.submit(inputs.policy_deleted("p"))
    await story.submit(tainted("member1", "NoExecute"))
    await story.pass_s(seconds)
    await story.submit(policy("q", ANYWHERE))
    assert story.placed(WEB) == {"member2": 4}
    assert await finished_evictions(story) == (
        [] if seconds == 1 else [eviction_rules.EndReason.GRACE_PERIOD_OVER]
    )


# --- removed clusters ---


async def test_workloads_of_a_removed_cluster_move(story: Story) -> None:
    await story.submit(policy("p", ANYWHERE), deployment("web", 4))
    await story.submit(clusters.ClusterLeft(name="member1"))
    assert story.placed(WEB) == {"member2": 4}
    assert await story.replicas(WEB) == {"member2": 4}
    assert (await story.recorded(decisions.ScheduleDecided))[-1].trigger == "ClusterTerminating"


async def test_new_cluster_gets_nothing_from_divided_workloads(story: Story) -> None:
    await story.submit(policy("p", {"replicaScheduling": DYNAMIC}), deployment("web", 4))
    await story.submit(joined("member3"), capacity("member3"))
    assert story.placed(WEB) == {"member1": 2, "member2": 2}


async def test_new_cluster_gets_duplicated_workloads(story: Story) -> None:
    await story.submit(policy("p", {"replicaScheduling": DUPLICATED}), deployment("web", 4))
    await story.submit(joined("member3"))
    assert story.placed(WEB) == {"member1": 4, "member2": 4, "member3": 4}


async def test_tolerated_taints_that_evict_in_turns_do_so_ever_less_often(story: Story) -> None:
    """The scheduler comes back to a cluster whose taint is tolerated for a while, even when that time is over."""
    web, selector = key("web", manifests.CONFIG_MAP), manifests.selector(kind=manifests.CONFIG_MAP)
    toleration: Json = {"key": "maintenance", "operator": "Exists", "effect": "NoExecute"}
    placement = on(*MEMBERS, "member3", clusterTolerations=[{**toleration, "tolerationSeconds": 3}])
    await story.submit(joined("member3"), policy("p", placement, selector))
    await story.submit(inputs.applied(manifests.config_map("web", "default")))
    for member in ("member2", "member3"):
        await story.report(web, member)
    await story.submit(tainted("member1", "NoExecute"))
    await story.pass_s(1)
    await story.submit(tainted("member2", "NoExecute"))
    await story.pass_s(600)
    started = await story.recorded(decisions.EvictionStarted, web)
    times_ms = [eviction.created_ms or 0 for eviction in started if eviction.cluster == "member1"]
    pauses_ms = [later - earlier for earlier, later in pairwise(times_ms)]
    assert pauses_ms[0] >= taint_manager.RETURN_MS
    assert pauses_ms == sorted(pauses_ms)
    assert len(started) <= 20


async def test_new_taint_evicts_after_its_own_time(story: Story) -> None:
    await story.submit(policy("p", tolerating(3)), deployment("web", 4))
    for number in range(3):
        await story.submit(tainted("member1", "NoExecute"))
        await story.pass_ms(2_999)
        assert story.placed(WEB) == {"member1": 2, "member2": 2}
        await story.pass_ms(1)
        assert story.placed(WEB) == {"member2": 4}
        await story.report(WEB, "member2")
        await story.submit(untainted("member1"))
        await story.submit(inputs.rebalancer(f"back-{number}", inputs.ref("web")))


async def test_workload_that_came_back_is_evicted_again_by_a_taint_that_it_does_not_tolerate(
    story: Story,
) -> None:
    await story.submit(policy("p", ANYWHERE), deployment("web", 4))
    for number in range(2):
        await story.submit(tainted("member1", "NoExecute"))
        assert story.placed(WEB) == {"member2": 4}
        await story.report(WEB, "member2")
        await story.submit(untainted("member1"))
        await story.submit(inputs.rebalancer(f"back-{number}", inputs.ref("web")))
        assert story.placed(WEB) == {"member1": 2, "member2": 2}


async def test_workload_that_comes_back_to_an_expired_toleration_stays_longer_each_time(story: Story) -> None:
    await story.submit(policy("p", tolerating(3)), deployment("web", 4))
    await story.submit(tainted("member1", "NoExecute"))
    for number, seconds in enumerate((3, 5, 5, 10, 20)):
        await story.pass_ms(seconds * 1000 - 1)
        assert story.placed(WEB) == {"member1": 2, "member2": 2}
        await story.pass_ms(1)
        assert story.placed(WEB) == {"member2": 4}
        await story.report(WEB, "member2")
        await story.submit(inputs.rebalancer(f"back-{number}", inputs.ref("web")))
