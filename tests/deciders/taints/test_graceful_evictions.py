"""Graceful evictions by taints: the evicted replicas run until their replacement is healthy or the time is over."""

import pytest

from engine.deciders import eviction_rules
from events.json_values import Json
from tests.builders import inputs, manifests
from tests.builders.inputs import capacity, deployment, joined, policy, tainted, untainted
from tests.builders.manifests import AGGREGATED, DUPLICATED, DYNAMIC, on
from tests.deciders.story import Story
from tests.deciders.taints.objects import ANYWHERE, GRACE_S, MEMBERS, WEB, finished_evictions


async def test_evicted_replicas_run_until_the_replacement_is_healthy(story: Story) -> None:
    await story.submit(policy("p", ANYWHERE), deployment("web", 4))
    await story.report(WEB, "member2")
    await story.submit(tainted("member1", "NoExecute"))
    assert await story.replicas(WEB) == {"member1": 2, "member2": 4}
    await story.report(WEB, "member2", healthy=False, ready=3)
    assert await story.replicas(WEB) == {"member1": 2, "member2": 4}
    await story.report(WEB, "member2")
    assert await story.replicas(WEB) == {"member2": 4}
    assert await finished_evictions(story) == [eviction_rules.EndReason.REPLACEMENT_HEALTHY]


async def test_report_of_a_work_that_could_not_be_applied_does_not_make_the_replacement_healthy(
    story: Story,
) -> None:
    await story.submit(policy("p", ANYWHERE), deployment("web", 4))
    await story.submit(tainted("member1", "NoExecute"))
    await story.report(WEB, "member2", fault="the override cannot be applied")
    assert await finished_evictions(story) == []


async def test_replacement_in_another_cluster_must_be_healthy_if_the_policy_changes_meanwhile(
    story: Story,
) -> None:
    await story.submit(joined("member3"), capacity("member3"))
    await story.submit(policy("p", ANYWHERE), deployment("web", 4))
    await story.submit(tainted("member1", "NoExecute"))
    await story.write(policy("p", on("member3", scheduling=DYNAMIC)))
    await story.report(WEB, "member2")
    assert await story.replicas(WEB) == {"member1": 2, "member3": 4}


async def test_report_of_the_former_work_does_not_make_the_replacement_healthy(story: Story) -> None:
    await story.submit(policy("p", ANYWHERE), deployment("web", 4))
    before = (await story.running(WEB))["member2"]
    await story.submit(tainted("member1", "NoExecute"))
    await story.report(WEB, "member2", of=before)
    assert await finished_evictions(story) == []


async def test_grace_period_ends_an_eviction_with_an_unhealthy_replacement(story: Story) -> None:
    await story.submit(policy("p", ANYWHERE), deployment("web", 4))
    await story.submit(tainted("member1", "NoExecute"))
    await story.pass_s(GRACE_S)
    assert await story.replicas(WEB) == {"member1": 2, "member2": 4}
    await story.pass_ms(1)
    assert await story.replicas(WEB) == {"member2": 4}
    assert await finished_evictions(story) == [eviction_rules.EndReason.GRACE_PERIOD_OVER]


