"""Claims by policies as stories: precedence, preemption and release."""

import msgspec
import pytest

from events import decisions, specs, works
from events.json_values import Json
from tests.builders import inputs, manifests
from tests.builders.inputs import deployment, joined, key, policy
from tests.builders.manifests import CLUSTER_ROLE, CONFIG_MAP, on, selector
from tests.deciders.story import Story

WEB = key("web")
NGINX = {"app": "nginx"}


@pytest.fixture(autouse=True)
async def three_members(story: Story) -> None:
    await story.submit(*(joined(f"member{index}") for index in (1, 2, 3)))


def by_label(labels: dict[str, str]) -> Json:
    return selector(labelSelector={"matchLabels": labels})


async def claimed_by(story: Story, binding: str = WEB) -> list[str]:
    return [claim.policy.name for claim in await story.recorded(decisions.BindingClaimed, binding)]


async def test_first_example_of_the_guide_is_placed(story: Story) -> None:
    await story.submit(policy("example-policy", on("member1"), selector("nginx")))
    await story.submit(deployment("nginx"))
    assert await story.replicas(key("nginx")) == {"member1": 1}


@pytest.mark.parametrize("policy_comes_first", [True, False])
async def test_template_and_policy_may_be_created_in_either_order(
    story: Story, policy_comes_first: bool
) -> None:
    both = [policy("p", on("member1")), deployment("web", 2)]
    for event in both if policy_comes_first else reversed(both):
        await story.submit(event)
    assert story.placed(WEB) == {"member1": 2}


async def test_template_without_a_matching_policy_waits(story: Story) -> None:
    await story.submit(policy("p", on("member1"), selector("other")), deployment("web"))
    assert story.placed(WEB) == {}
    assert await story.recorded(decisions.BindingDeclared) == []


async def test_propagation_policy_outranks_every_cluster_propagation_policy(story: Story) -> None:
    everywhere = policy("everywhere", on("member1"), selector("web"), namespace="", priority=100)
    await story.submit(everywhere, policy("mine", on("member2"), priority=-5), deployment("web"))
    assert story.placed(WEB) == {"member2": 1}


async def test_policy_of_another_namespace_selects_nothing(story: Story) -> None:
    theirs = policy("theirs", on("member1"), namespace="theirs")
    reaching = policy("reaching", on("member1"), selector(namespace="default"), namespace="theirs")
    everywhere = policy("everywhere", on("member2"), namespace="")
    await story.submit(theirs, reaching, everywhere, deployment("web"))
    assert await claimed_by(story) == ["everywhere"]


async def test_highest_explicit_priority_wins_and_the_default_is_0(story: Story) -> None:
    await story.submit(
        policy("high", on("member1"), by_label(NGINX), priority=2),
        policy("low", on("member2"), by_label(NGINX), priority=1),
        policy("default", on("member3"), by_label(NGINX)),
        policy("named", on("member3"), selector("web")),
        deployment("web", labels=NGINX),
    )
    assert story.placed(WEB) == {"member1": 1}


async def test_name_outranks_labels_and_labels_outrank_kind(story: Story) -> None:
    by_kind = policy("a-kind", on("member1"))
    by_labels = policy("b-labels", on("member2"), by_label(NGINX))
    by_name = policy("c-name", on("member3"), selector("web"))
    await story.submit(by_kind, by_labels, by_name)
    await story.submit(
        deployment("web", labels=NGINX), deployment("labelled", labels=NGINX), deployment("plain")
    )
    assert await claimed_by(story) == ["c-name"]
    assert await claimed_by(story, key("labelled")) == ["b-labels"]
    assert await claimed_by(story, key("plain")) == ["a-kind"]


async def test_equal_policies_are_ordered_by_name(story: Story) -> None:
    await story.submit(
        policy("propagation-b-higher-alphabetical", on("member1"), selector("web"), priority=3),
        policy("propagation-a-lower-alphabetical", on("member2"), selector("web"), priority=3),
        deployment("web"),
    )
    assert story.placed(WEB) == {"member2": 1}


