"""Removal of a cluster: its works are removed first, then the cluster leaves."""

import msgspec
import pytest

from engine.deciders import eviction_rules
from events import cluster_decisions, clusters, decisions, health, keys, specs, topics, works
from events.json_values import Json
from tests.builders import inputs, manifests
from tests.builders.inputs import capacity, deployment, health_reported, joined, policy
from tests.builders.manifests import DUPLICATED, DYNAMIC, on
from tests.deciders.story import Running, Story

WEB = inputs.key("web")
ANYWHERE: Json = {"replicaScheduling": DYNAMIC}


@pytest.fixture(autouse=True)
async def _fleet(story: Story) -> None:
    await story.submit(
        joined("member1"),
        capacity("member1"),
        health_reported("member1"),
        joined("member2"),
        capacity("member2"),
    )


async def start_removal(story: Story, cluster: str = "member1") -> None:
    await story.submit(clusters.ClusterLeaving(name=cluster))


async def report_deleted(story: Story, work: Running, key: str = WEB, cluster: str = "member1") -> None:
    """Report that the cluster deleted the workload of its newest removal; ``work`` is what it ran before."""
    (removed,) = [removal for removal in await removals(story, cluster) if removal.key == key][-1:]
    assert (removed.term, removed.step) > (work.term, work.step)
    await story.confirm_removal(key, cluster)


async def removals(story: Story, cluster: str = "member1") -> list[works.WorkRemoved]:
    return await story.recorded(works.WorkRemoved, cluster)


async def left_clusters(story: Story, cluster: str = "member1") -> list[str]:
    return [event.name for event in await story.recorded(clusters.ClusterLeft, cluster)]


async def test_empty_cluster_leaves_at_once(story: Story) -> None:
    await start_removal(story)
    assert await left_clusters(story) == ["member1"]
    (vacated,) = await story.recorded(cluster_decisions.ClusterVacated)
    assert vacated.name == "member1"


async def test_workloads_move_away_and_the_cluster_leaves_once_they_are_deleted(story: Story) -> None:
    await story.submit(policy("p", ANYWHERE), deployment("web", 4))
    work = (await story.running(WEB))["member1"]
    await start_removal(story)
    assert await story.replicas(WEB) == {"member2": 4}
    assert (await story.recorded(decisions.ScheduleDecided))[-1].trigger == "ClusterTerminating"
    assert await left_clusters(story) == []
    await report_deleted(story, work)
    assert await left_clusters(story) == ["member1"]


async def test_cluster_leaves_although_the_request_has_no_time(story: Story) -> None:
    request = story.record(clusters.ClusterLeaving(name="member1"))
    headers = {name: value for name, value in request.headers.items() if name != "ce_time"}
    await story.log.append([msgspec.structs.replace(request, headers=headers)])
    await story.settle()
    assert await left_clusters(story) == ["member1"]


async def test_leaving_cluster_gets_no_new_workloads(story: Story) -> None:
    await story.submit(policy("p", {"replicaScheduling": DUPLICATED}), deployment("held"))
    work = (await story.running(inputs.key("held")))["member1"]
    await start_removal(story)
    await story.submit(deployment("web", 2), joined("member1"), capacity("member1", cpu=1_000))
    assert story.placed(WEB) == {"member2": 2}
    await report_deleted(story, work, inputs.key("held"))
    assert await left_clusters(story) == ["member1"]


async def test_workload_without_another_cluster_is_removed_too(story: Story) -> None:
    await story.submit(policy("p", on("member1")), deployment("web", 2))
    work = (await story.running(WEB))["member1"]
    await start_removal(story)
    assert await story.running(WEB) == {}
    await report_deleted(story, work)
    assert await left_clusters(story) == ["member1"]


async def test_workload_whose_scheduling_is_suspended_is_removed_too(story: Story) -> None:
    await story.submit(policy("p", ANYWHERE), deployment("web", 4))
    await story.submit(specs.SuspensionWritten(template=inputs.ref("web"), scheduling=True))
    work = (await story.running(WEB))["member1"]
    await start_removal(story)
    await story.submit(deployment("web", 4, labels={"a": "b"}))
    assert await story.replicas(WEB) == {"member2": 2}
    await report_deleted(story, work)
    assert await left_clusters(story) == ["member1"]


