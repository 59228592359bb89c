"""Dispatch: which works clusters receive and when, without repeats; suspension; every kind of template."""

import pytest

from events import clusters, decisions, health, limits, policies, shapes, works
from events.json_values import Json
from tests.builders import inputs, manifests
from tests.builders.inputs import capacity, deployment, joined, key, policy, policy_deleted
from tests.builders.manifests import (
    CONFIG_MAP,
    DUPLICATED,
    EVEN,
    FLINK,
    JOB,
    POD,
    REPLICA_SET,
    STATEFUL_SET,
    on,
    selector,
)
from tests.deciders.story import Story

WEB = key("web")
BOTH = on("member1", "member2", scheduling=DUPLICATED)


pytestmark = pytest.mark.usefixtures("two_members")


async def work_types(story: Story, cluster: str) -> list[str]:
    """Return the works of a cluster in order: applied, suspended or removed."""
    events: list[shapes.Event] = []
    for kind in (works.WorkApplied, works.WorkSuspended, works.WorkRemoved):
        events += await story.recorded(kind, cluster)
    events.sort(key=lambda work: (getattr(work, "term", 0), getattr(work, "step", 0)))
    return [type(work).__name__.removeprefix("Work").lower() for work in events]


# --- objects that exist already ---


async def test_works_overwrite_existing_objects_if_policy_or_template_allows_it(story: Story) -> None:
    async def flags() -> list[bool]:
        return [work.overwrites for work in await story.recorded(works.WorkApplied, "member1")]

    await story.submit(policy("p", on("member1")), deployment("web", 2))
    await story.submit(policy("p", on("member1"), conflictResolution="Overwrite"))
    await story.submit(policy("p", on("member1")))
    assert await flags() == [False, True, False]
    annotations = {"work.karmada.io/conflict-resolution": "overwrite"}
    promoted = manifests.deployment("web", 2, "default", metadata={"annotations": annotations})
    await story.submit(inputs.applied(promoted))
    assert await flags() == [False, True, False, True]


# --- no repeats ---


async def test_unchanged_manifest_is_not_dispatched_again(story: Story) -> None:
    await story.submit(policy("p", BOTH), deployment("web", 2))
    await story.submit(deployment("web", 2))
    assert await work_types(story, "member1") == ["applied"]
    assert len(await story.recorded(decisions.ScheduleDecided)) == 1


async def test_unchanged_policy_is_not_dispatched_again(story: Story) -> None:
    await story.submit(policy("p", BOTH), deployment("web", 2))
    await story.submit(policy("p", BOTH))
    assert await work_types(story, "member2") == ["applied"]


async def test_cluster_with_an_unchanged_work_gets_none(story: Story) -> None:
    await story.submit(policy("p", on("member1", scheduling=DUPLICATED)), deployment("web", 2))
    await story.submit(policy("p", BOTH))
    assert await work_types(story, "member1") == ["applied"]
    assert await work_types(story, "member2") == ["applied"]


async def test_restart_dispatches_nothing(story: Story) -> None:
    await story.submit(policy("p", BOTH), deployment("web", 2))
    await story.restart()
    assert await work_types(story, "member1") == ["applied"]


async def test_reports_dispatch_nothing(story: Story) -> None:
    await story.submit(policy("p", BOTH), deployment("web", 2))
    await story.report(WEB, "member1")
    await story.submit(capacity("member1", cpu=3))
    assert await work_types(story, "member1") == ["applied"]


async def test_label_change_reaches_the_members(story: Story) -> None:
    await story.submit(policy("p", BOTH), deployment("web", 2))
    await story.submit(deployment("web", 2, labels={"tier": "front"}))
    assert await work_types(story, "member1") == ["applied", "applied"]
    first, second = await story.recorded(works.WorkApplied, "member1")
    assert first.digest != second.digest
    assert second.offset > first.offset
    assert len(await story.recorded(decisions.ScheduleDecided)) == 1


async def test_scaled_template_reaches_all_members(story: Story) -> None:
    await story.submit(policy("p", BOTH), deployment("web", 2))
    await story.submit(deployment("web", 5))
    assert await story.replicas(WEB) == {"member1": 5, "member2": 5}


async def test_new_work_has_a_higher_term_or_step(story: Story) -> None:
    await story.submit(policy("p", BOTH), deployment("web", 1))
    await story.submit(deployment("web", 2))
    await story.restart()
    await story.submit(deployment("web", 3))
    versions = [(work.term, work.step) for work in await story.recorded(works.WorkApplied, "member1")]
    assert versions == sorted(set(versions))


