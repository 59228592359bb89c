"""Which policy places a template, told as stories: claims, their order, and how they end."""

import pytest

from events import decisions, specs, works
from tests.deciders import writing
from tests.deciders.story import Story
from tests.deciders.writing import CLUSTER_ROLE, CONFIG_MAP, deployment, joined, key, on, policy, selector

WEB = key("web")
NGINX = {"app": "nginx"}


@pytest.fixture(autouse=True)
async def three_members(story: Story) -> None:
    await story.say(*(joined(f"member{index}") for index in (1, 2, 3)))


def by_label(labels: dict[str, str]) -> writing.Json:
    return selector(labelSelector={"matchLabels": labels})


async def claimed_by(story: Story, binding: str = WEB) -> list[str]:
    return [each.policy.name for each in await story.told(decisions.BindingClaimed, binding)]


async def test_the_guides_first_example(story: Story) -> None:
    await story.say(policy("example-policy", on("member1"), selector("nginx")))
    await story.say(deployment("nginx"))
    assert await story.replicas(key("nginx")) == {"member1": 1}


@pytest.mark.parametrize("policy_comes_first", [True, False])
async def test_template_and_policy_may_come_in_either_order(story: Story, policy_comes_first: bool) -> None:
    both = [policy("p", on("member1")), deployment("web", 2)]
    for said in both if policy_comes_first else reversed(both):
        await story.say(said)
    assert story.placed(WEB) == {"member1": 2}


async def test_a_template_that_no_policy_selects_waits(story: Story) -> None:
    await story.say(policy("p", on("member1"), selector("other")), deployment("web"))
    assert story.placed(WEB) == {}
    assert await story.told(decisions.BindingDeclared) == []


async def test_a_propagation_policy_comes_before_every_cluster_propagation_policy(story: Story) -> None:
    everywhere = policy("everywhere", on("member1"), selector("web"), namespace="", priority=100)
    await story.say(everywhere, policy("mine", on("member2"), priority=-5), deployment("web"))
    assert story.placed(WEB) == {"member2": 1}


async def test_a_policy_of_another_namespace_selects_nothing_here(story: Story) -> None:
    theirs = policy("theirs", on("member1"), namespace="theirs")
    reaching = policy("reaching", on("member1"), selector(namespace="default"), namespace="theirs")
    everywhere = policy("everywhere", on("member2"), namespace="")
    await story.say(theirs, reaching, everywhere, deployment("web"))
    assert await claimed_by(story) == ["everywhere"]


async def test_the_highest_explicit_priority_wins_and_none_means_0(story: Story) -> None:
    await story.say(
        policy("high", on("member1"), by_label(NGINX), priority=2),
        policy("low", on("member2"), by_label(NGINX), priority=1),
        policy("default", on("member3"), by_label(NGINX)),
        policy("named", on("member3"), selector("web")),
        deployment("web", labels=NGINX),
    )
    assert story.placed(WEB) == {"member1": 1}


async def test_a_name_comes_before_labels_and_labels_before_a_kind(story: Story) -> None:
    by_kind = policy("a-kind", on("member1"))
    by_labels = policy("b-labels", on("member2"), by_label(NGINX))
    by_name = policy("c-name", on("member3"), selector("web"))
    await story.say(by_kind, by_labels, by_name)
    await story.say(
        deployment("web", labels=NGINX), deployment("labelled", labels=NGINX), deployment("plain")
    )
    assert await claimed_by(story) == ["c-name"]
    assert await claimed_by(story, key("labelled")) == ["b-labels"]
    assert await claimed_by(story, key("plain")) == ["a-kind"]


async def test_equal_policies_go_by_name(story: Story) -> None:
    await story.say(
        policy("propagation-b-higher-alphabetical", on("member1"), selector("web"), priority=3),
        policy("propagation-a-lower-alphabetical", on("member2"), selector("web"), priority=3),
        deployment("web"),
    )
    assert story.placed(WEB) == {"member2": 1}


