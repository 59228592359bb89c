"""Policies with a ``schedulerName``: the engine makes no scheduling decisions on bindings of other schedulers."""

import pytest

from engine.reconcilers import explanation
from events import decisions, policies, rebalance_decisions, specs
from events.json_values import Json
from tests.builders.inputs import (
    capacity,
    deleted,
    deployment,
    imported,
    key,
    policy,
    rebalancer,
    ref,
    tainted,
)
from tests.builders.manifests import DYNAMIC, on, selector
from tests.deciders.story import Story

WEB = key("web")
BOTH = on("member1", "member2", scheduling=DYNAMIC)
OTHER = "volcano"


pytestmark = pytest.mark.usefixtures("two_members")


def taking_over(placement: Json, scheduler: str = "") -> policies.PolicyApplied:
    """A policy that preempts the others of the workload."""
    named = selector("web")
    return policy("q", placement, named, priority=9, preemption="Always", schedulerName=scheduler)


@pytest.mark.parametrize("scheduler", ["", "default-scheduler", "reballast"])
async def test_policies_of_the_engine_are_decided(story: Story, scheduler: str) -> None:
    await story.submit(policy("p", BOTH, schedulerName=scheduler), deployment("web", 4))
    assert sum(story.placed(WEB).values()) == 4
    (claim,) = await story.recorded(decisions.BindingClaimed, WEB)
    assert claim.scheduler == ("" if scheduler == "default-scheduler" else scheduler)


async def test_binding_of_another_scheduler_exists_and_waits(story: Story) -> None:
    await story.submit(policy("p", BOTH, schedulerName=OTHER), deployment("web", 4))
    await story.submit(capacity("member1", 9), deployment("web", 5))
    await story.pass_s(600)
    binding = story.binding(WEB)
    assert binding.declared is not None
    assert binding.declared.replicas == 5
    assert (binding.clusters, binding.condition) == ((), "")
    assert not await story.recorded(decisions.ScheduleDecided) + await story.recorded(
        decisions.ScheduleFailed
    )
    explained = await explanation.explain(story.log, WEB)
    assert explained is not None
    assert explained.trigger == "NotScheduledHere"
    assert f"names the scheduler {OTHER}" in explained.message


async def test_explanation_of_a_workload_ignores_a_deleted_one_of_its_name(story: Story) -> None:
    await story.submit(policy("p", BOTH), deployment("web", 4))
    await story.submit(deleted("web"))
    former = await explanation.explain(story.log, WEB)
    assert former is not None
    assert sum(former.clusters.values()) == 4
    await story.submit(taking_over(on("member1"), OTHER), deployment("web", 2))
    explained = await explanation.explain(story.log, WEB)
    assert explained is not None
    assert (explained.trigger, explained.clusters) == ("NotScheduledHere", {})


async def test_workload_handed_to_another_scheduler_is_not_moved(story: Story) -> None:
    await story.submit(policy("p", BOTH), deployment("web", 4))
    placed = story.placed(WEB)
    preempting = taking_over(on("member1"), OTHER)
    await story.submit(preempting)
    await story.submit(deployment("web", 8))
    claim = story.binding(WEB).claim
    assert claim is not None
    assert (claim.policy.name, claim.scheduler_name) == ("q", OTHER)
    assert story.placed(WEB) == placed


async def test_unschedulable_binding_is_not_retried_once_another_scheduler_has_it(story: Story) -> None:
    await story.submit(policy("p", BOTH), deployment("web", 4_000))
    assert story.binding(WEB).blocked
    await story.submit(taking_over(BOTH, OTHER))
    steps = await story.steps()
    await story.submit(capacity("member1", 5_000))
    await story.pass_s(600)
    assert not story.binding(WEB).blocked
    assert story.placed(WEB) == {}
    assert await story.steps() <= steps + 12


async def test_evicted_replicas_wait_for_the_other_scheduler(story: Story) -> None:
    await story.submit(policy("p", BOTH), deployment("web", 4))
    await story.submit(taking_over(BOTH, OTHER))
    await story.submit(tainted("member1", "NoExecute"))
    assert story.placed(WEB) == {"member2": 2}


async def test_last_copy_survives_a_taint_under_another_scheduler(story: Story) -> None:
    await story.submit(policy("p", on("member1")), deployment("web", 4))
    await story.report(WEB, "member1")
    await story.submit(taking_over(on("member1"), OTHER))
    await story.submit(tainted("member1", "NoExecute"))
    await story.pass_s(1_200)
    assert await story.replicas(WEB) == {"member1": 4}


async def test_rebalancer_is_answered_without_a_decision(story: Story) -> None:
    await story.submit(policy("p", BOTH, schedulerName=OTHER), deployment("web", 4))
    await story.submit(rebalancer("demo", ref("web")))
    (result,) = await story.recorded(rebalance_decisions.WorkloadRebalanced)
    assert result.result == "Successful"
    assert not await story.recorded(decisions.ScheduleDecided)


async def test_binding_is_decided_when_a_policy_of_the_engine_takes_it_over(story: Story) -> None:
    await story.submit(policy("p", BOTH, schedulerName=OTHER), deployment("web", 4))
    await story.submit(taking_over(BOTH))
    assert sum(story.placed(WEB).values()) == 4


@pytest.mark.parametrize(
    ("clusters", "taken"), [({"member1": 3}, {"member1": 3}), ({"member1": 2, "gone": 1}, {"member1": 2})]
)
async def test_imported_placement_is_taken_over(
    story: Story, clusters: dict[str, int], taken: dict[str, int]
) -> None:
    template: specs.TemplateApplied = imported(3, "", **clusters)
    await story.submit(policy("p", BOTH, schedulerName=OTHER), template)
    assert story.placed(WEB) == taken
