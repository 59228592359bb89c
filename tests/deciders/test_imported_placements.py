"""Templates with an imported placement: the first decision adopts it, later decisions are made as usual."""

import pytest

from events import decisions
from tests.builders.inputs import capacity, imported, joined, key, policy, tainted
from tests.builders.manifests import DYNAMIC, on
from tests.deciders.story import Story

WEB = key("web")


@pytest.fixture(autouse=True)
async def two_members(story: Story) -> None:
    await story.join("member1", "member2")
    await story.submit(policy("p", on("member1", "member2", scheduling=DYNAMIC)))


async def test_first_decision_takes_the_placement_over(story: Story) -> None:
    await story.submit(imported(6, member1=5, member2=1))
    assert story.placed(WEB) == {"member1": 5, "member2": 1}
    (decision,) = await story.recorded(decisions.ScheduleDecided, WEB)
    assert (decision.trigger, decision.mode) == ("Imported", "Steady")


async def test_later_decisions_are_usual_ones(story: Story) -> None:
    await story.submit(imported(6, member1=6))
    await story.submit(imported(8, member1=6))
    assert story.placed(WEB) == {"member1": 7, "member2": 1} or story.placed(WEB) == {
        "member1": 6,
        "member2": 2,
    }
    await story.restart()
    await story.submit(imported(9, member1=6))
    (first, *_) = await story.recorded(decisions.ScheduleDecided, WEB)
    assert first.trigger == "Imported"
    assert [decision.trigger for decision in await story.recorded(decisions.ScheduleDecided, WEB)].count(
        "Imported"
    ) == 1


async def test_placement_that_is_imported_again_is_taken_over(story: Story) -> None:
    await story.submit(imported(6, member1=6))
    await story.submit(imported(8, member1=1, member2=7))
    assert story.placed(WEB) == {"member1": 1, "member2": 7}
    await story.write(imported(8, member1=2, member2=6))
    await story.restart()
    await story.settle()
    assert story.placed(WEB) == {"member1": 2, "member2": 6}


async def test_replicas_in_an_unknown_cluster_are_rescheduled_and_the_others_stay(story: Story) -> None:
    await story.submit(imported(6, member1=5, elsewhere=1))
    assert story.placed(WEB) == {"member1": 5, "member2": 1} or story.placed(WEB) == {"member1": 6}
    (decision,) = await story.recorded(decisions.ScheduleDecided, WEB)
    assert decision.trigger == "PlacementChanged"


async def test_placement_outlasts_a_restart_before_the_first_decision(story: Story) -> None:
    await story.write(imported(3, member2=3))
    await story.restart()
    await story.settle()
    assert story.placed(WEB) == {"member2": 3}


async def test_claim_is_taken_over_also_from_a_better_policy(story: Story) -> None:
    await story.submit(policy("a", on("member1")))
    await story.submit(imported(3, "p", member2=3))
    (claim,) = await story.recorded(decisions.BindingClaimed, WEB)
    assert claim.policy.name == "p"
    await story.submit(imported(4, "a", member2=3))
    assert len(await story.recorded(decisions.BindingClaimed, WEB)) == 1


async def test_claim_of_an_unknown_policy_is_decided_again(story: Story) -> None:
    await story.submit(imported(3, "gone", member2=3))
    (claim,) = await story.recorded(decisions.BindingClaimed, WEB)
    assert claim.policy.name == "p"


async def test_template_without_a_placement_is_placed(story: Story) -> None:
    await story.submit(imported(3, "p"))
    assert sum(story.placed(WEB).values()) == 3


@pytest.mark.parametrize("is_lazy", [True, False])
async def test_eviction_follows_the_older_placement_of_a_lazy_policy(story: Story, is_lazy: bool) -> None:
    """In Karmada the binding keeps the placement that the policy had when the template was last written."""
    await story.submit(joined("member3"), capacity("member3"))
    newer = on("member3", scheduling=DYNAMIC)
    await story.submit(policy("p", newer, activationPreference="Lazy") if is_lazy else policy("p", newer))
    older = on("member1", "member2", scheduling=DYNAMIC)
    await story.submit(imported(6, "p", older, member1=4, member2=2))
    assert story.placed(WEB) == {"member1": 4, "member2": 2}
    await story.submit(tainted("member1", "NoExecute"))
    assert story.placed(WEB) == ({"member2": 6} if is_lazy else {"member3": 6})
    await story.restart()
    await story.submit(imported(8, "p", older, member1=4, member2=2))
    assert story.placed(WEB) == {"member3": 8}