async def test_a_selector_may_ask_for_any_expression_over_labels(story: Story) -> None:
    wanted = {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["db"]}]}
    await story.say(policy("p", on("member1"), selector(labelSelector=wanted)))
    await story.say(deployment("web", labels=NGINX), deployment("db", labels={"app": "db"}))
    assert story.placed(WEB) == {"member1": 1}
    assert story.placed(key("db")) == {}


async def test_a_template_that_gets_the_labels_is_claimed_then(story: Story) -> None:
    await story.say(policy("p", on("member1"), by_label(NGINX)), deployment("web"))
    assert story.placed(WEB) == {}
    await story.say(deployment("web", labels=NGINX))
    assert story.placed(WEB) == {"member1": 1}


async def test_a_better_policy_does_not_take_over_by_itself(story: Story) -> None:
    await story.say(policy("first", on("member1")), deployment("web"))
    await story.say(policy("better", on("member2"), selector("web"), priority=9, preemption="Never"))
    assert await claimed_by(story) == ["first"]


async def test_a_policy_that_may_preempt_takes_over_with_a_higher_priority(story: Story) -> None:
    await story.say(policy("first", on("member1"), priority=1), deployment("web"))
    await story.say(policy("equal", on("member2"), selector("web"), priority=1, preemption="Always"))
    assert story.placed(WEB) == {"member1": 1}
    await story.say(policy("higher", on("member3"), selector("web"), priority=2, preemption="Always"))
    assert await claimed_by(story) == ["first", "higher"]
    assert await story.replicas(WEB) == {"member3": 1}


async def test_a_propagation_policy_preempts_a_cluster_propagation_policy_and_never_the_other_way(
    story: Story,
) -> None:
    everywhere = policy("everywhere", on("member1"), namespace="", priority=5)
    await story.say(everywhere, deployment("web"))
    await story.say(policy("mine", on("member2"), selector("web"), priority=-1, preemption="Always"))
    assert await claimed_by(story) == ["everywhere", "mine"]
    grasping = policy(
        "grasping", on("member3"), selector("web"), namespace="", priority=99, preemption="Always"
    )
    await story.say(grasping)
    assert story.placed(WEB) == {"member2": 1}


async def test_a_changed_policy_places_again_what_it_has_claimed(story: Story) -> None:
    await story.say(policy("p", on("member1")), deployment("web", 2))
    await story.say(policy("p", on("member2")))
    assert await story.replicas(WEB) == {"member2": 2}
    assert [each.trigger for each in await story.told(decisions.ScheduleDecided)] == ["PlacementChanged"] * 2


async def test_a_policy_that_only_changes_its_priority_moves_nothing(story: Story) -> None:
    await story.say(policy("p", on("member1")), deployment("web", 2))
    await story.say(policy("p", on("member1"), priority=7))
    assert len(await story.told(decisions.ScheduleDecided)) == 1


async def test_a_deleted_policy_leaves_what_runs(story: Story) -> None:
    await story.say(policy("p", on("member1")), deployment("web", 2))
    await story.say(writing.policy_deleted("p"))
    (released,) = await story.told(decisions.BindingReleased)
    assert released.reason == "PolicyDeleted"
    assert await story.replicas(WEB) == {"member1": 2}
    await story.say(writing.deleted("web"))
    assert await story.replicas(WEB) == {}


async def test_another_policy_takes_over_from_one_that_is_deleted(story: Story) -> None:
    await story.say(policy("a", on("member1")), policy("b", on("member2")), deployment("web", 2))
    await story.say(writing.policy_deleted("a"))
    assert await claimed_by(story) == ["a", "b"]
    assert await story.replicas(WEB) == {"member2": 2}


async def test_a_policy_that_comes_back_claims_what_it_left(story: Story) -> None:
    await story.say(policy("p", on("member1")), deployment("web", 2))
    await story.say(writing.policy_deleted("p"))
    await story.say(deployment("web", 5))
    assert await story.replicas(WEB) == {"member1": 2}
    await story.say(policy("p", on("member1")))
    assert await story.replicas(WEB) == {"member1": 5}


