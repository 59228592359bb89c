"""A graceful eviction without a replacement does not delete the last running copy of a workload."""

from typing import Final

import pytest

from engine.deciders import eviction_rules, last_copy
from engine.reconcilers import explanation
from events import clusters, decisions, specs, works
from events.json_values import Json
from tests.builders import manifests
from tests.builders.inputs import (
    applied,
    capacity,
    deployment,
    joined,
    key,
    policy,
    policy_deleted,
    quota,
    ref,
    tainted,
    untainted,
)
from tests.builders.manifests import DUPLICATED, DYNAMIC, on, selector
from tests.deciders.story import Story

WEB: Final = key("web")
GRACE_S: Final = 600


async def placed_alone(
    story: Story, *, annotations: Json | None = None, placement: Json | None = None
) -> None:
    """A Deployment that runs in member1, which is the only cluster that its policy allows."""
    await story.join("member1", "member2")
    alone = policy("p", placement or on("member1"), annotations=annotations)
    await story.submit(alone, deployment("web", 2))
    await story.report(WEB, "member1")


async def finished_evictions(story: Story) -> list[str]:
    return [eviction.reason for eviction in await story.recorded(decisions.EvictionFinished)]


async def recoveries(story: Story) -> list[dict[str, int]]:
    """The replicas of each decision that assigned recovered clusters again, by cluster."""
    decided = await story.recorded(decisions.ScheduleDecided)
    return [
        {target.name: target.replicas for target in decision.clusters}
        for decision in decided
        if decision.trigger == eviction_rules.EndReason.RECOVERED
    ]


async def test_workload_without_policy_survives_a_short_taint(story: Story) -> None:
    await placed_alone(story)
    await story.submit(policy_deleted("p"))
    await story.submit(tainted("member1", "NoExecute"))
    await story.pass_ms(1_500)
    await story.submit(untainted("member1"))
    await story.pass_s(GRACE_S + 1)
    assert await story.replicas(WEB) == {"member1": 2}
    assert story.placed(WEB) == {"member1": 2}
    assert await finished_evictions(story) == [eviction_rules.EndReason.RECOVERED]
    assert story.binding(WEB).condition == "Success"


async def test_workload_without_policy_keeps_running_for_as_long_as_the_taint_lasts(story: Story) -> None:
    await placed_alone(story)
    await story.submit(policy_deleted("p"))
    await story.submit(tainted("member1", "NoExecute"))
    await story.pass_s(10 * GRACE_S)
    assert await story.replicas(WEB) == {"member1": 2}
    binding = story.binding(WEB)
    assert (binding.condition, "member1" in binding.message) == (last_copy.UNCLAIMED, True)
    assert story.worker.next_timer_ms() is None
    await story.submit(tainted("member1", "NoExecute", "another"))
    assert len(await story.recorded(decisions.ScheduleFailed)) == 1, "the same reason is reported once"


async def test_claimed_workload_that_fits_nowhere_else_keeps_running_and_recovers(story: Story) -> None:
    await placed_alone(story)
    await story.submit(tainted("member1", "NoExecute"))
    await story.pass_s(GRACE_S + 1)
    assert await story.replicas(WEB) == {"member1": 2}
    assert story.placed(WEB) == {}
    await story.submit(untainted("member1"))
    assert story.placed(WEB) == {"member1": 2}
    assert await finished_evictions(story) == [eviction_rules.EndReason.RECOVERED]


async def test_workload_that_may_run_anywhere_recovers_too(story: Story) -> None:
    await placed_alone(story)
    await story.submit(capacity("member2", 0), policy("p", {"replicaScheduling": DYNAMIC}))
    await story.submit(tainted("member1", "NoExecute"))
    assert story.placed(WEB) == {}
    await story.submit(untainted("member1"))
    assert story.placed(WEB) == {"member1": 2}


async def test_cluster_with_a_taint_that_only_the_former_placement_tolerates_has_not_recovered(
    story: Story,
) -> None:
    await placed_alone(story)
    await story.submit(tainted("member1", "NoExecute"))
    tolerant: Json = on("member4", clusterTolerations=[{"operator": "Exists"}])
    await story.submit(policy("p", tolerant), joined("member3"))
    await story.submit(policy("p", on("member1")))
    assert (await finished_evictions(story), story.placed(WEB)) == ([], {})
    assert await story.replicas(WEB) == {"member1": 2}


