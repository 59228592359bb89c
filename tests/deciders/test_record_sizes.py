"""Decisions about very many clusters fit into records; a decision that does not would be lost at the next start."""

import itertools
import json
from typing import Final

import pytest

from events import (
    clusters,
    decisions,
    group_decisions,
    health,
    keys,
    limits,
    preemption_decisions,
    records,
    rejections,
    shapes,
)
from events.json_values import Json
from tests.builders.inputs import (
    deployment,
    interpreter,
    joined,
    key,
    override,
    policy,
    priority_class,
    tainted,
    template,
)
from tests.builders.manifests import AGGREGATED, FLINK, on, selector
from tests.deciders.story import Story

WEB, JOB = key("web"), key("job", FLINK)
ONE: Final[Json] = {"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}
LABELS: Final[Json] = {"labelsOverrider": [{"operator": "add", "value": {"a": "b"}}]}


def _long(letter: str, index: int) -> str:
    """A name of the greatest length, so that few objects suffice."""
    return f"{letter * (limits.NAME_CHARS_MAX - 3)}{index:03}"


async def _largest(story: Story) -> int:
    return max(len(record.value) for record in await story.log.read_all(0, story.log.last_number()))


async def test_works_of_one_step_are_recorded_in_portions(story: Story) -> None:
    names = [f"member{index}" for index in range(250)]
    await story.submit(*map(joined, names))
    await story.submit(*(override(_long("o", index), {"overriders": LABELS}) for index in range(25)))
    await story.submit(policy("p", on(*names)), deployment("web"))
    recorded = await story.recorded(decisions.BindingDispatched, WEB)
    assert len(recorded) > 1
    assert sorted(work.cluster for dispatched in recorded for work in dispatched.works) == sorted(names)
    assert await _largest(story) <= limits.RECORD_BYTES_MAX


async def test_status_omits_details_that_do_not_fit(story: Story) -> None:
    names = [f"member{index}" for index in range(150)]
    await story.submit(*map(joined, names))
    await story.submit(policy("p", on(*names), selector("job", FLINK)), template("job", FLINK))
    works = await story.running(JOB)
    values = {
        f".value{index}": "x" * limits.STATUS_VALUE_CHARS_MAX for index in range(limits.STATUS_VALUES_MAX)
    }
    reports: list[shapes.Event] = [
        health.WorkloadReported(
            cluster=name, key=JOB, term=work.term, step=work.step, values=values, fault="x" * 100
        )
        for name, work in works.items()
    ]
    await story.submit(*reports[:10])
    kept = (await story.recorded(decisions.StatusAggregated, JOB))[-1].members[0]
    await story.submit(*reports)
    cut = (await story.recorded(decisions.StatusAggregated, JOB))[-1].members[0]
    assert [(len(status.values), len(status.message)) for status in (kept, cut)] == [(64, 100), (0, 80)]
    assert await _largest(story) <= limits.RECORD_BYTES_MAX


async def test_verdicts_on_a_group_are_recorded_in_portions(story: Story) -> None:
    apart: Json = {"antiAffinity": {"groupByLabelKey": "tier"}}
    await story.submit(*(joined(_long("m", index)) for index in range(50)))
    await story.submit(
        policy("all", {"workloadAffinity": apart}, selector(name="all")),
        policy("p", {"workloadAffinity": apart, "spreadConstraints": [ONE]}, selector()),
    )
    await story.submit(deployment("all", labels={"tier": "a"}))
    await story.submit(*(deployment(f"web{index}", labels={"tier": "a"}) for index in range(210)))
    decided = await story.recorded(group_decisions.GroupDecided)
    assert len({verdict.by for decision in decided for verdict in decision.verdicts}) == 211
    assert await _largest(story) <= limits.RECORD_BYTES_MAX


async def test_offers_that_do_not_fit_are_left_out(story: Story) -> None:
    full = clusters.CapacityReported(
        name="member1",
        allocatable={"cpu": "10", "memory": "64Gi", "pods": "100"},
        allocated={"cpu": "10"},
    )
    await story.submit(
        joined("member1"), full, priority_class("high", 1_000), interpreter("spec.size", "spec.requests")
    )
    await story.submit(policy("low", on("member1"), selector(kind=FLINK)))
    requests = {f"{_long('r', index)}": "1" for index in range(3_500)}
    low = (name for index in range(1_000) if keys.shard_of(key(name := f"low{index}", FLINK)) == 0)
    for name in itertools.islice(low, 3):
        await story.submit(template(name, FLINK, fields={"spec": {"size": 1, "requests": requests}}))
    ranked = {"priorityClassSource": "KubePriorityClass", "priorityClassName": "high"}
    await story.submit(
        policy("p", {"replicaScheduling": AGGREGATED}, selector(name="vital"), schedulePriority=ranked),
        deployment("vital", 3, "1"),
    )
    (decided,) = await story.recorded(preemption_decisions.PreemptionDecided)
    assert decided.reason == "NotEnough"
    assert await _largest(story) <= limits.RECORD_BYTES_MAX


async def test_failures_of_groups_that_do_not_fit_are_left_out(story: Story) -> None:
    names = [f"member{index}" for index in range(300)]
    await story.submit(*map(joined, names))
    await story.submit(
        *(tainted(name, "NoSchedule", f"{_long('t', index)}/own") for index, name in enumerate(names))
    )
    terms = [{"affinityName": f"group{index}", "clusterNames": names} for index in range(30)]
    await story.submit(policy("p", {"clusterAffinities": terms}), deployment("web"))
    (failed,) = await story.recorded(decisions.ScheduleFailed, WEB)
    assert (failed.reason, len(failed.excluded), failed.failed) == ("NoClusterFit", len(names), ())
    assert await _largest(story) <= limits.RECORD_BYTES_MAX


@pytest.mark.parametrize("character", ["x", "\x7f"])
@pytest.mark.parametrize("field", ["syncMode", "specversion"])
async def test_rejection_of_a_huge_value_fits_into_a_record(story: Story, character: str, field: str) -> None:
    right = story.record(joined("member1"))
    value = {"specversion": "1.0", "id": "1", "source": "/huge", "type": right.headers["ce_type"]}
    huge = character * (limits.RECORD_BYTES_MAX - 300)
    data = {"name": "member1", "syncMode": huge if field == "syncMode" else "Push"}
    value["specversion"] = huge if field == "specversion" else "1.0"
    headers = {"content-type": records.STRUCTURED}
    body = json.dumps({**value, "data": data}, ensure_ascii=False).encode()
    await story.log.append([records.record(right.topic, right.partition, right.key, headers, body)])
    await story.settle()
    (rejected,) = await story.recorded(rejections.InputRejected)
    assert rejected.verdict == "refused"
    assert len(rejected.reason) < 1_000
    story.refused = 1
