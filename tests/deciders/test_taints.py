"""Taints: who stays, who leaves and when, what is kept meanwhile, and that nothing moves back."""

import pytest

from engine.deciders import eviction_rules, taint_manager
from events import clusters, decisions
from tests.deciders import writing
from tests.deciders.story import Story
from tests.deciders.writing import (
    AGGREGATED,
    DUPLICATED,
    DYNAMIC,
    deployment,
    joined,
    key,
    on,
    policy,
    room,
    tainted,
    untainted,
)

WEB = key("web")
MEMBERS = ("member1", "member2")
ANYWHERE = on(*MEMBERS, scheduling=DYNAMIC)
GRACE_S = taint_manager.GRACE_PERIOD_MS // 1000


@pytest.fixture(autouse=True)
async def two_members(story: Story) -> None:
    await story.say(*(joined(name) for name in MEMBERS), *(room(name) for name in MEMBERS))


def tolerating(seconds: int | None, **placement: object) -> writing.Json:
    toleration: writing.Json = {"key": "maintenance", "operator": "Exists", "effect": "NoExecute"}
    if seconds is not None:
        toleration["tolerationSeconds"] = seconds
    return on(*MEMBERS, scheduling=DYNAMIC, clusterTolerations=[toleration], **placement)


async def ended(story: Story) -> list[str]:
    return [each.reason for each in await story.told(decisions.EvictionFinished)]


async def test_no_schedule_keeps_new_workloads_away_and_leaves_what_runs(story: Story) -> None:
    await story.say(policy("p", ANYWHERE), deployment("web", 4))
    await story.say(tainted("member1", "NoSchedule"))
    assert story.placed(WEB) == {"member1": 2, "member2": 2}
    await story.say(deployment("late", 4))
    assert story.placed(key("late")) == {"member2": 4}
    # A cluster that is in use already may get more.
    await story.say(deployment("web", 6))
    assert story.placed(WEB) == {"member1": 3, "member2": 3}


async def test_prefer_no_schedule_does_nothing(story: Story) -> None:
    await story.say(tainted("member1", "PreferNoSchedule"), policy("p", ANYWHERE), deployment("web", 4))
    assert story.placed(WEB) == {"member1": 2, "member2": 2}


async def test_a_tolerated_taint_keeps_nothing_away(story: Story) -> None:
    toleration = {"key": "dedicated", "value": "special-user", "effect": "NoSchedule"}
    await story.say(tainted("member1", "NoSchedule", "dedicated", "special-user"))
    await story.say(policy("p", on("member1", clusterTolerations=[toleration])), deployment("web"))
    assert story.placed(WEB) == {"member1": 1}
    # It tolerates this value only.
    await story.say(tainted("member1", "NoSchedule", "dedicated", "somebody-else"), deployment("late"))
    assert story.placed(key("late")) == {}


async def test_no_execute_drives_out_at_once_what_does_not_tolerate_it(story: Story) -> None:
    await story.say(policy("p", ANYWHERE), deployment("web", 4))
    await story.say(tainted("member1", "NoExecute"))
    assert story.placed(WEB) == {"member2": 4}
    (eviction,) = await story.told(decisions.EvictionStarted)
    assert (eviction.cluster, eviction.replicas, eviction.reason) == ("member1", 2, "TaintUntolerated")


async def test_tolerated_for_ever(story: Story) -> None:
    await story.say(policy("p", tolerating(None)), deployment("web", 4))
    await story.say(tainted("member1", "NoExecute"))
    await story.pass_s(1_000_000)
    assert story.placed(WEB) == {"member1": 2, "member2": 2}
    assert story.worker.next_timer_ms() is None


async def test_tolerated_for_0_seconds_is_not_tolerated(story: Story) -> None:
    await story.say(policy("p", tolerating(0)), deployment("web", 4))
    await story.say(tainted("member1", "NoExecute"))
    assert story.placed(WEB) == {"member2": 4}


async def test_tolerated_for_a_time_it_leaves_to_the_millisecond(story: Story) -> None:
    await story.say(policy("p", tolerating(30)), deployment("web", 4))
    await story.say(tainted("member1", "NoExecute"))
    await story.pass_ms(29_999)
    assert story.placed(WEB) == {"member1": 2, "member2": 2}
    await story.pass_ms(1)
    assert story.placed(WEB) == {"member2": 4}


async def test_a_taint_that_goes_in_time_drives_nobody_out(story: Story) -> None:
    await story.say(policy("p", tolerating(30)), deployment("web", 4))
    await story.say(tainted("member1", "NoExecute"))
    await story.pass_s(29)
    await story.say(untainted("member1"))
    await story.pass_s(3_600)
    assert await story.told(decisions.EvictionStarted) == []


