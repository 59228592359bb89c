"""What simulated runs once found, each as the shortest story that shows it."""

from events import decisions
from tests.deciders.story import Story
from tests.deciders.writing import deployment, joined, key, on, policy, policy_deleted, rebalancer, ref, room

WEB = key("web")


async def test_who_asks_for_a_decision_gets_one_even_if_it_fails_as_it_did_before(story: Story) -> None:
    await story.say(joined("member1"), room("member1"))
    await story.say(policy("p", on("nowhere")), deployment("web", 2))
    assert len(await story.told(decisions.ScheduleFailed, WEB)) == 1
    await story.say(rebalancer("demo", ref("web")))
    assert len(await story.told(decisions.ScheduleFailed, WEB)) == 2
    assert [each.result for each in await story.told(decisions.WorkloadRebalanced)] == ["Successful"]


async def test_a_retry_that_is_due_ends_with_the_policy_that_wanted_it(story: Story) -> None:
    dynamic: dict[str, object] = {
        "replicaSchedulingType": "Divided",
        "replicaDivisionPreference": "Weighted",
        "weightPreference": {"dynamicWeight": "AvailableReplicas"},
    }
    await story.say(joined("member1"), room("member1", 1))
    await story.say(policy("p", on("member1", scheduling=dynamic)), deployment("web", 5))
    await story.say(room("member1", 2), policy_deleted("p"))
    before = await story.steps()
    await story.pass_s(600)
    assert await story.steps() <= before + 1