async def test_selector_supports_label_expressions(story: Story) -> None:
    expressions = {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["db"]}]}
    await story.submit(policy("p", on("member1"), selector(labelSelector=expressions)))
    await story.submit(deployment("web", labels=NGINX), deployment("db", labels={"app": "db"}))
    assert story.placed(WEB) == {"member1": 1}
    assert story.placed(key("db")) == {}


async def test_template_is_claimed_when_its_labels_match(story: Story) -> None:
    await story.submit(policy("p", on("member1"), by_label(NGINX)), deployment("web"))
    assert story.placed(WEB) == {}
    await story.submit(deployment("web", labels=NGINX))
    assert story.placed(WEB) == {"member1": 1}


async def test_better_policy_does_not_take_over_without_preemption(story: Story) -> None:
    await story.submit(policy("first", on("member1")), deployment("web"))
    await story.submit(policy("better", on("member2"), selector("web"), priority=9, preemption="Never"))
    assert await claimed_by(story) == ["first"]


async def test_preempting_policy_takes_over_with_a_higher_priority(story: Story) -> None:
    await story.submit(policy("first", on("member1"), priority=1), deployment("web"))
    await story.submit(policy("equal", on("member2"), selector("web"), priority=1, preemption="Always"))
    assert story.placed(WEB) == {"member1": 1}
    await story.submit(policy("higher", on("member3"), selector("web"), priority=2, preemption="Always"))
    assert await claimed_by(story) == ["first", "higher"]
    assert await story.replicas(WEB) == {"member3": 1}


async def test_propagation_policy_preempts_cluster_propagation_policy_and_not_vice_versa(
    story: Story,
) -> None:
    everywhere = policy("everywhere", on("member1"), namespace="", priority=5)
    await story.submit(everywhere, deployment("web"))
    await story.submit(policy("mine", on("member2"), selector("web"), priority=-1, preemption="Always"))
    assert await claimed_by(story) == ["everywhere", "mine"]
    grasping = policy(
        "grasping", on("member3"), selector("web"), namespace="", priority=99, preemption="Always"
    )
    await story.submit(grasping)
    assert story.placed(WEB) == {"member2": 1}


async def test_changed_policy_reschedules_its_claims(story: Story) -> None:
    await story.submit(policy("p", on("member1")), deployment("web", 2))
    await story.submit(policy("p", on("member2")))
    assert await story.replicas(WEB) == {"member2": 2}
    assert [decision.trigger for decision in await story.recorded(decisions.ScheduleDecided)] == [
        "PlacementChanged"
    ] * 2


async def test_priority_change_of_a_policy_moves_nothing(story: Story) -> None:
    await story.submit(policy("p", on("member1")), deployment("web", 2))
    await story.submit(policy("p", on("member1"), priority=7))
    assert len(await story.recorded(decisions.ScheduleDecided)) == 1


async def test_deleted_policy_leaves_its_workloads_running(story: Story) -> None:
    await story.submit(policy("p", on("member1")), deployment("web", 2))
    await story.submit(inputs.policy_deleted("p"))
    (released,) = await story.recorded(decisions.BindingReleased)
    assert released.reason == "PolicyDeleted"
    assert await story.replicas(WEB) == {"member1": 2}
    await story.submit(inputs.deleted("web"))
    assert await story.replicas(WEB) == {}


async def test_other_policy_takes_over_from_a_deleted_one(story: Story) -> None:
    await story.submit(policy("a", on("member1")), policy("b", on("member2")), deployment("web", 2))
    await story.submit(inputs.policy_deleted("a"))
    assert await claimed_by(story) == ["a", "b"]
    assert await story.replicas(WEB) == {"member2": 2}


async def test_recreated_policy_claims_its_released_workloads(story: Story) -> None:
    await story.submit(policy("p", on("member1")), deployment("web", 2))
    await story.submit(inputs.policy_deleted("p"))
    await story.submit(deployment("web", 5))
    assert await story.replicas(WEB) == {"member1": 2}
    await story.submit(policy("p", on("member1")))
    assert await story.replicas(WEB) == {"member1": 5}