# --- suspension ---


async def test_dispatching_is_suspended_and_resumed_everywhere(story: Story) -> None:
    await story.submit(policy("p", BOTH), deployment("web", 2))
    await story.submit(policy("p", BOTH, suspension={"dispatching": True}))
    await story.submit(deployment("web", 3))
    await story.submit(deployment("web", 4))
    assert await story.replicas(WEB) == {"member1": 2, "member2": 2}
    assert await work_types(story, "member1") == ["applied", *["suspended"] * 3]
    assert story.placed(WEB) == {"member1": 4, "member2": 4}
    await story.submit(policy("p", BOTH))
    assert await story.replicas(WEB) == {"member1": 4, "member2": 4}
    assert await work_types(story, "member1") == ["applied", *["suspended"] * 3, "applied"]


async def test_suspended_work_says_what_its_cluster_would_get(story: Story) -> None:
    async def pending() -> list[tuple[int | None, bool, str]]:
        sent = [work.pending for work in await story.recorded(works.WorkSuspended, "member1")]
        return [
            (work.replicas, work.overwrites, " ".join(rule.name for rule in work.overrides))
            for work in sent
            if work is not None
        ]

    divided, suspension = on("member1", "member2", scheduling=EVEN), {"dispatching": True}
    await story.submit(policy("p", divided, suspension=suspension), deployment("web", 2))
    await story.submit(deployment("web", 4))
    await story.submit(inputs.override("o", manifests.images("v2")))
    await story.submit(policy("p", divided, suspension=suspension, conflictResolution="Overwrite"))
    expected = [(1, False, ""), (2, False, ""), (2, False, "o"), (2, True, "o")]
    assert await pending() == expected
    await story.submit(policy("q", on("member2")))
    assert await pending() == expected
    assert await story.recorded(works.WorkApplied) == []


async def test_dispatching_is_suspended_on_some_clusters(story: Story) -> None:
    suspension = {"dispatchingOnClusters": {"clusterNames": ["member2"]}}
    await story.submit(policy("p", BOTH), deployment("web", 2))
    await story.submit(policy("p", BOTH, suspension=suspension), deployment("web", 3))
    assert await story.replicas(WEB) == {"member1": 3, "member2": 2}
    await story.submit(policy("p", BOTH))
    assert await story.replicas(WEB) == {"member1": 3, "member2": 3}


async def test_initially_suspended_workload_runs_nowhere_until_resumed(story: Story) -> None:
    await story.submit(policy("p", BOTH, suspension={"dispatching": True}), deployment("web", 2))
    assert await story.recorded(works.WorkApplied) == []
    await story.submit(policy("p", BOTH))
    assert await story.replicas(WEB) == {"member1": 2, "member2": 2}


async def test_deletion_of_a_policy_does_not_resume_its_suspended_works(story: Story) -> None:
    await story.submit(policy("p", BOTH), deployment("web", 2))
    await story.submit(policy("p", BOTH, suspension={"dispatching": True}), deployment("web", 5))
    await story.submit(policy_deleted("p"))
    assert await story.replicas(WEB) == {"member1": 2, "member2": 2}
    await story.submit(policy("q", BOTH))
    assert await story.replicas(WEB) == {"member1": 5, "member2": 5}


async def test_withdrawal_is_never_suspended(story: Story) -> None:
    await story.submit(policy("p", BOTH, suspension={"dispatching": True}), deployment("web", 2))
    await story.submit(inputs.deleted("web"))
    assert await story.running(WEB) == {}


# --- kinds ---


async def placed_replicas(
    story: Story, name: str, kind: tuple[str, str], fields: Json
) -> dict[str, int | None]:
    divided = on("member1", "member2", scheduling=EVEN)
    await story.submit(policy(f"p-{kind[1].lower()}", divided, selector(name, kind)))
    await story.submit(inputs.template(name, kind, fields=fields))
    return await story.replicas(key(name, kind))


async def test_stateful_set_is_divided_by_its_replicas(story: Story) -> None:
    placed = await placed_replicas(
        story, "db", STATEFUL_SET, {"spec": {"replicas": 4, "template": {"spec": {"containers": []}}}}
    )
    assert placed == {"member1": 2, "member2": 2}


async def test_job_is_divided_by_its_parallelism(story: Story) -> None:
    spec = {"parallelism": 6, "completions": 60, "template": {"spec": {"containers": [{"name": "sum"}]}}}
    assert await placed_replicas(story, "sum", JOB, {"spec": spec}) == {"member1": 3, "member2": 3}