async def test_the_same_taint_again_does_not_begin_the_time_anew(story: Story) -> None:
    await story.say(policy("p", tolerating(30)), deployment("web", 4))
    await story.say(tainted("member1", "NoExecute"))
    await story.pass_s(20)
    await story.say(tainted("member1", "NoExecute"))
    await story.pass_s(10)
    assert story.placed(WEB) == {"member2": 4}


async def test_a_timer_survives_a_restart_and_fires_once(story: Story) -> None:
    await story.say(policy("p", tolerating(30)), deployment("web", 4))
    await story.say(tainted("member1", "NoExecute"))
    await story.pass_ms(29_999)
    await story.restart()
    assert story.placed(WEB) == {"member1": 2, "member2": 2}
    await story.pass_ms(1)
    await story.restart()
    await story.pass_s(3_600)
    assert len(await story.told(decisions.EvictionStarted)) == 1


async def test_a_timer_that_was_due_while_nobody_ran_fires_at_the_start(story: Story) -> None:
    await story.say(policy("p", tolerating(30)), deployment("web", 4))
    await story.say(tainted("member1", "NoExecute"))
    story.now_ms += 3_600_000
    await story.restart()
    (eviction,) = await story.told(decisions.EvictionStarted)
    assert eviction.created_ms == story.now_ms
    assert story.placed(WEB) == {"member2": 4}


async def test_a_clock_that_goes_back_does_not_turn_time_back(story: Story) -> None:
    await story.say(policy("p", ANYWHERE), deployment("web", 4))
    story.now_ms -= 5_000
    await story.say(deployment("web", 6))
    times = [step.time_ms for step in await story.told(decisions.StepTaken) if step.number > 1]
    assert times == sorted(times)


async def test_untainting_moves_nothing_back(story: Story) -> None:
    await story.say(policy("p", ANYWHERE), deployment("web", 4))
    await story.say(tainted("member1", "NoExecute"))
    await story.report(WEB, "member2")
    await story.say(untainted("member1"))
    await story.pass_s(3_600)
    assert await story.replicas(WEB) == {"member2": 4}


# --- leaving gracefully ---


async def test_what_is_left_runs_on_until_the_replacement_is_healthy(story: Story) -> None:
    await story.say(policy("p", ANYWHERE), deployment("web", 4))
    await story.report(WEB, "member2")
    await story.say(tainted("member1", "NoExecute"))
    assert await story.replicas(WEB) == {"member1": 2, "member2": 4}
    await story.report(WEB, "member2", healthy=False, ready=3)
    assert await story.replicas(WEB) == {"member1": 2, "member2": 4}
    await story.report(WEB, "member2")
    assert await story.replicas(WEB) == {"member2": 4}
    assert await ended(story) == [eviction_rules.REPLACEMENT_HEALTHY]


async def test_a_report_of_the_former_work_does_not_make_the_replacement_healthy(story: Story) -> None:
    await story.say(policy("p", ANYWHERE), deployment("web", 4))
    before = (await story.running(WEB))["member2"]
    await story.say(tainted("member1", "NoExecute"))
    await story.report(WEB, "member2", of=before)
    assert await ended(story) == []


async def test_the_grace_period_ends_what_never_gets_healthy(story: Story) -> None:
    await story.say(policy("p", ANYWHERE), deployment("web", 4))
    await story.say(tainted("member1", "NoExecute"))
    await story.pass_s(GRACE_S)
    assert await story.replicas(WEB) == {"member1": 2, "member2": 4}
    await story.pass_ms(1)
    assert await story.replicas(WEB) == {"member2": 4}
    assert await ended(story) == [eviction_rules.GRACE_PERIOD_OVER]