async def test_unclaimed_workload_is_removed_too(story: Story) -> None:
    await story.submit(policy("p", ANYWHERE), deployment("web", 4))
    await story.submit(inputs.policy_deleted("p"))
    work = (await story.running(WEB))["member1"]
    await start_removal(story)
    assert await story.replicas(WEB) == story.placed(WEB) == {"member2": 2}
    (evicted,) = await story.recorded(decisions.EvictionStarted)
    assert (evicted.cluster, evicted.reason) == ("member1", "ClusterTerminating")
    await report_deleted(story, work)
    assert await left_clusters(story) == ["member1"]


async def test_graceful_eviction_ends_at_once_when_the_cluster_leaves(story: Story) -> None:
    await story.submit(policy("p", ANYWHERE), deployment("web", 4))
    work = (await story.running(WEB))["member1"]
    await story.submit(inputs.tainted("member1", "NoExecute"))
    assert "member1" in await story.running(WEB)
    await start_removal(story)
    assert await story.replicas(WEB) == {"member2": 4}
    assert await story.recorded(decisions.EvictionFinished) == []
    await report_deleted(story, work)
    assert await left_clusters(story) == ["member1"]
    (ended,) = await story.recorded(decisions.EvictionFinished)
    assert ended.reason == eviction_rules.EndReason.CLUSTER_LEFT


async def test_dependencies_are_removed_from_a_leaving_cluster(story: Story) -> None:
    template = inputs.referring("web", "ConfigMap/settings", replicas=2)
    settings = inputs.template("settings", manifests.CONFIG_MAP)
    await story.submit(settings, policy("p", on("member1"), propagateDeps=True), template)
    key = inputs.key("settings", manifests.CONFIG_MAP)
    web, needed = (await story.running(WEB))["member1"], (await story.running(key))["member1"]
    await start_removal(story)
    assert await story.running(key) == {}
    await report_deleted(story, web)
    assert await left_clusters(story) == []
    await report_deleted(story, needed, key)
    assert await left_clusters(story) == ["member1"]


async def test_unplaceable_workload_gets_no_work_in_a_cluster_that_has_left(story: Story) -> None:
    template = inputs.referring("web", "ConfigMap/settings", replicas=2)
    settings = inputs.template("settings", manifests.CONFIG_MAP)
    await story.submit(capacity("member2", pods=1))
    await story.submit(settings, policy("p", ANYWHERE, propagateDeps=True), template)
    key = inputs.key("settings", manifests.CONFIG_MAP)
    web, needed = (await story.running(WEB))["member1"], (await story.running(key))["member1"]
    await start_removal(story)
    await report_deleted(story, web)
    await report_deleted(story, needed, key)
    assert await left_clusters(story) == ["member1"]
    edited = inputs.template("settings", manifests.CONFIG_MAP, fields={"data": {"a": "2"}})
    await story.submit(inputs.referring("web", "ConfigMap/settings", replicas=3), edited)
    assert story.placed(WEB).keys() == {"member1"}
    assert await story.running(WEB) == await story.running(key) == {}

    await story.submit(joined("member1"), capacity("member1"), health_reported("member1"))
    assert await story.replicas(WEB) == {"member1": 3}
    assert (await story.running(key)).keys() == {"member1"}


async def test_cluster_leaves_after_one_that_an_unplaceable_workload_still_names(story: Story) -> None:
    await story.submit(capacity("member2", pods=1), policy("p", ANYWHERE), deployment("web", 2))
    await story.submit(policy("q", on("member2"), manifests.selector("held"), priority=1), deployment("held"))
    work = (await story.running(WEB))["member1"]
    await start_removal(story)
    await report_deleted(story, work)
    assert (await left_clusters(story), story.placed(WEB)) == (["member1"], {"member1": 2})
    other_work = (await story.running(inputs.key("held")))["member2"]
    await start_removal(story, "member2")
    await report_deleted(story, other_work, inputs.key("held"), "member2")
    assert await left_clusters(story, "member2") == ["member2"]


@pytest.mark.parametrize("preserved", [False, True])
async def test_preserved_resources_stay_in_the_leaving_cluster(story: Story, *, preserved: bool) -> None:
    await story.submit(policy("p", ANYWHERE, preserveResourcesOnDeletion=preserved), deployment("web", 4))
    await start_removal(story)
    (removed,) = await removals(story)
    assert removed.preserved is preserved


async def test_earlier_removal_is_awaited_too(story: Story) -> None:
    await story.submit(policy("p", ANYWHERE), deployment("web", 4))
    work = (await story.running(WEB))["member1"]
    await story.submit(inputs.deleted("web"))
    await start_removal(story)
    assert await left_clusters(story) == []
    await report_deleted(story, work)
    assert await left_clusters(story) == ["member1"]