async def test_completions_of_a_job_are_divided_like_its_parallelism(story: Story) -> None:
    async def completions() -> dict[str, int | None]:
        newest = await story.recorded(works.WorkApplied)
        return {work.cluster: work.completions for work in newest}

    pods: Json = {"spec": {"containers": [{"name": "sum"}]}}
    spec = {"parallelism": 3, "completions": 9, "template": pods}
    placed = await placed_replicas(story, "sum", JOB, {"spec": spec})
    assert placed == {"member1": 2, "member2": 1}
    assert await completions() == {"member1": 6, "member2": 3}
    await story.submit(inputs.template("sum", JOB, fields={"spec": {**spec, "completions": 12}}))
    assert sum(count or 0 for count in (await completions()).values()) == 12
    await story.submit(policy("p-job", BOTH, selector("sum", JOB)))
    assert await completions() == {"member1": None, "member2": None}


async def test_workload_without_a_count_has_one_replica(story: Story) -> None:
    assert await placed_replicas(story, "one", JOB, {"spec": {"template": {"spec": {"containers": []}}}}) == {
        "member1": 1
    }


async def test_pod_is_one_replica_and_is_sent_unchanged(story: Story) -> None:
    container: Json = {"name": "main", "resources": {"requests": {"cpu": "2"}}}
    # The manifest of a Pod has no replicas to set.
    assert await placed_replicas(story, "single", POD, {"spec": {"containers": [container]}}) == {
        "member1": None
    }
    single = key("single", POD)
    assert story.placed(single) == {"member1": 1}
    (declared,) = await story.recorded(decisions.BindingDeclared)
    assert (declared.replicas, declared.requests) == (1, {"cpu": "2"})
    await story.restart()


async def test_pod_that_fits_nowhere_is_not_placed(story: Story) -> None:
    container: Json = {"name": "main", "resources": {"requests": {"cpu": "11"}}}
    divided = on("member1", "member2", scheduling=manifests.AGGREGATED)
    await story.submit(policy("p", divided, selector("large", POD)))
    await story.submit(inputs.template("large", POD, fields={"spec": {"containers": [container]}}))
    assert story.placed(key("large", POD)) == {}


async def test_kind_without_replicas_is_sent_to_every_selected_cluster(story: Story) -> None:
    assert await placed_replicas(story, "settings", CONFIG_MAP, {"data": {"a": "1"}}) == {
        "member1": None,
        "member2": None,
    }
    (declared,) = await story.recorded(decisions.BindingDeclared)
    assert (declared.replicas, declared.requests) == (None, None)


async def test_deployment_with_0_replicas_differs_from_a_kind_without_replicas(story: Story) -> None:
    await story.submit(policy("p", BOTH), deployment("web", 0))
    (declared,) = await story.recorded(decisions.BindingDeclared)
    assert declared.replicas == 0


@pytest.mark.parametrize("interpreter_comes_first", [True, False])
async def test_custom_kind_is_divided_by_its_interpreter(story: Story, interpreter_comes_first: bool) -> None:
    spec = {"job": {"parallelism": 8}, "resource": {"cpu": "1", "memory": "1Gi"}}
    job = inputs.template("stream", FLINK, fields={"spec": spec})
    reading = inputs.interpreter("spec.job.parallelism", "spec.resource")
    divided = on("member1", "member2", scheduling=EVEN)
    await story.submit(policy("p", divided, selector("", FLINK)))
    for event in (reading, job) if interpreter_comes_first else (job, reading):
        await story.submit(event)
    assert await story.replicas(key("stream", FLINK)) == {"member1": 4, "member2": 4}
    declared = (await story.recorded(decisions.BindingDeclared))[-1]
    assert declared.requests == {"cpu": "1", "memory": "1Gi"}


async def test_custom_kind_without_an_interpreter_has_no_replicas(story: Story) -> None:
    placed = await placed_replicas(story, "stream", FLINK, {"spec": {"job": {"parallelism": 8}}})
    assert placed == {"member1": None, "member2": None}


async def test_custom_kind_has_no_replicas_after_its_interpreter_is_deleted(story: Story) -> None:
    await story.submit(inputs.interpreter("spec.job.parallelism"))
    await placed_replicas(story, "stream", FLINK, {"spec": {"job": {"parallelism": 8}}})
    await story.submit(policies.InterpreterDeleted(name="flink"))
    assert await story.replicas(key("stream", FLINK)) == {"member1": None, "member2": None}


