"""Rebalancers: fresh decisions for their workloads, results, edits, completion and expiry."""

import pytest

from engine.deciders import rebalance
from engine.deciders.state import Rebalancer
from events import decisions, keys, links, rebalance_decisions, rejections, specs
from tests.builders import inputs
from tests.builders.inputs import (
    capacity,
    deployment,
    joined,
    key,
    policy,
    rebalancer,
    ref,
    tainted,
    template,
    untainted,
)
from tests.builders.manifests import CLUSTER_ROLE, CONFIG_MAP, DYNAMIC, on, selector
from tests.deciders.story import Story

WEB = key("web")
BOTH = on("member1", "member2", scheduling=DYNAMIC)
DEMO = keys.rebalancer_key("demo")


@pytest.fixture(autouse=True)
async def moved_away(story: Story) -> None:
    """The start of the tutorial: member1 was tainted, emptied and untainted; nothing moved back."""
    members = ("member1", "member2")
    await story.submit(*(joined(name) for name in members), *(capacity(name) for name in members))
    await story.submit(policy("p", BOTH), deployment("web", 4), deployment("api", 4))
    await story.submit(tainted("member1", "NoExecute"))
    for name in ("web", "api"):
        await story.report(key(name), "member2")
    await story.submit(untainted("member1"))
    await story.pass_s(60)


def rebalancer_state(story: Story, name: str = "demo") -> Rebalancer:
    rebalancer_key = keys.rebalancer_key(name)
    return story.worker.folds[keys.shard_of(rebalancer_key)].state.rebalancers[rebalancer_key]


def is_there(story: Story) -> bool:
    return DEMO in story.worker.folds[keys.shard_of(DEMO)].state.rebalancers


def observed(story: Story, rebalancer_name: str = "demo") -> dict[str, str]:
    """Return result or reason by workload name, in stored order."""
    seen = rebalancer_state(story, rebalancer_name).observed.values()
    return {workload.workload.name: workload.reason or workload.result for workload in seen}


async def fresh(story: Story, name: str = "web") -> int:
    """Return the number of fresh decisions."""
    scheduled = await story.recorded(decisions.ScheduleDecided, key(name))
    return sum(decision.mode == "Fresh" for decision in scheduled)


async def test_tutorial_ends_balanced(story: Story) -> None:
    assert story.placed(WEB) == {"member2": 4}
    # Its own replicas on member2 count as free capacity of member2 for a fresh decision.
    await story.submit(capacity("member2", 6))
    await story.submit(rebalancer("demo", ref("web")))
    assert story.placed(WEB) == {"member1": 2, "member2": 2}
    assert await story.replicas(WEB) == {"member1": 2, "member2": 2}
    assert observed(story) == {"web": "Successful"}
    assert await fresh(story, "api") == 0
    assert (await story.recorded(decisions.ScheduleDecided, WEB))[-1].trigger == "RescheduleTriggered"


async def test_result_is_reported_after_its_fresh_decision(story: Story) -> None:
    await story.submit(rebalancer("demo", ref("web")))
    records = await story.log.read_all(0, story.log.last_number())
    newest = {record.headers["ce_type"].split(".")[2]: record.number for record in records}
    assert newest["schedule-decided"] < newest["workload-rebalanced"] < newest["rebalance-finished"]


async def test_batch_is_requested_in_order_of_its_workloads(story: Story) -> None:
    role, settings = template("reader", CLUSTER_ROLE), template("settings", CONFIG_MAP)
    await story.submit(policy("c", on("member1"), selector("", CONFIG_MAP)), settings)
    await story.submit(policy("r", on("member1"), selector("", CLUSTER_ROLE), namespace=""), role)
    named = [
        ref("web"),
        ref("settings", CONFIG_MAP),
        ref("reader", CLUSTER_ROLE),
        ref("nobody"),
        ref("api"),
        ref("web"),
    ]
    await story.submit(rebalancer("demo", *named))
    (started,) = await story.recorded(rebalance_decisions.RebalanceStarted)
    assert [workload.name for workload in started.asked] == ["api", "nobody", "web", "reader", "settings"]
    assert observed(story) == {
        "api": "Successful",
        "nobody": "ReferencedBindingNotFound",
        "web": "Successful",
        "reader": "Successful",
        "settings": "Successful",
    }
    assert len(await story.recorded(rebalance_decisions.RebalanceFinished)) == 1
    assert await fresh(story) == 1