async def test_policy_that_no_longer_selects_releases_its_claim(story: Story) -> None:
    await story.submit(policy("p", on("member1"), selector("web")), deployment("web", 2))
    await story.submit(policy("p", on("member1"), selector("other")))
    (released,) = await story.recorded(decisions.BindingReleased)
    assert released.reason == "PolicySelectsNoMore"
    assert await story.replicas(WEB) == {"member1": 2}


async def test_label_change_of_a_template_moves_it_when_its_policy_changes(story: Story) -> None:
    blue = policy("blue", on("member1"), by_label({"c": "blue"}))
    await story.submit(blue, policy("red", on("member2")))
    await story.submit(deployment("web", labels={"c": "blue"}))
    await story.submit(deployment("web", 2, labels={"c": "red"}))
    assert await claimed_by(story) == ["blue"]
    assert await story.replicas(WEB) == {"member1": 1}
    await story.submit(blue)
    assert await claimed_by(story) == ["blue", "red"]
    assert await story.replicas(WEB) == {"member2": 2}


async def test_label_change_of_a_template_moves_it_when_its_policy_is_deleted(story: Story) -> None:
    await story.submit(policy("blue", on("member1"), by_label({"c": "blue"})), policy("red", on("member2")))
    await story.submit(deployment("web", labels={"c": "blue"}))
    await story.submit(deployment("web", labels={"c": "red"}), inputs.policy_deleted("blue"))
    assert await story.replicas(WEB) == {"member2": 1}


async def test_deleted_template_is_withdrawn_everywhere(story: Story) -> None:
    await story.submit(policy("p", on("member1", "member2")), deployment("web", 2))
    await story.submit(inputs.deleted("web"))
    assert await story.replicas(WEB) == {}
    assert not story.is_known(WEB)
    assert [withdrawn.key for withdrawn in await story.recorded(decisions.BindingWithdrawn)] == [WEB]


async def test_deleted_template_keeps_running_if_its_policy_preserves_resources(story: Story) -> None:
    await story.submit(policy("p", on("member1"), preserveResourcesOnDeletion=True), deployment("web"))
    await story.submit(inputs.deleted("web"))
    (removed,) = await story.recorded(works.WorkRemoved)
    assert removed.preserved


async def test_preservation_holds_even_after_the_policy_is_deleted(story: Story) -> None:
    await story.submit(policy("p", on("member1"), preserveResourcesOnDeletion=True), deployment("web"))
    await story.submit(inputs.policy_deleted("p"))
    await story.submit(inputs.deleted("web"))
    (removed,) = await story.recorded(works.WorkRemoved)
    assert removed.preserved


async def test_cluster_propagation_policy_may_select_one_namespace(story: Story) -> None:
    theirs = policy("theirs", on("member1"), selector(namespace="theirs"), namespace="")
    own = policy("z-mine", on("member2"), selector(namespace="default"), namespace="")
    await story.submit(theirs, own, deployment("web"))
    assert await claimed_by(story) == ["z-mine"]


@pytest.mark.parametrize("is_one_step", [True, False])
async def test_recreated_template_gets_a_new_binding_and_new_works(story: Story, is_one_step: bool) -> None:
    await story.submit(policy("p", on("member1")), deployment("web", 2))
    await story.write(inputs.deleted("web"))
    if not is_one_step:
        await story.settle()
    await story.submit(deployment("web", 3))
    first, second = await story.recorded(decisions.BindingDeclared)
    assert first.uid != second.uid
    assert len(await story.recorded(decisions.BindingWithdrawn, WEB)) == 1
    assert await story.replicas(WEB) == {}, "the former work may still run"
    await story.restart()
    await story.confirm_removal(WEB, "member1")
    assert await story.replicas(WEB) == {"member1": 3}