async def test_replica_set_is_divided(story: Story) -> None:
    spec: Json = {"replicas": 4, "template": {"spec": {"containers": []}}}
    divided = on("member1", "member2", scheduling=EVEN)
    await story.submit(policy("p", divided, selector("web", REPLICA_SET)))
    await story.submit(inputs.template("web", REPLICA_SET, fields={"spec": spec}))
    assert await story.replicas(key("web", REPLICA_SET)) == {"member1": 2, "member2": 2}


# --- status ---


async def test_member_statuses_are_aggregated(story: Story) -> None:
    await story.submit(policy("p", BOTH), deployment("web", 2))
    await story.report(WEB, "member1")
    half = (await story.recorded(decisions.StatusAggregated))[-1]
    assert [(member.cluster, member.applied, member.ready) for member in half.members] == [
        ("member1", True, 2),
        ("member2", False, 0),
    ]
    assert not half.fully_applied
    await story.report(WEB, "member2", healthy=False, ready=1)
    whole = (await story.recorded(decisions.StatusAggregated))[-1]
    assert [(member.health, member.ready) for member in whole.members] == [("Healthy", 2), ("Unhealthy", 1)]
    assert whole.fully_applied


async def test_whole_statuses_are_left_out_once_together_they_are_too_long(story: Story) -> None:
    status = "x" * limits.STATUS_CHARS_MAX
    count = limits.STATUSES_CHARS_MAX // limits.STATUS_CHARS_MAX
    names = [f"edge{index}" for index in range(count + 1)]
    await story.submit(*(joined(name) for name in names))
    await story.submit(policy("p", on(*names)), deployment("web", 1))
    for name in names:
        work = (await story.running(WEB))[name]
        await story.submit(
            health.WorkloadReported(cluster=name, key=WEB, term=work.term, step=work.step, status=status)
        )
    shown = await story.recorded(decisions.StatusAggregated)
    lengths = [sum(len(member.status) for member in status.members) for status in shown[-2:]]
    assert lengths == [limits.STATUSES_CHARS_MAX, 0]


async def test_unchanged_report_does_not_change_the_status(story: Story) -> None:
    await story.submit(policy("p", BOTH), deployment("web", 2))
    await story.report(WEB, "member1")
    count = len(await story.recorded(decisions.StatusAggregated))
    await story.report(WEB, "member1")
    assert len(await story.recorded(decisions.StatusAggregated)) == count


async def test_status_has_its_observed_generation(story: Story) -> None:
    await story.submit(policy("p", BOTH), deployment("web", 2))
    await story.report(WEB, "member1")
    await story.submit(deployment("web", 3))
    seen = [status.observed_generation for status in await story.recorded(decisions.StatusAggregated)]
    assert seen[-1] == 2


async def test_report_of_an_older_work_is_ignored(story: Story) -> None:
    await story.submit(policy("p", BOTH), deployment("web", 2))
    old = (await story.running(WEB))["member1"]
    await story.submit(deployment("web", 3))
    await story.report(WEB, "member1")
    before = await story.recorded(decisions.StatusAggregated)
    await story.report(WEB, "member1", of=old, healthy=False)
    assert await story.recorded(decisions.StatusAggregated) == before


async def test_report_from_a_cluster_without_work_is_ignored(story: Story) -> None:
    await story.submit(policy("p", on("member1")), deployment("web", 2))
    work = (await story.running(WEB))["member1"]
    await story.report(WEB, "member2", of=work)
    assert await story.recorded(decisions.StatusAggregated) == []


async def test_removed_cluster_work_is_dropped_from_the_status(story: Story) -> None:
    await story.submit(policy("p", BOTH), deployment("web", 2))
    await story.report(WEB, "member1")
    await story.report(WEB, "member2")
    work = (await story.running(WEB))["member2"]
    await story.submit(policy("p", on("member1", scheduling=DUPLICATED)))
    report = health.WorkloadGone(cluster="member2", key=WEB, term=work.term, step=work.step + 1)
    await story.submit(report)
    shown = (await story.recorded(decisions.StatusAggregated))[-1]
    assert [member.cluster for member in shown.members] == ["member1"]


async def test_rejoined_cluster_does_not_show_its_former_status(story: Story) -> None:
    await story.submit(policy("p", BOTH), deployment("web", 2))
    await story.report(WEB, "member2")
    await story.submit(clusters.ClusterLeft(name="member2"))
    await story.submit(joined("member2"))
    assert set(await story.running(WEB)) == {"member1", "member2"}
    shown = (await story.recorded(decisions.StatusAggregated))[-1]
    assert [(member.cluster, member.applied) for member in shown.members] == [
        ("member1", False),
        ("member2", False),
    ]