async def test_workload_without_binding_fails_and_is_not_retried(story: Story) -> None:
    await story.submit(rebalancer("demo", ref("late")))
    await story.submit(deployment("late", 2))
    await story.submit(rebalancer("demo", ref("late"), ref("web")))
    assert observed(story) == {"late": "ReferencedBindingNotFound", "web": "Successful"}
    assert await fresh(story, "late") == 0


async def test_template_without_a_policy_has_no_binding(story: Story) -> None:
    await story.submit(inputs.policy_deleted("p"), deployment("alone", 2))
    await story.submit(rebalancer("demo", ref("alone")))
    assert observed(story) == {"alone": "ReferencedBindingNotFound"}


async def test_unclaimed_workload_gets_no_decision_and_no_success(story: Story) -> None:
    # Karmada finds the binding, writes to it, and reports Successful although its scheduler skips it.
    await story.submit(inputs.policy_deleted("p"))
    before = story.placed(WEB)
    await story.submit(rebalancer("demo", ref("web")))
    assert observed(story) == {"web": "ReferencedBindingNotFound"}
    assert (story.placed(WEB), await story.recorded(decisions.RescheduleTriggered)) == (before, [])
    await story.submit(policy("q", BOTH), rebalancer("again", ref("web")))
    assert observed(story, "again") == {"web": "Successful"}
    assert await fresh(story) == 1


async def test_dependency_without_its_own_policy_gets_no_decision(story: Story) -> None:
    await story.submit(policy("p", BOTH, selector(), propagateDeps=True))
    await story.submit(template("settings", CONFIG_MAP), inputs.referring("web", "ConfigMap/settings"))
    assert set(await story.running(key("settings", CONFIG_MAP))) == set(await story.running(WEB))
    await story.submit(rebalancer("demo", ref("settings", CONFIG_MAP)))
    assert observed(story) == {"settings": "ReferencedBindingNotFound"}


async def test_fresh_decision_without_capacity_is_successful_and_stays_fresh(story: Story) -> None:
    await story.submit(capacity("member1", 0), capacity("member2", 0), deployment("web", 8))
    await story.submit(rebalancer("demo", ref("web")))
    assert observed(story) == {"web": "Successful"}
    last = (await story.recorded(decisions.ScheduleFailed, WEB))[-1]
    assert (last.mode, last.reason) == ("Fresh", "Unschedulable")
    await story.pass_s(60)
    await story.submit(capacity("member1", 8))
    assert (await story.recorded(decisions.ScheduleDecided, WEB))[-1].mode == "Fresh"
    assert sum(story.placed(WEB).values()) == 8


async def test_workload_added_by_an_edit_is_rescheduled(story: Story) -> None:
    await story.submit(rebalancer("demo", ref("web")))
    created_ms = story.now_ms
    await story.pass_s(10)
    await story.submit(rebalancer("demo", ref("web"), ref("api")))
    assert (await fresh(story), await fresh(story, "api")) == (1, 1)
    triggered = await story.recorded(decisions.RescheduleTriggered)
    assert [(event.key, event.generation, event.at_ms - created_ms) for event in triggered] == [
        (WEB, 1, 0),
        (key("api"), 2, 10_000),
    ]


async def test_workload_decided_in_the_same_instant_is_rescheduled(story: Story) -> None:
    await story.submit(deployment("web", 6), rebalancer("demo", ref("web")))
    assert await fresh(story) == 1


