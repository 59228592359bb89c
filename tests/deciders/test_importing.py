"""A template brings its placement along: the first decision takes it over, later ones are the usual."""

import json

import pytest

from events import decisions, imported_placements, specs
from tests.builders import manifests
from tests.builders.inputs import applied, capacity, joined, key, policy
from tests.builders.manifests import DYNAMIC, on
from tests.deciders.story import Story

WEB = key("web")


@pytest.fixture(autouse=True)
async def two_members(story: Story) -> None:
    await story.submit(joined("member1"), joined("member2"), capacity("member1"), capacity("member2"))
    await story.submit(policy("p", on("member1", "member2", scheduling=DYNAMIC)))


def imported(replicas: int, **clusters: int) -> specs.TemplateApplied:
    """A Deployment that runs in these clusters already."""
    text = json.dumps({"clusters": clusters})
    metadata = {"annotations": {imported_placements.ANNOTATION: text}}
    return applied(
        manifests.deployment("web", replicas, "default", metadata=metadata, requests={"cpu": "1"}), None
    )


async def test_first_decision_takes_the_placement_over(story: Story) -> None:
    await story.submit(imported(6, member1=5, member2=1))
    assert story.placed(WEB) == {"member1": 5, "member2": 1}
    (decision,) = await story.recorded(decisions.ScheduleDecided, WEB)
    assert (decision.trigger, decision.mode) == ("Imported", "Steady")


async def test_later_decisions_are_usual_ones(story: Story) -> None:
    await story.submit(imported(6, member1=6))
    await story.submit(imported(8, member1=1, member2=7))
    assert story.placed(WEB) == {"member1": 7, "member2": 1}


async def test_replicas_in_an_unknown_cluster_are_placed_anew_and_the_others_stay(story: Story) -> None:
    await story.submit(imported(6, member1=5, elsewhere=1))
    assert story.placed(WEB) == {"member1": 5, "member2": 1} or story.placed(WEB) == {"member1": 6}
    (decision,) = await story.recorded(decisions.ScheduleDecided, WEB)
    assert decision.trigger == "PlacementChanged"


async def test_placement_outlasts_a_restart_before_the_first_decision(story: Story) -> None:
    await story.write(imported(3, member2=3))
    await story.restart()
    await story.settle()
    assert story.placed(WEB) == {"member2": 3}
