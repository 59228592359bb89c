"""Application failover: an unhealthy workload moves after its toleration time; a rebalancer spreads it again."""

import pytest

from engine.deciders import eviction_rules
from events import clusters, decisions, rejections, specs
from events.json_values import Json
from tests.builders.inputs import capacity, deployment, joined, key, policy, rebalancer, ref
from tests.builders.manifests import DUPLICATED, DYNAMIC, on
from tests.deciders.story import Story

WEB = key("web")
MEMBERS = ("member1", "member2")
ANYWHERE = on(*MEMBERS, scheduling=DYNAMIC)


pytestmark = pytest.mark.usefixtures("two_members")


def failover(mode: str = "Gracefully", grace_s: int | None = None, **conditions: object) -> Json:
    application: Json = {"decisionConditions": conditions, "purgeMode": mode}
    if grace_s is not None:
        application["gracePeriodSeconds"] = grace_s
    return {"application": application}


async def unhealthy(story: Story, mode: str = "Gracefully", grace_s: int | None = None) -> None:
    """Four replicas on two members; those on member1 are unhealthy from now on and tolerated for 60 s."""
    behavior = failover(mode, grace_s, tolerationSeconds=60)
    await story.submit(policy("p", ANYWHERE, failover=behavior), deployment("web", 4))
    await story.report(WEB, "member2")
    await story.report(WEB, "member1", healthy=False)


async def test_unhealthy_workload_moves_exactly_after_its_toleration_time(story: Story) -> None:
    await unhealthy(story)
    await story.pass_ms(59_999)
    assert story.placed(WEB) == {"member1": 2, "member2": 2}
    await story.pass_ms(1)
    assert story.placed(WEB) == {"member2": 4}
    (eviction,) = await story.recorded(decisions.EvictionStarted)
    assert (eviction.cluster, eviction.replicas, eviction.reason) == ("member1", 2, "ApplicationFailure")
    assert eviction.producer == "resource-binding-application-failover-controller"


async def test_default_toleration_time_is_five_minutes_as_in_karmada(story: Story) -> None:
    await story.submit(policy("p", ANYWHERE, failover=failover()), deployment("web", 4))
    await story.report(WEB, "member1", healthy=False)
    await story.pass_ms(299_999)
    assert story.placed(WEB) == {"member1": 2, "member2": 2}
    await story.pass_ms(1)
    assert story.placed(WEB) == {"member2": 4}


async def test_unhealthy_workload_stays_without_a_failover_policy(story: Story) -> None:
    await story.submit(policy("p", ANYWHERE), deployment("web", 4))
    await story.report(WEB, "member1", healthy=False)
    await story.pass_s(1_000_000)
    assert story.placed(WEB) == {"member1": 2, "member2": 2}


async def test_recovered_workload_gets_its_full_toleration_time_again(story: Story) -> None:
    await unhealthy(story)
    await story.pass_s(59)
    await story.report(WEB, "member1")
    await story.report(WEB, "member1", healthy=False)
    await story.pass_ms(59_999)
    assert story.placed(WEB) == {"member1": 2, "member2": 2}
    await story.pass_ms(1)
    assert story.placed(WEB) == {"member2": 4}


async def test_repeated_unhealthy_reports_do_not_restart_the_toleration_time(story: Story) -> None:
    await unhealthy(story)
    for _ in range(5):
        await story.pass_s(10)
        await story.report(WEB, "member1", healthy=False, ready=1)
    await story.pass_ms(9_999)
    assert story.placed(WEB) == {"member1": 2, "member2": 2}
    await story.pass_ms(1)
    assert story.placed(WEB) == {"member2": 4}


async def test_each_cluster_has_its_own_toleration_time(story: Story) -> None:
    await story.submit(joined("member3"), capacity("member3", 0))
    behavior = failover(tolerationSeconds=60)
    placement = on(*MEMBERS, "member3", scheduling=DYNAMIC)
    await story.submit(policy("p", placement, failover=behavior), deployment("web", 4))
    await story.submit(capacity("member3"))
    await story.report(WEB, "member2", healthy=False)
    await story.pass_s(30)
    await story.report(WEB, "member1", healthy=False)
    await story.pass_s(30)
    assert set(story.placed(WEB)) == {"member1", "member3"}
    await story.pass_s(30)
    assert story.placed(WEB) == {"member3": 4}


async def test_duplicated_workload_does_not_return_by_itself_to_a_cluster_in_which_it_was_unhealthy(
    story: Story,
) -> None:
    behavior = failover(tolerationSeconds=60)
    placement = on(*MEMBERS, scheduling=DUPLICATED)
    await story.submit(policy("p", placement, failover=behavior), deployment("web", 4))
    await story.report(WEB, "member2")
    await story.report(WEB, "member1", healthy=False)
    await story.pass_s(61)
    assert await story.replicas(WEB) == {"member2": 4}
    await story.pass_s(1_000)
    assert len(await story.recorded(decisions.EvictionFinished)) == 1
    assert await story.replicas(WEB) == {"member2": 4}
    await story.submit(deployment("web", 5))
    assert await story.replicas(WEB) == {"member1": 5, "member2": 5}