async def test_trigger_time_of_generation_1_is_the_creation_time(story: Story) -> None:
    created_ms = story.now_ms
    await story.write(rebalancer("demo", ref("web")))
    # The worker was idle for a while.
    story.now_ms += 5_000
    await story.settle()
    (triggered,) = await story.recorded(decisions.RescheduleTriggered)
    assert triggered.at_ms == created_ms


async def test_removed_workload_is_kept_if_successful_and_dropped_if_failed(story: Story) -> None:
    await story.submit(rebalancer("demo", ref("web"), ref("nobody"), ref("api")))
    await story.submit(rebalancer("demo", ref("api")))
    assert observed(story) == {"api": "Successful", "web": "Successful"}
    started = (await story.recorded(rebalance_decisions.RebalanceStarted))[-1]
    assert [workload.name for workload in started.dropped] == ["nobody"]
    assert started.asked == ()


async def test_failed_workload_is_retried_when_removed_and_added(story: Story) -> None:
    await story.submit(rebalancer("demo", ref("late"), ref("web")))
    await story.submit(deployment("late", 2))
    await story.submit(rebalancer("demo", ref("web")))
    await story.submit(rebalancer("demo", ref("late"), ref("web")))
    assert observed(story) == {"web": "Successful", "late": "Successful"}
    assert (await fresh(story, "late"), await fresh(story)) == (1, 1)


async def test_modified_workload_is_removed_and_added(story: Story) -> None:
    await story.submit(rebalancer("demo", ref("nobody")))
    await story.submit(rebalancer("demo", ref("web")))
    assert observed(story) == {"web": "Successful"}


async def test_finish_time_moves_with_each_generation(story: Story) -> None:
    await story.submit(rebalancer("demo", ref("web")))
    await story.pass_s(10)
    await story.submit(rebalancer("demo", ref("web"), ttl_s=600))
    first, second = await story.recorded(rebalance_decisions.RebalanceFinished)
    assert (first.generation, second.generation) == (1, 2)
    assert second.finish_ms - first.finish_ms == 10_000


async def test_unchanged_rebalancer_does_nothing(story: Story) -> None:
    await story.submit(rebalancer("demo", ref("web")))
    await story.submit(rebalancer("demo", ref("web")))
    assert len(await story.recorded(rebalance_decisions.RebalanceFinished)) == 1
    assert await fresh(story) == 1


async def test_recreated_rebalancer_reschedules_again(story: Story) -> None:
    await story.submit(rebalancer("demo", ref("web")))
    await story.submit(specs.RebalancerDeleted(name="demo"))
    assert not is_there(story)
    await story.submit(rebalancer("demo", ref("web")))
    assert await fresh(story) == 2


async def test_two_rebalancers_of_one_workload_both_finish(story: Story) -> None:
    await story.submit(rebalancer("demo", ref("web")), rebalancer("other", ref("web")))
    assert rebalancer_state(story).finished == rebalancer_state(story, "other").finished == 1
    assert len(await story.recorded(decisions.RescheduleTriggered)) == 2


async def test_repeated_answer_is_ignored(story: Story) -> None:
    await story.submit(rebalancer("demo", ref("web")))
    (answer,) = await story.recorded(links.RescheduleAnswered)
    before = await story.recorded(rebalance_decisions.WorkloadRebalanced)
    await story.submit(answer)
    assert await story.recorded(rebalance_decisions.WorkloadRebalanced) == before


async def test_repeated_answer_does_not_delay_the_answers_behind_it(story: Story) -> None:
    await story.submit(rebalancer("demo", ref("web")))
    (answer,) = await story.recorded(links.RescheduleAnswered)
    await story.write(rebalancer("demo", ref("web"), ref("nobody")))
    while len(await story.recorded(links.RescheduleRequested)) < 2:
        await story.worker.turn()
    story.write_first(answer)
    await story.settle()
    assert observed(story) == {"web": "Successful", "nobody": rebalance.NOT_FOUND}