async def test_a_policy_that_selects_no_more_lets_go(story: Story) -> None:
    await story.say(policy("p", on("member1"), selector("web")), deployment("web", 2))
    await story.say(policy("p", on("member1"), selector("other")))
    (released,) = await story.told(decisions.BindingReleased)
    assert released.reason == "PolicySelectsNoMore"
    assert await story.replicas(WEB) == {"member1": 2}


async def test_a_template_that_changes_its_labels_goes_to_another_policy(story: Story) -> None:
    await story.say(policy("blue", on("member1"), by_label({"c": "blue"})), policy("red", on("member2")))
    await story.say(deployment("web", labels={"c": "blue"}))
    await story.say(deployment("web", labels={"c": "red"}))
    assert await claimed_by(story) == ["blue", "red"]
    assert await story.replicas(WEB) == {"member2": 1}


async def test_a_deleted_template_is_withdrawn_everywhere(story: Story) -> None:
    await story.say(policy("p", on("member1", "member2")), deployment("web", 2))
    await story.say(writing.deleted("web"))
    assert await story.replicas(WEB) == {}
    assert not story.is_known(WEB)
    assert [each.key for each in await story.told(decisions.BindingWithdrawn)] == [WEB]


async def test_a_deleted_template_keeps_running_where_its_policy_says_so(story: Story) -> None:
    await story.say(policy("p", on("member1"), preserveResourcesOnDeletion=True), deployment("web"))
    await story.say(writing.deleted("web"))
    (removed,) = await story.told(works.WorkRemoved)
    assert removed.preserved


async def test_that_holds_even_where_the_policy_went_first(story: Story) -> None:
    await story.say(policy("p", on("member1"), preserveResourcesOnDeletion=True), deployment("web"))
    await story.say(writing.policy_deleted("p"))
    await story.say(writing.deleted("web"))
    (removed,) = await story.told(works.WorkRemoved)
    assert removed.preserved


async def test_a_cluster_propagation_policy_may_mean_one_namespace_only(story: Story) -> None:
    theirs = policy("theirs", on("member1"), selector(namespace="theirs"), namespace="")
    mine = policy("z-mine", on("member2"), selector(namespace="default"), namespace="")
    await story.say(theirs, mine, deployment("web"))
    assert await claimed_by(story) == ["z-mine"]


async def test_a_template_that_is_created_again_at_once_is_another_one(story: Story) -> None:
    await story.say(policy("p", on("member1")), deployment("web", 2))
    await story.say(writing.deleted("web"), deployment("web", 3))
    first, second = await story.told(decisions.BindingDeclared)
    assert first.uid != second.uid
    assert await story.replicas(WEB) == {"member1": 3}


async def test_kinds_without_a_namespace_are_placed_by_cluster_propagation_policies(story: Story) -> None:
    role = writing.template("reader", CLUSTER_ROLE)
    await story.say(policy("mine", on("member1"), selector("reader", CLUSTER_ROLE)), role)
    assert story.placed(key("reader", CLUSTER_ROLE)) == {}
    await story.say(policy("all", on("member1", "member3"), selector("", CLUSTER_ROLE), namespace=""))
    assert await story.replicas(key("reader", CLUSTER_ROLE)) == {"member1": None, "member3": None}


async def test_one_policy_may_select_several_kinds(story: Story) -> None:
    await story.say(policy("p", on("member1"), selector(), selector("", CONFIG_MAP)))
    await story.say(deployment("web"), writing.template("web", CONFIG_MAP))
    assert await story.replicas(WEB) == {"member1": 1}
    assert await story.replicas(key("web", CONFIG_MAP)) == {"member1": None}


@pytest.mark.parametrize(
    "namespace", ["karmada-system", "karmada-cluster", "karmada-es-member1", "kube-system"]
)
async def test_what_is_the_control_planes_own_goes_nowhere(story: Story, namespace: str) -> None:
    manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token", "namespace": namespace}}
    await story.say(policy("everywhere", on("member1"), selector(kind=("v1", "Secret")), namespace=""))
    await story.say(specs.TemplateApplied(manifest=writing.raw(manifest)))
    assert await story.replicas(f"{namespace}/token-secret") == {}
    assert await story.told(decisions.BindingClaimed) == []