async def test_the_grace_period_goes_on_through_a_restart(story: Story) -> None:
    await story.say(policy("p", ANYWHERE), deployment("web", 4))
    await story.say(tainted("member1", "NoExecute"))
    await story.pass_s(GRACE_S // 2)
    await story.restart()
    await story.pass_s(GRACE_S - GRACE_S // 2)
    assert await ended(story) == []
    await story.pass_ms(1)
    assert await ended(story) == [eviction_rules.GRACE_PERIOD_OVER]


async def test_what_needs_no_replacement_is_left_soon(story: Story) -> None:
    await story.say(policy("p", on(*MEMBERS, scheduling=DUPLICATED)), deployment("web", 2))
    await story.report(WEB, "member1")
    await story.report(WEB, "member2")
    await story.say(tainted("member1", "NoExecute"))
    assert await story.replicas(WEB) == {"member2": 2}
    assert await ended(story) == [eviction_rules.REPLACEMENT_HEALTHY]


async def test_a_cluster_that_is_left_is_not_chosen_again_meanwhile(story: Story) -> None:
    await story.say(policy("p", on(*MEMBERS, scheduling=AGGREGATED)), deployment("web", 4))
    assert story.placed(WEB) == {"member1": 4}
    await story.say(tainted("member1", "NoExecute"))
    await story.say(untainted("member1"), deployment("web", 12))
    assert story.placed(WEB) == {"member2": 12}


async def test_workload_that_fits_nowhere_else_keeps_running_after_its_grace_period(story: Story) -> None:
    await story.say(policy("p", on("member1")), deployment("web", 2))
    await story.say(tainted("member1", "NoExecute"))
    assert story.placed(WEB) == {}
    assert await story.replicas(WEB) == {"member1": 2}
    await story.pass_s(GRACE_S + 1)
    assert await story.replicas(WEB) == {"member1": 2}


async def test_purged_directly_it_is_removed_at_once_and_still_not_chosen_again(story: Story) -> None:
    directly = {"cluster": {"purgeMode": "Directly"}}
    await story.say(policy("p", ANYWHERE, failover=directly), deployment("web", 4))
    await story.say(tainted("member1", "NoExecute"))
    assert await story.replicas(WEB) == {"member2": 4}
    await story.say(untainted("member1"), deployment("web", 6))
    assert story.placed(WEB) == {"member2": 6}
    assert await ended(story) == []
    await story.pass_s(GRACE_S + 1)
    assert await ended(story) == [eviction_rules.GRACE_PERIOD_OVER]
    await story.say(deployment("web", 10))
    assert story.placed(WEB) == {"member1": 2, "member2": 8}


async def test_a_template_that_is_deleted_while_it_leaves_is_gone_everywhere(story: Story) -> None:
    await story.say(policy("p", ANYWHERE), deployment("web", 4))
    await story.say(tainted("member1", "NoExecute"))
    await story.say(writing.deleted("web"))
    assert await story.running(WEB) == {}
    assert story.worker.next_timer_ms() is None


# --- what no policy places any more ---


async def test_what_lost_its_policy_is_driven_out_and_nobody_looks_for_another_place(story: Story) -> None:
    # As in the reference, whose taint manager knows bindings alone, and whose scheduler skips what nothing claims.
    await story.say(policy("p", ANYWHERE), deployment("web", 4))
    await story.say(writing.policy_deleted("p"))
    await story.say(tainted("member1", "NoExecute"))
    assert story.placed(WEB) == {"member2": 2}
    await story.report(WEB, "member2")
    await story.pass_s(GRACE_S)
    assert await story.replicas(WEB) == {"member1": 2, "member2": 2}, "it runs on for as long as it may"
    await story.pass_s(1)
    assert await ended(story) == [eviction_rules.GRACE_PERIOD_OVER]
    assert await story.replicas(WEB) == {"member2": 2}


async def test_it_has_the_tolerations_of_the_placement_that_was_applied_last(story: Story) -> None:
    await story.say(policy("p", tolerating(30)), deployment("web", 4))
    await story.say(writing.policy_deleted("p"))
    await story.say(tainted("member1", "NoExecute"))
    await story.pass_s(29)
    assert story.placed(WEB) == {"member1": 2, "member2": 2}
    await story.pass_s(1)
    assert story.placed(WEB) == {"member2": 2}


@pytest.mark.parametrize("seconds", [1, GRACE_S + 1])
async def test_a_policy_that_claims_it_again_places_it_anew(story: Story, seconds: int) -> None:
    await story.say(policy("p", ANYWHERE), deployment("web", 4))
    await story.say(writing.policy_deleted("p"))
    await story.say(tainted("member1", "NoExecute"))
    await story.pass_s(seconds)
    await story.say(policy("q", ANYWHERE))
    assert story.placed(WEB) == {"member2": 4}
    assert await ended(story) == ([] if seconds == 1 else [eviction_rules.GRACE_PERIOD_OVER])


# --- leaving altogether ---


async def test_what_ran_in_a_cluster_that_left_goes_elsewhere(story: Story) -> None:
    await story.say(policy("p", ANYWHERE), deployment("web", 4))
    await story.say(clusters.ClusterLeft(name="member1"))
    assert story.placed(WEB) == {"member2": 4}
    assert await story.replicas(WEB) == {"member2": 4}
    assert (await story.told(decisions.ScheduleDecided))[-1].trigger == "ClusterTerminating"


async def test_a_new_cluster_takes_nothing_from_what_is_divided(story: Story) -> None:
    await story.say(policy("p", {"replicaScheduling": DYNAMIC}), deployment("web", 4))
    await story.say(joined("member3"), room("member3"))
    assert story.placed(WEB) == {"member1": 2, "member2": 2}


async def test_a_new_cluster_gets_what_is_duplicated(story: Story) -> None:
    await story.say(policy("p", {"replicaScheduling": DUPLICATED}), deployment("web", 4))
    await story.say(joined("member3"))
    assert story.placed(WEB) == {"member1": 4, "member2": 4, "member3": 4}