async def test_answer_for_a_removed_workload_is_ignored(story: Story) -> None:
    await story.submit(rebalancer("demo", ref("web"), ref("nobody")))
    answer = (await story.recorded(links.RescheduleAnswered))[-1]
    await story.submit(rebalancer("demo", ref("web")))
    late = links.RescheduleAnswered(
        rebalancer="demo", uid=answer.uid, generation=1, workload=ref("nobody"), result=rebalance.SUCCESSFUL
    )
    await story.submit(late)
    assert observed(story) == {"web": "Successful"}


async def test_request_waits_for_the_next_owner_of_its_shard(story: Story) -> None:
    await story.write(rebalancer("demo", ref("web")))
    await story.worker.turn()
    assert await story.recorded(links.RescheduleRequested)
    assert await fresh(story) == 0
    assert observed(story) == {"web": ""}
    assert await story.recorded(rebalance_decisions.RebalanceFinished) == []
    await story.restart()
    assert observed(story) == {"web": "Successful"}
    assert await fresh(story) == 1


# --- expiry ---


async def test_rebalancer_without_ttl_is_kept(story: Story) -> None:
    await story.submit(rebalancer("demo", ref("web")))
    await story.pass_s(10_000_000)
    assert is_there(story)
    assert story.worker.next_timer_ms() is None


async def test_rebalancer_with_ttl_0_is_deleted_when_finished(story: Story) -> None:
    await story.submit(rebalancer("demo", ref("web"), ttl_s=0))
    assert not is_there(story)
    assert len(await story.recorded(rebalance_decisions.RebalanceFinished)) == 1
    assert await fresh(story) == 1


async def test_rebalancer_is_deleted_exactly_after_its_ttl(story: Story) -> None:
    await story.submit(rebalancer("demo", ref("web"), ttl_s=60))
    await story.pass_ms(59_999)
    assert is_there(story)
    await story.restart()
    await story.pass_ms(1)
    assert not is_there(story)
    assert len(await story.recorded(rebalance_decisions.RebalancerExpired)) == 1


async def test_extended_ttl_counts_from_the_new_finish_time(story: Story) -> None:
    await story.submit(rebalancer("demo", ref("web"), ttl_s=60))
    await story.pass_s(59)
    await story.submit(rebalancer("demo", ref("web"), ttl_s=100))
    await story.pass_s(99)
    assert is_there(story)
    await story.pass_s(1)
    assert not is_there(story)


async def test_removed_ttl_keeps_the_rebalancer(story: Story) -> None:
    await story.submit(rebalancer("demo", ref("web"), ttl_s=60))
    await story.pass_s(59)
    await story.submit(rebalancer("demo", ref("web")))
    await story.pass_s(3_600)
    assert is_there(story)


async def test_edit_just_before_the_deletion_wins(story: Story) -> None:
    await story.submit(rebalancer("demo", ref("web"), ttl_s=60))
    story.write_first(rebalancer("demo", ref("web"), ref("api")))
    story.refused = 1
    await story.pass_s(60)
    assert len(await story.recorded(rebalance_decisions.RebalancerExpired)) == 1
    (rejected,) = await story.recorded(rejections.InputRejected)
    assert rejected.verdict == "late"
    assert observed(story) == {"web": "Successful", "api": "Successful"}
    assert await fresh(story) == 1


async def test_edit_just_after_the_deletion_creates_another_rebalancer(story: Story) -> None:
    await story.submit(rebalancer("demo", ref("web"), ttl_s=60))
    story.now_ms += 60_000
    await story.worker.turn()
    await story.submit(rebalancer("demo", ref("web"), ref("api")))
    assert observed(story) == {"api": "Successful", "web": "Successful"}
    assert await fresh(story) == 2