async def test_recreated_template_runs_at_once_in_clusters_without_the_former_one(story: Story) -> None:
    await story.submit(policy("p", on("member1")), deployment("web", 2))
    await story.submit(policy("p", on("member1", "member2", scheduling=manifests.DUPLICATED)))
    await story.submit(policy("p", on("member1")), inputs.deleted("web"))
    await story.submit(policy("p", on("member1", "member3", scheduling=manifests.DUPLICATED)))
    await story.submit(deployment("web", 3))
    assert await story.replicas(WEB) == {"member3": 3}
    await story.confirm_removal(WEB, "member1")
    assert await story.replicas(WEB) == {"member1": 3, "member3": 3}


async def test_workload_that_returns_to_a_cluster_is_not_waited_for(story: Story) -> None:
    await story.submit(policy("p", on("member1")), deployment("web", 2))
    await story.submit(policy("p", on("member2")))
    await story.submit(policy("p", on("member1")))
    assert await story.replicas(WEB) == {"member1": 2}


async def test_workload_keeps_running_if_its_template_is_orphaned_and_recreated_at_once(story: Story) -> None:
    await story.submit(policy("p", on("member1")), deployment("web", 2))
    orphaned = msgspec.structs.replace(inputs.deleted("web"), orphans=True)
    await story.submit(orphaned, deployment("web", 3))
    (removed,) = await story.recorded(works.WorkRemoved)
    assert removed.preserved


@pytest.mark.parametrize("others", [["red"], []])
async def test_recreated_template_leaves_a_policy_that_does_not_select_it(
    story: Story, others: list[str]
) -> None:
    await story.submit(policy("blue", on("member1"), by_label({"c": "blue"})))
    await story.submit(*(policy(name, on("member2"), by_label({"c": name})) for name in others))
    await story.submit(deployment("web", labels={"c": "blue"}))
    await story.submit(inputs.deleted("web"), deployment("web", 2, labels={"c": "red"}))
    assert await claimed_by(story) == ["blue", *others]
    assert await story.replicas(WEB) == dict.fromkeys(("member2" for _ in others), 2)


async def test_recreated_template_is_claimed_by_the_best_policy(story: Story) -> None:
    await story.submit(policy("p", on("member1")), deployment("web"))
    await story.submit(policy("better", on("member2"), priority=1))
    assert await claimed_by(story) == ["p"]
    await story.submit(inputs.deleted("web"), deployment("web"))
    assert await claimed_by(story) == ["p", "better"]


async def test_recreated_template_without_a_policy_is_withdrawn(story: Story) -> None:
    await story.submit(policy("p", on("member1")), deployment("web"))
    await story.submit(inputs.policy_deleted("p"))
    await story.submit(inputs.deleted("web"), deployment("web"))
    assert await story.replicas(WEB) == {}


async def test_cluster_scoped_kinds_are_placed_by_cluster_propagation_policies(story: Story) -> None:
    role = inputs.template("reader", CLUSTER_ROLE)
    await story.submit(policy("mine", on("member1"), selector("reader", CLUSTER_ROLE)), role)
    assert story.placed(key("reader", CLUSTER_ROLE)) == {}
    await story.submit(policy("all", on("member1", "member3"), selector("", CLUSTER_ROLE), namespace=""))
    assert await story.replicas(key("reader", CLUSTER_ROLE)) == {"member1": None, "member3": None}


async def test_one_policy_may_select_several_kinds(story: Story) -> None:
    await story.submit(policy("p", on("member1"), selector(), selector("", CONFIG_MAP)))
    await story.submit(deployment("web"), inputs.template("web", CONFIG_MAP))
    assert await story.replicas(WEB) == {"member1": 1}
    assert await story.replicas(key("web", CONFIG_MAP)) == {"member1": None}


@pytest.mark.parametrize(
    "namespace", ["karmada-system", "karmada-cluster", "karmada-es-member1", "kube-system"]
)
async def test_control_plane_objects_are_not_propagated(story: Story, namespace: str) -> None:
    manifest = manifests.manifest("v1", "Secret", "token", namespace)
    await story.submit(policy("everywhere", on("member1"), selector(kind=("v1", "Secret")), namespace=""))
    await story.submit(specs.TemplateApplied(manifest=manifests.raw(manifest)))
    assert await story.replicas(f"{namespace}/token-secret") == {}
    assert await story.recorded(decisions.BindingClaimed) == []
