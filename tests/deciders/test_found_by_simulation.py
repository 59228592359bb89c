"""Faults found by simulation, each with the shortest story that shows it."""

import pytest

from events import decisions, health, quota_decisions, rebalance_decisions
from events.json_values import Json
from tests.builders.inputs import (
    capacity,
    deployment,
    joined,
    key,
    policy,
    policy_deleted,
    quota,
    rebalancer,
    ref,
    tainted,
)
from tests.builders.manifests import DYNAMIC, on
from tests.deciders.story import Story

WEB = key("web")


async def test_requested_reschedule_is_decided_even_if_it_fails_as_before(story: Story) -> None:
    await story.submit(joined("member1"), capacity("member1"))
    await story.submit(policy("p", on("nowhere")), deployment("web", 2))
    assert len(await story.recorded(decisions.ScheduleFailed, WEB)) == 1
    await story.submit(rebalancer("demo", ref("web")))
    assert len(await story.recorded(decisions.ScheduleFailed, WEB)) == 2
    assert [
        rebalanced.result for rebalanced in await story.recorded(rebalance_decisions.WorkloadRebalanced)
    ] == ["Successful"]


async def test_due_retry_ends_with_its_policy(story: Story) -> None:
    dynamic: dict[str, object] = {
        "replicaSchedulingType": "Divided",
        "replicaDivisionPreference": "Weighted",
        "weightPreference": {"dynamicWeight": "AvailableReplicas"},
    }
    await story.submit(joined("member1"), capacity("member1", 1))
    await story.submit(policy("p", on("member1", scheduling=dynamic)), deployment("web", 5))
    await story.submit(capacity("member1", 2), policy_deleted("p"))
    before = await story.steps()
    await story.pass_s(600)
    assert await story.steps() <= before + 1


async def test_report_of_a_removed_work_does_not_apply_to_its_successor(story: Story) -> None:
    failover: Json = {"decisionConditions": {"tolerationSeconds": 60}, "purgeMode": "Directly"}
    placed = policy("p", on("member1", "member2", scheduling=DYNAMIC), failover={"application": failover})
    await story.submit(joined("member1"), joined("member2"), capacity("member1"), capacity("member2"))
    await story.submit(placed, deployment("web", 4))
    former = (await story.running(WEB))["member1"]
    await story.report(WEB, "member1", healthy=False)
    await story.pass_s(60)
    await story.report(WEB, "member2")
    await story.submit(rebalancer("spread", ref("web")))
    assert story.placed(WEB) == {"member1": 2, "member2": 2}
    # The report was delayed for long; there is none yet for the current work.
    await story.report(WEB, "member1", healthy=False, of=former)
    await story.pass_s(600)
    assert story.placed(WEB) == {"member1": 2, "member2": 2}


async def test_unclaimed_workload_has_no_replacement(story: Story) -> None:
    await story.submit(joined("member1"), joined("member2"), capacity("member1"), capacity("member2"))
    await story.submit(policy("p", on("member1", "member2", scheduling=DYNAMIC)), deployment("web", 4))
    await story.report(WEB, "member1")
    await story.report(WEB, "member2")
    await story.submit(policy_deleted("p"))
    await story.submit(tainted("member1", "NoExecute"))
    await story.pass_s(600)
    assert await story.replicas(WEB) == {"member1": 2, "member2": 2}
    await story.pass_ms(1)
    (ended,) = await story.recorded(decisions.EvictionFinished)
    assert ended.reason == "GracePeriodOver"


async def test_health_of_a_replacement_is_measured_by_its_current_replicas(story: Story) -> None:
    await story.submit(joined("member1"), joined("member2"), capacity("member1"), capacity("member2"))
    await story.submit(policy("p", on("member1", "member2", scheduling=DYNAMIC)), deployment("web", 4))
    await story.submit(tainted("member1", "NoExecute"))
    work = (await story.running(WEB))["member2"]
    healthy = health.WorkloadReported(
        cluster="member2", key=WEB, term=work.term, step=work.step, replicas=4, ready=4, healthy=True
    )
    await story.submit(healthy, deployment("web", 8))
    assert await story.recorded(decisions.EvictionFinished) == []
    await story.report(WEB, "member2")
    assert [eviction.cluster for eviction in await story.recorded(decisions.EvictionFinished)] == ["member1"]


@pytest.mark.parametrize("turns", range(8))
async def test_quota_that_was_granted_before_a_group_answered_is_returned(story: Story, turns: int) -> None:
    apart: Json = {"workloadAffinity": {"antiAffinity": {"groupByLabelKey": "tier"}}}
    await story.join("member1")
    await story.submit(policy("p", on("member1") | apart), quota("all", "1"))
    await story.submit(deployment("web", 2, labels={"tier": "a"}))
    await story.write(quota("all", "2"))
    for _ in range(turns):
        await story.worker.turn()
    # Another scheduler decides before the engine has, or after it.
    await story.submit(policy("p", on("member1"), schedulerName="team"))
    (used,) = (await story.recorded(quota_decisions.QuotaDecided))[-1].used.values()
    assert used.get("cpu", "0") == ("2" if story.placed(WEB) else "0")