@pytest.mark.parametrize("names", [("member1",), ("member1", "member2")])
async def test_toleration_that_is_added_to_the_policy_lets_the_workload_recover(
    story: Story, names: tuple[str, ...]
) -> None:
    await placed_alone(story)
    await story.submit(capacity("member2", 0))
    await story.submit(policy("p", on(*names, scheduling=DYNAMIC)), tainted("member1", "NoExecute"))
    tolerant: Json = on(*names, scheduling=DYNAMIC, clusterTolerations=[{"operator": "Exists"}])
    await story.submit(policy("p", tolerant))
    assert story.placed(WEB) == {"member1": 2}
    assert await finished_evictions(story) == [eviction_rules.EndReason.RECOVERED]


async def test_changed_policy_places_a_workload_before_its_cluster_recovers(story: Story) -> None:
    await placed_alone(story)
    await story.submit(tainted("member1", "NoExecute"))
    await story.submit(untainted("member1"), policy("p", on("member1", "member2", scheduling=DYNAMIC)))
    await story.report(WEB, "member2")
    assert await story.replicas(WEB) == {"member2": 2}


async def test_recovered_workload_gets_back_the_capacity_that_it_uses(story: Story) -> None:
    await placed_alone(story, placement=on("member1", scheduling=DYNAMIC))
    await story.submit(capacity("member1", 0))
    await story.submit(tainted("member1", "NoExecute"))
    await story.submit(untainted("member1"))
    assert await finished_evictions(story) == [eviction_rules.EndReason.RECOVERED]
    assert story.placed(WEB) == {"member1": 2}
    assert len(await story.recorded(works.WorkApplied, "member1")) == 1


async def test_recovered_workload_stays_although_another_one_has_taken_its_quota(story: Story) -> None:
    await story.submit(quota("few", cpu="2"))
    await placed_alone(story)
    await story.submit(tainted("member1", "NoExecute"))
    named = policy("q", on("member2"), selector("other"), priority=1)
    await story.submit(named, deployment("other", 2))
    assert story.placed(key("other")) == {"member2": 2}
    await story.submit(untainted("member1"))
    assert await story.replicas(WEB) == {"member1": 2}
    assert story.placed(WEB) == {"member1": 2}


async def test_last_copy_in_a_cluster_that_the_policy_no_longer_selects_waits_for_its_replacement(
    story: Story,
) -> None:
    await placed_alone(story)
    await story.submit(tainted("member1", "NoExecute"))
    await story.submit(policy("p", on("member3")))
    await story.submit(untainted("member1"))
    await story.pass_s(GRACE_S + 1)
    assert (story.placed(WEB), await story.replicas(WEB)) == ({}, {"member1": 2})
    await story.submit(joined("member3"), capacity("member3"))
    await story.report(WEB, "member3")
    assert await story.replicas(WEB) == {"member3": 2}


async def test_recovered_workload_keeps_its_only_copy_in_an_earlier_affinity_group(story: Story) -> None:
    groups: list[Json] = [
        {"affinityName": "primary", "clusterNames": ["member1"]},
        {"affinityName": "backup", "clusterNames": ["member2"]},
    ]
    await placed_alone(story, placement={"clusterAffinities": groups})
    await story.submit(tainted("member1", "NoExecute"))
    assert story.placed(WEB) == {"member2": 2}
    await story.submit(tainted("member2", "NoExecute"))
    await story.submit(untainted("member1"))
    assert story.placed(WEB) == {"member1": 2}
    assert story.binding(WEB).affinity == "primary"
    assert await story.replicas(WEB) == {"member1": 2}


async def test_of_several_recovered_clusters_those_of_the_earliest_affinity_group_are_kept(
    story: Story,
) -> None:
    groups: list[Json] = [
        {"affinityName": "first", "clusterNames": ["member3"]},
        {"affinityName": "second", "clusterNames": ["member1"]},
        {"affinityName": "third", "clusterNames": ["member2"]},
    ]
    for name in ("member1", "member2", "member3"):
        await story.submit(joined(name), capacity(name))
    await story.submit(policy("p", {"clusterAffinities": groups}), deployment("web", 2))
    await story.report(WEB, "member3")
    await story.submit(tainted("member3", "NoExecute"))
    await story.submit(tainted("member1", "NoExecute"))
    await story.submit(tainted("member2", "NoExecute"))
    await story.report(WEB, "member1")
    assert (story.placed(WEB), story.binding(WEB).affinity) == ({}, "third")
    await story.submit(untainted("member1"), untainted("member3"))
    assert story.placed(WEB) == {"member3": 2}
    assert story.binding(WEB).affinity == "first"
    assert await recoveries(story) == [{"member3": 2}]


async def test_recovered_workload_is_assigned_again_while_its_scheduling_is_suspended(story: Story) -> None:
    await placed_alone(story)
    await story.submit(specs.SuspensionWritten(template=ref("web"), scheduling=True))
    await story.submit(tainted("member1", "NoExecute"))
    await story.submit(untainted("member1"))
    assert story.placed(WEB) == {"member1": 2}
    assert await story.replicas(WEB) == {"member1": 2}


