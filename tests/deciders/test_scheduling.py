"""Scheduling: triggers of decisions, their content, and retries after failures."""

import msgspec
import pytest

from events import clusters, decisions
from events.json_values import Json
from tests.builders.inputs import capacity, deployment, joined, key, policy, tainted, template, untainted
from tests.builders.manifests import AGGREGATED, CONFIG_MAP, DUPLICATED, DYNAMIC, EVEN, on, selector
from tests.deciders.story import Story

WEB = key("web")
BOTH = on("member1", "member2", scheduling=DYNAMIC)
EUROPE: Json = {"clusterAffinity": {"labelSelector": {"matchLabels": {"region": "eu"}}}}


@pytest.fixture(autouse=True)
async def two_members(story: Story) -> None:
    await story.submit(joined("member1", {"region": "eu"}), joined("member2", {"region": "us"}))
    await story.submit(capacity("member1"), capacity("member2"))


async def decided(story: Story, binding: str = WEB) -> list[tuple[str, str]]:
    """Return trigger and mode of every decision."""
    return [
        (decision.trigger, decision.mode)
        for decision in await story.recorded(decisions.ScheduleDecided, binding)
    ]


async def failures(story: Story) -> list[decisions.ScheduleFailed]:
    return await story.recorded(decisions.ScheduleFailed, WEB)


# --- triggers ---


async def test_first_decision_and_scaling_have_their_triggers(story: Story) -> None:
    await story.submit(policy("p", BOTH), deployment("web", 4))
    await story.submit(deployment("web", 6))
    assert await decided(story) == [("PlacementChanged", "Steady"), ("ReplicasChanged", "Steady")]


async def test_decision_has_available_replicas_and_reasons_of_exclusion(story: Story) -> None:
    await story.submit(policy("p", on("member1", scheduling=DYNAMIC)), deployment("web", 4, cpu="2"))
    (decision,) = await story.recorded(decisions.ScheduleDecided)
    assert {assigned.name: assigned.replicas for assigned in decision.clusters} == {"member1": 4}
    assert decision.available == {"member1": 5}
    assert decision.excluded == {"cluster(s) did not match the placement cluster affinity constraint": 1}


async def test_replicas_are_divided_by_free_capacity(story: Story) -> None:
    await story.submit(
        joined("member3"), capacity("member1", 6), capacity("member2", 12), capacity("member3", 18)
    )
    await story.submit(policy("p", {"replicaScheduling": DYNAMIC}), deployment("web", 12))
    assert story.placed(WEB) == {"member1": 2, "member2": 4, "member3": 6}


async def test_aggregated_uses_as_few_clusters_as_possible(story: Story) -> None:
    placement = on("member1", "member2", scheduling=AGGREGATED)
    await story.submit(capacity("member1", 8), policy("p", placement), deployment("web", 8))
    assert story.placed(WEB) == {"member2": 8}
    await story.submit(deployment("web", 12))
    assert sum(story.placed(WEB).values()) == 12
    assert story.placed(WEB)["member2"] >= 8


async def test_divided_workload_stays_when_cluster_labels_change(story: Story) -> None:
    await story.submit(policy("p", {**EUROPE, "replicaScheduling": DYNAMIC}), deployment("web", 4))
    await story.submit(clusters.ClusterLabelled(name="member1", labels={}))
    await story.submit(clusters.ClusterLabelled(name="member2", labels={"region": "eu"}))
    assert story.placed(WEB) == {"member1": 4}
    assert len(await decided(story)) == 1


async def test_duplicated_workload_follows_cluster_labels(story: Story) -> None:
    await story.submit(policy("p", {**EUROPE, "replicaScheduling": DUPLICATED}), deployment("web", 4))
    await story.submit(clusters.ClusterLabelled(name="member2", labels={"region": "eu"}))
    assert story.placed(WEB) == {"member1": 4, "member2": 4}
    await story.submit(clusters.ClusterLabelled(name="member1", labels={"region": "us"}))
    assert await story.replicas(WEB) == {"member2": 4}


async def test_kind_without_replicas_follows_cluster_labels(story: Story) -> None:
    await story.submit(policy("p", EUROPE, selector("", CONFIG_MAP)), template("web", CONFIG_MAP))
    await story.submit(clusters.ClusterLabelled(name="member2", labels={"region": "eu"}))
    settings = key("web", CONFIG_MAP)
    assert await story.replicas(settings) == {"member1": None, "member2": None}
    assert (await decided(story, settings))[-1] == ("NonWorkload", "Steady")


async def test_cluster_that_does_not_serve_the_kind_gets_nothing(story: Story) -> None:
    await story.submit(joined("member3", lacks="Deployment"), policy("p"), deployment("web"))
    assert set(story.placed(WEB)) == {"member1", "member2"}