async def test_toleration_time_continues_over_a_restart(story: Story) -> None:
    await unhealthy(story)
    await story.pass_s(30)
    await story.restart()
    await story.pass_ms(29_999)
    assert story.placed(WEB) == {"member1": 2, "member2": 2}
    await story.pass_ms(1)
    assert story.placed(WEB) == {"member2": 4}


async def test_graceful_purge_ends_after_its_own_grace_period(story: Story) -> None:
    await unhealthy(story, grace_s=45)
    await story.pass_s(60)
    assert await story.replicas(WEB) == {"member1": 2, "member2": 4}
    await story.pass_s(45)
    assert await story.replicas(WEB) == {"member1": 2, "member2": 4}
    await story.pass_ms(1)
    assert await story.replicas(WEB) == {"member2": 4}
    (ended,) = await story.recorded(decisions.EvictionFinished)
    assert ended.reason == eviction_rules.EndReason.GRACE_PERIOD_OVER


@pytest.mark.parametrize("mode", ["Directly", "Immediately"])
async def test_direct_purge_removes_the_workload_at_once(story: Story, mode: str) -> None:
    await unhealthy(story, mode)
    await story.pass_s(60)
    assert await story.replicas(WEB) == {"member2": 4}


async def test_recovered_workload_with_purge_mode_never_waits_for_a_client(story: Story) -> None:
    behavior = failover("Never", tolerationSeconds=60)
    await story.submit(policy("p", on("member1"), failover=behavior), deployment("web", 4))
    await story.report(WEB, "member1", healthy=False)
    await story.pass_s(60)
    await story.report(WEB, "member1")
    assert await story.recorded(decisions.EvictionFinished) == []
    assert (story.placed(WEB), await story.replicas(WEB)) == ({}, {"member1": 4})


async def test_purge_mode_never_keeps_the_workload(story: Story) -> None:
    await unhealthy(story, "Never")
    await story.pass_s(60)
    await story.report(WEB, "member2")
    await story.pass_s(1_000_000)
    assert await story.replicas(WEB) == {"member1": 2, "member2": 4}
    assert await story.recorded(decisions.EvictionFinished) == []


async def test_allowed_deletion_ends_an_eviction_with_purge_mode_never(story: Story) -> None:
    await unhealthy(story, "Never")
    await story.pass_s(60)
    await story.submit(specs.DeletionAllowed(template=ref("web"), cluster="member2"))
    assert await story.replicas(WEB) == {"member1": 2, "member2": 4}, "nothing was left there"
    await story.submit(specs.DeletionAllowed(template=ref("web"), cluster="member1"))
    assert await story.replicas(WEB) == {"member2": 4}
    (finished,) = await story.recorded(decisions.EvictionFinished)
    assert (finished.cluster, finished.reason) == ("member1", eviction_rules.EndReason.DELETION_ALLOWED)
    await story.restart()
    assert await story.replicas(WEB) == {"member2": 4}


async def test_removed_cluster_ends_an_eviction_with_purge_mode_never(story: Story) -> None:
    await unhealthy(story, "Never")
    await story.pass_s(60)
    await story.submit(clusters.ClusterLeft(name="member1"))
    (finished,) = await story.recorded(decisions.EvictionFinished)
    assert (finished.cluster, finished.reason) == ("member1", eviction_rules.EndReason.CLUSTER_LEFT)
    assert await story.replicas(WEB) == {"member2": 4}


async def test_allowed_deletion_ends_a_graceful_eviction_at_once(story: Story) -> None:
    await unhealthy(story)
    await story.pass_s(60)
    assert await story.replicas(WEB) == {"member1": 2, "member2": 4}
    await story.submit(specs.DeletionAllowed(template=ref("web"), cluster="member1"))
    assert await story.replicas(WEB) == {"member2": 4}


@pytest.mark.parametrize(
    ("name", "cluster", "field"), [("nobody", "member1", "name"), ("web", "No One", "cluster")]
)
async def test_invalid_deletion_permission_is_refused(
    story: Story, name: str, cluster: str, field: str
) -> None:
    await unhealthy(story, "Never")
    await story.pass_s(60)
    story.refused = 1
    await story.submit(specs.DeletionAllowed(template=ref(name), cluster=cluster))
    (refused,) = await story.recorded(rejections.InputRejected)
    assert refused.field == field
    assert await story.replicas(WEB) == {"member1": 2, "member2": 4}


async def test_removed_failover_policy_ends_the_toleration_time(story: Story) -> None:
    await unhealthy(story)
    await story.submit(policy("p", ANYWHERE))
    await story.pass_s(1_000)
    assert story.placed(WEB) == {"member1": 2, "member2": 2}


async def test_rebalancer_spreads_the_workload_again_once_there_is_capacity(story: Story) -> None:
    await unhealthy(story)
    await story.pass_s(60)
    await story.report(WEB, "member2")
    assert await story.replicas(WEB) == {"member2": 4}
    await story.submit(rebalancer("spread", ref("web")))
    assert story.placed(WEB) == {"member1": 2, "member2": 2}
    # The status of its former work there no longer applies.
    await story.pass_s(1_000)
    assert story.placed(WEB) == {"member1": 2, "member2": 2}