async def test_late_replacement_runs_before_the_last_copy_is_deleted(story: Story) -> None:
    await placed_alone(story)
    await story.submit(tainted("member1", "NoExecute"))
    await story.pass_s(GRACE_S + 1)
    await story.submit(policy("p", on("member1", "member2", scheduling=DYNAMIC)))
    assert await story.replicas(WEB) == {"member1": 2, "member2": 2}
    await story.pass_s(GRACE_S + 1)
    assert await story.replicas(WEB) == {"member1": 2, "member2": 2}
    await story.report(WEB, "member2")
    assert await story.replicas(WEB) == {"member2": 2}


async def test_copy_that_does_not_run_is_deleted_after_the_grace_period(story: Story) -> None:
    await placed_alone(story)
    await story.report(WEB, "member1", healthy=False, ready=0)
    await story.submit(tainted("member1", "NoExecute"))
    await story.pass_s(GRACE_S + 1)
    assert await story.replicas(WEB) == {}
    assert await finished_evictions(story) == [eviction_rules.EndReason.GRACE_PERIOD_OVER]


async def test_unhealthy_copy_is_kept_while_some_of_its_replicas_are_ready(story: Story) -> None:
    await placed_alone(story)
    await story.report(WEB, "member1", healthy=False, ready=1)
    await story.submit(tainted("member1", "NoExecute"))
    await story.pass_s(GRACE_S + 1)
    assert await story.replicas(WEB) == {"member1": 2}


async def test_last_copy_of_a_kind_without_replicas_is_kept_if_it_is_healthy(story: Story) -> None:
    settings = key("settings", manifests.CONFIG_MAP)
    named = policy("p", on("member1"), selector(kind=manifests.CONFIG_MAP))
    await story.submit(joined("member1"), named, applied(manifests.config_map("settings", "default")))
    await story.report(settings, "member1")
    await story.submit(tainted("member1", "NoExecute"))
    await story.pass_s(GRACE_S + 1)
    assert await story.replicas(settings) == {"member1": None}


async def test_directly_purged_copy_is_not_kept_and_its_cluster_is_used_again_later(story: Story) -> None:
    await placed_alone(story)
    directly = {"cluster": {"purgeMode": "Directly"}}
    await story.submit(policy("p", on("member1"), failover=directly))
    await story.submit(tainted("member1", "NoExecute"))
    assert await story.replicas(WEB) == {}
    await story.submit(untainted("member1"))
    await story.pass_s(GRACE_S + 1)
    assert await finished_evictions(story) == [eviction_rules.EndReason.GRACE_PERIOD_OVER]
    assert await story.replicas(WEB) == {"member1": 2}


async def test_copy_is_deleted_after_the_grace_period_if_some_replacement_runs(story: Story) -> None:
    await placed_alone(story, placement=on("member1", "member2", scheduling=DUPLICATED))
    await story.report(WEB, "member2", healthy=False, ready=1)
    await story.submit(tainted("member1", "NoExecute"))
    await story.pass_s(GRACE_S)
    assert await story.replicas(WEB) == {"member1": 2, "member2": 2}
    await story.pass_s(1)
    assert await story.replicas(WEB) == {"member2": 2}


async def test_unclaimed_workload_whose_cluster_left_is_reported_as_running_nowhere(story: Story) -> None:
    await placed_alone(story)
    await story.submit(policy_deleted("p"))
    await story.submit(tainted("member1", "NoExecute"))
    await story.submit(clusters.ClusterLeft(name="member1"))
    assert await finished_evictions(story) == [eviction_rules.EndReason.CLUSTER_LEFT]
    assert await story.replicas(WEB) == {}
    failed = (await story.recorded(decisions.ScheduleFailed))[-1]
    assert failed.reason == last_copy.UNCLAIMED
    assert failed.message.startswith("the workload runs in no cluster")
    explained = await explanation.explain(story.log, WEB)
    assert explained is not None
    assert (explained.condition, explained.message) == (failed.reason, failed.message)


async def test_annotation_restores_the_deletion_after_the_grace_period(story: Story) -> None:
    await placed_alone(story, annotations={"reballast.io/delete-last-copy": "true"})
    await story.submit(policy_deleted("p"))
    await story.submit(tainted("member1", "NoExecute"))
    await story.pass_s(GRACE_S + 1)
    assert await story.replicas(WEB) == {}
    assert await finished_evictions(story) == [eviction_rules.EndReason.GRACE_PERIOD_OVER]
