"""Explanations of preemption: victims, preemptor, and why there are no victims."""

from collections.abc import Iterator

import pytest

from engine.http import summaries
from engine.reconcilers import explanation
from engine.reconcilers.explanation_types import Explained
from events import policies
from tests.builders.inputs import (
    capacity,
    deleted,
    deployment,
    joined,
    key,
    policy,
    priority_class,
    rebalancer,
    ref,
)
from tests.builders.manifests import DYNAMIC, on, selector
from tests.deciders.story import Story

MEMBERS = ("member1", "member2")
HIGH, LOW = key("high"), key("low")
AT = "2026-01-01T00:00:00"


def ranked(of: str, by: str) -> policies.PolicyApplied:
    priority = {"priorityClassSource": "KubePriorityClass", "priorityClassName": by}
    return policy(of, on(*MEMBERS, scheduling=DYNAMIC), selector(of), schedulePriority=priority)


@pytest.fixture
async def story() -> Story:
    """Two members, filled by a workload of low priority."""
    story = Story()
    await story.submit(*(joined(name) for name in MEMBERS), *(capacity(name, 4) for name in MEMBERS))
    await story.submit(priority_class("high", 1000), priority_class("low", -1))
    await story.submit(priority_class("modest", 1000, preemptionPolicy="Never"))
    await story.submit(ranked("low", "low"), deployment("low", 8))
    await story.submit(*(capacity(name, 0) for name in MEMBERS))
    return story


async def explained(story: Story, binding: str, at_number: int | None = None) -> Explained:
    explained_binding = await explanation.explain(story.log, binding, at_number)
    assert explained_binding is not None
    return explained_binding


async def printed_lines(story: Story, binding: str) -> list[str]:
    """Return the printed lines, with times shortened to the part that a story changes."""
    return list(_lines(summaries.further_lines(await explained(story, binding))))


def _lines(story: Iterator[tuple[str, str]]) -> Iterator[str]:
    for heading, text in story:
        yield f"{heading}: {text}".replace(AT, "T0").replace("2026-01-01T", "")


async def test_preemption_is_explained_for_preemptor_and_victim(story: Story) -> None:
    await story.submit(ranked("high", "high"), deployment("high", 3))
    assert await printed_lines(story, HIGH) == [
        "Priority: 1000 (class high)",
        "Capacity: missing for 3 replicas in member1, member2 at T0.000Z, attempt 1",
        f"Preempts: {LOW} in member1 (4 replicas, priority -1)",
    ]
    assert await printed_lines(story, LOW) == [
        "Priority: -1 (class low)",
        "Capacity: missing for 4 replicas in member2 at T0.000Z, attempt 1",
        "Preempts: nothing: preempting all lower-priority bindings would not free enough capacity",
        f"Preempted: in member1 by {HIGH} at T0.000Z: 4 replicas evicted, excluded until 00:05:00.000Z",
    ]
    before = (await explained(story, HIGH)).basis.number - 1
    assert (await explained(story, LOW, before)).preempted == {}


async def test_preemption_is_explained_with_the_decision_that_it_enabled_only(story: Story) -> None:
    await story.submit(ranked("high", "high"), deployment("high", 3))
    await story.submit(capacity("member1", 4))
    await story.pass_s(2)
    shown = await explained(story, HIGH)
    assert (shown.clusters, shown.condition) == ({"member1": 3}, "Success")
    assert shown.preemption is not None
    assert [(victim.key, victim.cluster) for victim in shown.preemption.victims] == [(LOW, "member1")]
    await story.submit(deployment("high", 4))
    assert (await explained(story, HIGH)).preemption is None


async def test_lack_of_victims_is_explained(story: Story) -> None:
    await story.submit(ranked("high", "high"), deployment("high", 9))
    assert (await printed_lines(story, HIGH))[1:] == [
        "Capacity: missing for 9 replicas in member1, member2 at T0.000Z, attempt 1",
        "Preempts: nothing: preempting all lower-priority bindings would not free enough capacity",
    ]
    await story.submit(ranked("modest", "modest"), deployment("modest", 1))
    assert await printed_lines(story, key("modest")) == [
        "Priority: 1000 (class modest)",
        "Preempts: nothing: preemptionPolicy is Never",
    ]
    await story.submit(ranked("lost", "nowhere"), deployment("lost", 1))
    assert (await printed_lines(story, key("lost")))[0] == (
        "Not applied: PriorityClass nowhere does not exist; the policy is applied once that is corrected"
    )


async def test_pending_preemption_request_is_explained(story: Story) -> None:
    await story.write(ranked("high", "high"), deployment("high", 3))
    await story.worker.turn()
    assert (await printed_lines(story, HIGH))[-1] == "Preempts: undecided: some shards have not answered yet"


async def test_victims_of_all_attempts_are_listed(story: Story) -> None:
    await story.submit(ranked("high", "high"), deployment("high", 3))
    await story.pass_s(61)
    preemption = (await explained(story, HIGH)).preemption
    assert preemption is not None
    assert (preemption.attempt, [victim.cluster for victim in preemption.victims]) == (
        2,
        ["member1", "member2"],
    )


async def test_victim_is_marked_until_it_returns_or_is_rescheduled(story: Story) -> None:
    await story.submit(ranked("high", "high"), deployment("high", 3))
    await story.submit(capacity("member1", 4))
    await story.pass_s(2)
    await story.submit(capacity("member1", 1))
    await story.pass_s(300)
    (left,) = (await explained(story, LOW)).preempted.values()
    assert (left.by, left.replicas, left.until) == (HIGH, 4, "")
    await story.submit(deleted("high"), capacity("member1", 4), rebalancer("again", ref("low")))
    assert (await explained(story, LOW)).preempted == {}


async def test_binding_without_priority_has_no_preemption_lines(story: Story) -> None:
    await story.submit(policy("p", on("member1"), selector("plain")), deployment("plain"))
    assert await printed_lines(story, key("plain")) == []
