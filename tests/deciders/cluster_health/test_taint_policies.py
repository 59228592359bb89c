"""The condition Ready becomes taints by policies, after its confirmation."""

from engine.deciders import cluster_health
from events import cluster_decisions, clusters
from tests.builders.inputs import (
    conditions_reported,
    deployment,
    health_reported,
    policy,
    rebalancer,
    ref,
    taint_policy,
    untainted,
)
from tests.builders.manifests import DYNAMIC, on
from tests.deciders.cluster_health.fleet import CONFIRM_S, PACE_S, WEB, taints
from tests.deciders.story import Story


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


async def test_taint_that_one_policy_adds_is_not_removed_by_another(story: Story) -> None:
    without_pressure = {"conditionType": "Pressure", "operator": "In", "statusValues": ["False"]}
    relieved = taint_policy(
        "a", "NoExecute", "True", condition="Pressure", removeOnConditions=[without_pressure]
    )
    await story.submit(taint_policy("failing"), relieved, conditions_reported("member1", Pressure="False"))
    await story.submit(health_reported("member1", ready=False))
    await story.pass_s(CONFIRM_S)
    assert await taints(story) == {"member1": ["NoExecute"]}
    assert await story.recorded(clusters.ClusterUntainted) == []
