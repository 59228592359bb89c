"""A step is the same in whichever order its facts are folded: workers and proofs may fold the topics in turns."""

import pytest

from engine.reconcilers import recovery, replay
from events import shapes, topics
from events.records import Record
from tests.builders.inputs import (
    capacity,
    conditions_reported,
    deployment,
    health_reported,
    joined,
    policy,
    quota,
    taint_policy,
    tainted,
)
from tests.builders.manifests import on
from tests.deciders.story import Story

DEGRADED = taint_policy("degraded", "NoSchedule", "True", condition="Degraded")
ORDERS = (topics.FACT_TOPICS, topics.FACT_TOPICS[::-1])


async def _steps_by_order(story: Story) -> list[list[list[Record]]]:
    """Return the next steps of all shards, for each order in which the facts can be folded."""
    steps: list[list[list[Record]]] = []
    ends = story.log.ends()
    for order in ORDERS:
        shards = (await replay.rebuild(story.log, range(topics.SHARDS))).shards
        folds = [fold for fold, _ in shards.values()]
        facts = shards[0][1]
        for topic in order:
            await recovery.follow_facts(story.log, folds, facts, topic, ends[topic, 0])
        steps.append([fold.decide(facts, story.now_ms, 100).records for fold in folds])
    return steps


async def test_taint_policy_before_the_first_cluster_is_proved(story: Story) -> None:
    await story.submit(deployment("web", 2))
    steps = await story.steps()
    await story.submit(DEGRADED)
    assert await story.steps() == steps
    await story.submit(joined("member1"), conditions_reported("member1", Degraded="True"))
    assert await story.steps() > steps


@pytest.mark.parametrize(
    "changes",
    [
        (tainted("member1", "NoExecute"), policy("p", on("member2"))),
        (joined("member3"), quota("few", member3="1"), quota("more", member1="1", member3="2")),
        (conditions_reported("member2", Degraded="True"), DEGRADED),
    ],
)
async def test_facts_of_two_topics_may_be_folded_in_any_order(
    story: Story, changes: tuple[shapes.Event, ...]
) -> None:
    members = ("member1", "member2")
    await story.submit(*map(joined, members), *map(capacity, members), *map(health_reported, members))
    await story.submit(policy("p", on("member1")), quota("few", member1="1"), deployment("web", 2))
    await story.write(*changes)
    first, second = await _steps_by_order(story)
    assert sum(len(records) - 1 for records in first) > 0
    assert first == second
