"""State preservation: status fields of the failed cluster are passed as labels to the next cluster."""

import pytest

from events import decisions, rejections, works
from events.json_values import Json
from tests.builders.inputs import deployment, key, policy, tainted
from tests.builders.manifests import AGGREGATED, on
from tests.deciders.story import Story

WEB = key("web")
MEMBERS = ("member1", "member2", "member3")
JOB = "{.jobStatus.jobID}"
ALIAS = "example.com/job"
RULES: Json = {"rules": [{"aliasLabelName": ALIAS, "jsonPath": JOB}]}
ONE: Json = on(
    *MEMBERS,
    scheduling=AGGREGATED,
    spreadConstraints=[{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}],
)


pytestmark = pytest.mark.usefixtures("three_members")


def application(mode: str = "Directly", state: Json = RULES) -> Json:
    conditions = {"tolerationSeconds": 60}
    return {"application": {"decisionConditions": conditions, "purgeMode": mode, "statePreservation": state}}


def by_cluster(mode: str = "Directly") -> Json:
    return {"cluster": {"purgeMode": mode, "statePreservation": RULES}}


async def placed(story: Story, failover: Json, placement: Json = ONE) -> str:
    """Place one workload in one cluster, and return the cluster."""
    await story.submit(policy("p", placement, failover=failover), deployment("web", 2))
    return next(iter(story.placed(WEB)))


async def labels(story: Story) -> dict[str, dict[str, str]]:
    """Return the labels of the newest applied work per cluster."""
    return {work.cluster: work.labels for work in await story.recorded(works.WorkApplied, WEB)}


async def test_work_contains_the_status_paths_of_the_rules(story: Story) -> None:
    await placed(story, application() | by_cluster())
    (work,) = await story.recorded(works.WorkApplied, WEB)
    assert work.reading is not None
    assert work.reading.values == (JOB,)
    await story.submit(policy("p", ONE))
    assert (await story.recorded(works.WorkApplied, WEB))[-1].reading is None


async def test_failed_application_passes_its_state_on(story: Story) -> None:
    first = await placed(story, application())
    await story.report(WEB, first, values={JOB: "a1"})
    await story.report(WEB, first, healthy=False, values={JOB: "a1"})
    await story.pass_s(60)
    (started,) = await story.recorded(decisions.EvictionStarted)
    assert (started.labels, started.clusters_before) == ({ALIAS: "a1"}, (first,))
    (second,) = story.placed(WEB)
    assert second != first
    assert (await labels(story))[second] == {ALIAS: "a1"}
    await story.restart()
    assert story.binding(WEB).works[second].labels == {ALIAS: "a1"}

    await story.report(WEB, second)
    assert await story.recorded(decisions.EvictionFinished)
    assert (await labels(story))[second] == {}, "it lasts no longer than the eviction"


async def test_failed_cluster_passes_its_last_reported_state_on(story: Story) -> None:
    first = await placed(story, by_cluster())
    await story.report(WEB, first, values={JOB: "a1"})
    await story.submit(tainted(first, "NoExecute"))
    (second,) = story.placed(WEB)
    assert (await labels(story))[second] == {ALIAS: "a1"}


async def test_last_of_two_failures_determines_the_state(story: Story) -> None:
    first = await placed(story, by_cluster())
    await story.report(WEB, first, values={JOB: "a1"})
    await story.submit(tainted(first, "NoExecute"))
    (second,) = story.placed(WEB)
    await story.report(WEB, second, healthy=False, values={JOB: "b2"})
    await story.submit(tainted(second, "NoExecute"))
    (third,) = story.placed(WEB)
    assert (await labels(story))[third] == {ALIAS: "b2"}


@pytest.mark.parametrize("mode", ["Gracefully", "Never"])
async def test_no_state_is_passed_while_the_workload_still_runs(story: Story, mode: str) -> None:
    first = await placed(story, application(mode))
    await story.report(WEB, first, healthy=False, values={JOB: "a1"})
    await story.pass_s(60)
    (started,) = await story.recorded(decisions.EvictionStarted)
    assert started.labels == {ALIAS: "a1"}
    (second,) = story.placed(WEB)
    assert (await labels(story))[second] == {}


async def test_no_state_is_passed_to_several_clusters(story: Story) -> None:
    await story.submit(
        policy("p", on(*MEMBERS, scheduling={"replicaSchedulingType": "Duplicated"}), failover=application()),
        deployment("web", 2),
    )
    await story.report(WEB, "member1", healthy=False, values={JOB: "a1"})
    await story.pass_s(60)
    assert set(story.placed(WEB)) == {"member2", "member3"}
    assert not any((await labels(story)).values())


async def test_remaining_cluster_gets_no_state_of_another(story: Story) -> None:
    await story.submit(
        policy("p", on("member1", "member2"), failover=application()),
        deployment("web", 2),
    )
    await story.report(WEB, "member1", healthy=False, values={JOB: "a1"})
    await story.pass_s(60)
    assert set(story.placed(WEB)) == {"member2"}
    assert not any((await labels(story)).values())


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({}, "nothing was reported at {.jobStatus.jobID}"),
        ({JOB: "not a label"}, "'not a label' is no value for a label"),
        ({JOB: "x" * 64}, f"{'x' * 64!r} is no value for a label"),
        ({JOB: ""}, "'' is no value for a label"),
    ],
)
async def test_unpreservable_state_is_reported_and_does_not_delay_failover(
    story: Story, values: dict[str, str], why: str
) -> None:
    first = await placed(story, application())
    await story.report(WEB, first, healthy=False, values=values)
    await story.pass_s(60)
    (started,) = await story.recorded(decisions.EvictionStarted)
    assert (started.labels, started.not_preserved) == ({}, {ALIAS: why})
    assert first not in story.placed(WEB)


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        ({"aliasLabelName": "a b", "jsonPath": ".a"}, "aliasLabelName"),
        ({"aliasLabelName": "a", "jsonPath": "{.a[}"}, "jsonPath"),
        ({"aliasLabelName": "a", "jsonPath": "{.a}{.b}"}, "jsonPath"),
        ({"aliasLabelName": "a", "jsonPath": "x" * 2000}, "jsonPath"),
        ({"aliasLabelName": "a"}, "jsonPath"),
    ],
)
async def test_invalid_state_rules_are_refused(story: Story, rule: Json, field: str) -> None:
    story.refused = 1
    await story.submit(policy("p", ONE, failover=application(state={"rules": [rule]})))
    (refused,) = await story.recorded(rejections.InputRejected)
    assert refused.field == f"spec.failover.application.statePreservation.rules[0].{field}"