async def test_more_capacity_moves_nothing(story: Story) -> None:
    await story.submit(policy("p", BOTH), deployment("web", 4))
    await story.submit(capacity("member1", cpu=100))
    assert story.placed(WEB) == {"member1": 2, "member2": 2}
    assert len(await decided(story)) == 1


async def test_changed_requests_move_nothing(story: Story) -> None:
    await story.submit(policy("p", BOTH), deployment("web", 4))
    await story.submit(deployment("web", 4, cpu="2"))
    assert len(await decided(story)) == 1


# --- groups ---


def grouped(*groups: tuple[str, str], scheduling: Json) -> Json:
    terms = [{"affinityName": name, "clusterNames": [cluster]} for name, cluster in groups]
    return {"clusterAffinities": terms, "replicaScheduling": scheduling}


async def test_second_group_is_used_if_the_first_lacks_capacity(story: Story) -> None:
    await story.submit(capacity("member1", cpu=3))
    placement = grouped(("local", "member1"), ("cloud", "member2"), scheduling=DYNAMIC)
    await story.submit(policy("p", placement), deployment("web", 4))
    assert story.placed(WEB) == {"member2": 4}
    assert story.binding(WEB).affinity == "cloud"


async def test_recovered_primary_group_is_not_used_again(story: Story) -> None:
    placement = grouped(("primary", "member1"), ("backup", "member2"), scheduling=DUPLICATED)
    await story.submit(policy("p", placement), deployment("web", 2))
    await story.submit(tainted("member1", "NoExecute"))
    assert story.placed(WEB) == {"member2": 2}
    await story.submit(untainted("member1"))
    await story.pass_s(3_600)
    assert story.placed(WEB) == {"member2": 2}


async def test_unfit_workload_is_placed_when_a_cluster_of_another_group_recovers(story: Story) -> None:
    placement = grouped(("primary", "member1"), ("backup", "member2"), scheduling=DUPLICATED)
    await story.submit(policy("p", placement), deployment("web", 2))
    await story.submit(tainted("member2", "NoSchedule"))
    await story.submit(tainted("member1", "NoExecute"))
    assert (story.placed(WEB), story.binding(WEB).affinity) == ({}, "primary")
    await story.submit(untainted("member2"))
    assert story.placed(WEB) == {"member2": 2}
    assert story.binding(WEB).affinity == "backup"


# --- failures ---


async def test_failure_without_a_fitting_cluster_has_reasons_and_a_label_resolves_it(story: Story) -> None:
    asia = {"clusterAffinity": {"labelSelector": {"matchLabels": {"region": "asia"}}}}
    await story.submit(policy("p", {**asia, "replicaScheduling": EVEN}), deployment("web", 4))
    (failed,) = await failures(story)
    assert (failed.reason, failed.retried) == ("NoClusterFit", False)
    assert failed.message.startswith("0/2 clusters are available: 2 cluster(s) did not match")
    await story.submit(clusters.ClusterLabelled(name="member2", labels={"region": "asia"}))
    assert story.placed(WEB) == {"member2": 4}


async def test_untaint_resolves_a_failure_by_taints(story: Story) -> None:
    await story.submit(tainted("member1", "NoSchedule"), tainted("member2", "NoSchedule"))
    await story.submit(policy("p", BOTH), deployment("web", 4))
    assert [failure.reason for failure in await failures(story)] == ["NoClusterFit"]
    await story.submit(untainted("member2"))
    assert story.placed(WEB) == {"member2": 4}


async def test_failure_is_reported_once(story: Story) -> None:
    await story.submit(policy("p", on("nowhere")), deployment("web", 4))
    await story.submit(capacity("member1"), tainted("member1", "NoSchedule"), deployment("web", 4))
    assert len(await failures(story)) == 1


async def test_failure_with_a_new_placement_is_recorded_though_the_message_is_the_same(story: Story) -> None:
    """The binding shows the placement that was tried last."""
    await story.submit(policy("p", on("nowhere")), deployment("web", 2))
    await story.submit(policy("p", on("elsewhere")))
    first, second = await failures(story)
    assert first.message == second.message
    await story.submit(policy("p", on("elsewhere"), priority=2))
    assert len(await failures(story)) == 2


async def test_missing_capacity_keeps_running_replicas_and_more_capacity_adds_the_rest(story: Story) -> None:
    await story.submit(policy("p", BOTH), deployment("web", 4))
    await story.submit(capacity("member1", 2), capacity("member2", 2), deployment("web", 20))
    (failed,) = await failures(story)
    assert (failed.reason, failed.retried, failed.emptied) == ("Unschedulable", True, False)
    assert await story.replicas(WEB) == {"member1": 2, "member2": 2}
    await story.pass_s(60)
    await story.submit(capacity("member2", 30))
    assert sum(story.placed(WEB).values()) == 20