async def test_grace_period_continues_over_a_restart(story: Story) -> None:
    await story.submit(policy("p", ANYWHERE), deployment("web", 4))
    await story.submit(tainted("member1", "NoExecute"))
    await story.pass_s(GRACE_S // 2)
    await story.restart()
    await story.pass_s(GRACE_S - GRACE_S // 2)
    assert await finished_evictions(story) == []
    await story.pass_ms(1)
    assert await finished_evictions(story) == [eviction_rules.EndReason.GRACE_PERIOD_OVER]


async def test_each_eviction_ends_after_its_own_grace_period(story: Story) -> None:
    await story.submit(joined("member3"), capacity("member3"))
    placement = on(*MEMBERS, "member3", scheduling=DUPLICATED)
    await story.submit(policy("p", placement), deployment("web", 2))
    await story.submit(tainted("member1", "NoExecute"))
    await story.pass_s(60)
    await story.submit(tainted("member2", "NoExecute"))
    await story.pass_ms((GRACE_S - 60) * 1000 + 1)
    assert await story.replicas(WEB) == {"member2": 2, "member3": 2}
    await story.pass_s(60)
    assert await story.replicas(WEB) == {"member3": 2}


async def test_eviction_without_need_of_a_replacement_ends_at_once(story: Story) -> None:
    await story.submit(policy("p", on(*MEMBERS, scheduling=DUPLICATED)), deployment("web", 2))
    await story.report(WEB, "member1")
    await story.report(WEB, "member2")
    await story.submit(tainted("member1", "NoExecute"))
    assert await story.replicas(WEB) == {"member2": 2}
    assert await finished_evictions(story) == [eviction_rules.EndReason.REPLACEMENT_HEALTHY]


async def test_cluster_is_not_chosen_again_during_its_eviction(story: Story) -> None:
    await story.submit(policy("p", on(*MEMBERS, scheduling=AGGREGATED)), deployment("web", 4))
    assert story.placed(WEB) == {"member1": 4}
    await story.submit(tainted("member1", "NoExecute"))
    await story.submit(untainted("member1"), deployment("web", 12))
    assert story.placed(WEB) == {"member2": 12}


@pytest.mark.parametrize("kind", [manifests.DEPLOYMENT, manifests.CONFIG_MAP])
async def test_duplicated_workload_returns_if_the_taint_was_removed_during_its_eviction(
    story: Story, kind: manifests.Kind
) -> None:
    placement, selector = on(*MEMBERS, scheduling=DUPLICATED), manifests.selector(kind=kind)
    template = (
        deployment("web", 2)
        if kind == manifests.DEPLOYMENT
        else inputs.applied(manifests.config_map("web", "default"))
    )
    await story.submit(policy("p", placement, selector), template)
    web = inputs.key("web", kind)
    await story.submit(tainted("member1", "NoExecute"))
    await story.submit(untainted("member1"))
    assert set(story.placed(web)) == {"member2"}
    await story.report(web, "member2")
    assert set(story.placed(web)) == set(MEMBERS)
    assert await finished_evictions(story) == [eviction_rules.EndReason.REPLACEMENT_HEALTHY]


async def test_duplicated_workload_does_not_return_by_itself_to_a_taint_that_it_tolerates_for_a_while(
    story: Story,
) -> None:
    tolerations: list[Json] = [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}]
    placement = on(*MEMBERS, scheduling=DUPLICATED, clusterTolerations=tolerations)
    await story.submit(policy("p", placement), deployment("web", 2))
    await story.report(WEB, "member2")
    await story.submit(tainted("member1", "NoExecute"))
    await story.pass_s(600)
    assert await finished_evictions(story) == [eviction_rules.EndReason.REPLACEMENT_HEALTHY]
    assert await story.replicas(WEB) == {"member2": 2}


async def test_duplicated_workload_stays_away_while_the_taint_remains(story: Story) -> None:
    await story.submit(policy("p", on(*MEMBERS, scheduling=DUPLICATED)), deployment("web", 2))
    await story.submit(tainted("member1", "NoExecute"))
    await story.report(WEB, "member2")
    assert await finished_evictions(story) == [eviction_rules.EndReason.REPLACEMENT_HEALTHY]
    assert story.placed(WEB) == {"member2": 2}
    await story.submit(untainted("member1"))
    assert story.placed(WEB) == {"member1": 2, "member2": 2}


async def test_workload_that_fits_nowhere_else_keeps_running_after_its_grace_period(story: Story) -> None:
    await story.submit(policy("p", on("member1")), deployment("web", 2))
    await story.submit(tainted("member1", "NoExecute"))
    assert story.placed(WEB) == {}
    assert await story.replicas(WEB) == {"member1": 2}
    await story.pass_s(GRACE_S + 1)
    assert await story.replicas(WEB) == {"member1": 2}


async def test_directly_purged_cluster_is_emptied_at_once_and_not_chosen_again(story: Story) -> None:
    directly = {"cluster": {"purgeMode": "Directly"}}
    await story.submit(policy("p", ANYWHERE, failover=directly), deployment("web", 4))
    await story.submit(tainted("member1", "NoExecute"))
    assert await story.replicas(WEB) == {"member2": 4}
    await story.submit(untainted("member1"), deployment("web", 6))
    assert story.placed(WEB) == {"member2": 6}
    assert await finished_evictions(story) == []
    await story.pass_s(GRACE_S + 1)
    assert await finished_evictions(story) == [eviction_rules.EndReason.GRACE_PERIOD_OVER]
    await story.submit(deployment("web", 10))
    assert story.placed(WEB) == {"member1": 2, "member2": 8}


async def test_template_deleted_during_an_eviction_is_removed_everywhere(story: Story) -> None:
    await story.submit(policy("p", ANYWHERE), deployment("web", 4))
    await story.submit(tainted("member1", "NoExecute"))
    await story.submit(inputs.deleted("web"))
    assert await story.running(WEB) == {}
    assert story.worker.next_timer_ms() is None