async def test_stale_report_does_not_end_the_wait(story: Story) -> None:
    await story.submit(policy("p", ANYWHERE), deployment("web", 4))
    work = (await story.running(WEB))["member1"]
    await start_removal(story)
    await story.submit(health.WorkloadGone(cluster="member1", key=WEB, term=work.term, step=work.step))
    assert await left_clusters(story) == []


async def test_workload_that_has_returned_is_not_awaited_as_a_removal(story: Story) -> None:
    await story.submit(policy("p", on("member1")), deployment("web", 4))
    await story.submit(policy("p", on("member2")))
    await story.submit(policy("p", on("member1")))
    await story.submit(policy("p", ANYWHERE))
    work = (await story.running(WEB))["member1"]
    await start_removal(story)
    await report_deleted(story, work)
    assert await left_clusters(story) == ["member1"]


async def test_unready_cluster_is_not_waited_for(story: Story) -> None:
    await story.submit(policy("p", ANYWHERE), deployment("web", 4))
    await start_removal(story)
    assert await left_clusters(story) == []
    await story.submit(health_reported("member1", ready=False))
    assert await left_clusters(story) == ["member1"]


async def test_silent_agent_is_waited_for(story: Story) -> None:
    pull = msgspec.structs.replace(joined("member1"), sync_mode="Pull")
    await story.submit(
        pull, health_reported("member1", grace_s=40), policy("p", ANYWHERE), deployment("web", 4)
    )
    work = (await story.running(WEB))["member1"]
    await start_removal(story)
    await story.pass_s(60)
    assert [silenced.name for silenced in await story.recorded(cluster_decisions.ClusterSilenced)] == [
        "member1"
    ]
    assert await left_clusters(story) == []
    await report_deleted(story, work)
    assert await left_clusters(story) == ["member1"]


async def test_forced_removal_does_not_wait(story: Story) -> None:
    await story.submit(policy("p", ANYWHERE), deployment("web", 4))
    await start_removal(story)
    await story.submit(clusters.ClusterLeft(name="member1"))
    assert await story.replicas(WEB) == {"member2": 4}
    assert await story.recorded(cluster_decisions.ClusterVacated) == []
    assert all(not fold.state.departures and not fold.state.removals for fold in story.worker.folds)


async def test_late_end_of_a_departure_does_not_remove_the_next_cluster_of_that_name(story: Story) -> None:
    await story.write(clusters.ClusterLeaving(name="member1"))
    await story.worker.turn()
    story.write_first(clusters.ClusterLeft(name="member1"), joined("member1"), capacity("member1"))
    story.refused = 1
    await story.settle()
    assert await left_clusters(story) == ["member1", "member1"]
    await story.submit(policy("p", on("member1")), deployment("web", 2))
    assert story.placed(WEB) == {"member1": 2}


async def test_rejoined_cluster_can_leave_again(story: Story) -> None:
    await story.submit(policy("p", ANYWHERE), deployment("web", 4))
    for _ in range(2):
        work = (await story.running(WEB))["member1"]
        await start_removal(story)
        await report_deleted(story, work)
        await story.submit(joined("member1"), capacity("member1"), health_reported("member1"))
        await story.submit(inputs.policy("p", on("member1", "member2", scheduling=DUPLICATED)))
    assert await left_clusters(story) == ["member1", "member1"]


async def test_departure_continues_after_a_restart(story: Story) -> None:
    await story.submit(policy("p", ANYWHERE), deployment("web", 4))
    work = (await story.running(WEB))["member1"]
    await start_removal(story)
    await story.restart()
    assert await left_clusters(story) == []
    await report_deleted(story, work)
    await story.restart()
    assert await left_clusters(story) == ["member1"]


async def test_each_shard_reports_once_that_it_has_no_work_left(story: Story) -> None:
    await start_removal(story)
    await story.submit(deployment("other"), health_reported("member2"))
    reports = [
        record
        for record in await story.log.read_all(0, story.log.last_number())
        if record.topic == topics.LINKS
    ]
    assert len(reports) == topics.SHARDS
    assert {record.partition for record in reports} == {keys.shard_of("member1")}
    assert all(fold.state.departures == {} for fold in story.worker.folds)


async def test_unknown_cluster_cannot_leave(story: Story) -> None:
    story.refused = 1
    await start_removal(story, "member9")
    assert await left_clusters(story, "member9") == []