async def test_nodes_counted_by_default_grades_limit_the_replicas(story: Story) -> None:
    nodes = (clusters.GradeCount(grade=0, count=9), clusters.GradeCount(grade=1, count=3))
    counted = msgspec.structs.replace(capacity("member1", cpu=9), modelings=nodes)
    await story.submit(counted, capacity("member2", cpu=9))
    await story.submit(policy("p", BOTH), deployment("web", 8, cpu="1"))
    # A node of grade 1 has at least one CPU; one of grade 0 may have none.
    assert story.placed(WEB) == {"member1": 2, "member2": 6}


async def test_full_group_is_tried_again_although_no_cluster_fits_an_earlier_group(story: Story) -> None:
    groups: list[Json] = [
        {"affinityName": "absent", "clusterNames": ["member3"]},
        {"affinityName": "full", "clusterNames": ["member2"]},
    ]
    placement: Json = {"clusterAffinities": groups, "replicaScheduling": DYNAMIC}
    await story.submit(policy("p", placement), deployment("web", 30))
    (failed,) = await failures(story)
    assert (failed.reason, failed.retried, failed.emptied) == ("NoClusterFit", True, True)
    await story.submit(capacity("member2", 30))
    await story.pass_s(1)
    assert story.placed(WEB) == {"member2": 30}


async def test_retry_waits_for_its_backoff_despite_free_capacity(story: Story) -> None:
    await story.submit(policy("p", BOTH), deployment("web", 30))
    (failed,) = await failures(story)
    assert failed.retry_at_ms - story.now_ms == 1_000
    await story.submit(capacity("member2", 30))
    await story.pass_ms(999)
    assert story.placed(WEB) == {}
    await story.pass_ms(1)
    assert sum(story.placed(WEB).values()) == 30


async def test_each_failure_doubles_the_backoff(story: Story) -> None:
    await story.submit(policy("p", BOTH), deployment("web", 300))
    waits: list[int] = []
    for _ in range(9):
        waits.append((await failures(story))[-1].retry_at_ms - story.now_ms)
        await story.submit(capacity("member1", 11))
        await story.pass_ms(waits[-1])
    assert waits == [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]
    assert [failure.attempts for failure in await failures(story)] == list(range(1, 11))


async def test_edit_does_not_wait_for_the_backoff(story: Story) -> None:
    await story.submit(policy("p", BOTH), deployment("web", 300))
    await story.submit(deployment("web", 4))
    assert story.placed(WEB) == {"member1": 2, "member2": 2}


async def test_due_retry_survives_a_restart(story: Story) -> None:
    await story.submit(policy("p", BOTH), deployment("web", 30))
    await story.submit(capacity("member2", 30))
    await story.restart()
    await story.pass_ms(1_000)
    assert sum(story.placed(WEB).values()) == 30


async def test_unschedulable_workload_is_not_retried_without_changes(story: Story) -> None:
    await story.submit(policy("p", BOTH), *(deployment(f"web{index}", 300) for index in range(10)))
    before = await story.steps()
    for _ in range(60):
        await story.pass_s(60)
    assert await story.steps() == before
    assert story.worker.next_timer_ms() is None


async def test_capacity_reports_are_read_once_before_the_next_retry(story: Story) -> None:
    await story.submit(policy("p", BOTH), deployment("web", 300))
    before = await story.steps()
    for cpu in range(1, 50):
        await story.submit(capacity("member1", cpu))
    assert await story.steps() == before + 1
    await story.pass_s(1)
    assert len(await failures(story)) == 2


async def test_idle_engine_takes_no_steps(story: Story) -> None:
    await story.submit(policy("p", BOTH), *(deployment(f"web{index}") for index in range(10)))
    before = await story.steps()
    await story.pass_s(86_400)
    assert await story.steps() == before


async def test_capacity_reports_take_no_steps_if_nothing_waits(story: Story) -> None:
    await story.submit(policy("p", BOTH), deployment("web", 4))
    before = await story.steps()
    for cpu in range(1, 50):
        await story.submit(capacity("member1", cpu))
    assert await story.steps() == before


async def test_unsatisfiable_spread_is_a_scheduler_error(story: Story) -> None:
    constraint = {"spreadByField": "cluster", "minGroups": 3, "maxGroups": 3}
    await story.submit(policy("p", {"spreadConstraints": [constraint]}), deployment("web"))
    (failed,) = await failures(story)
    assert (failed.reason, failed.retried) == ("SchedulerError", True)
    await story.pass_s(60)
    await story.submit(joined("member3"), capacity("member3"))
    assert set(story.placed(WEB)) == {"member1", "member2", "member3"}
