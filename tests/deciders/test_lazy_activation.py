"""Lazy activation: a policy change applies to a template with the template's next write."""

import pytest

from events import decisions, policies, shapes
from tests.builders.inputs import deleted, deployment, joined, key, policy, policy_deleted, tainted
from tests.builders.manifests import on, selector
from tests.deciders.story import Story

WEB = key("web")


@pytest.fixture(autouse=True)
async def two_members(story: Story) -> None:
    await story.submit(*(joined(name) for name in ("member1", "member2")))


async def test_lazy_policy_waits_for_a_write_of_existing_templates(story: Story) -> None:
    await story.submit(deployment("web", 2))
    await story.submit(policy("p", on("member1"), activationPreference="Lazy"))
    assert story.placed(WEB) == {}
    await story.submit(deployment("web", 3))
    assert story.placed(WEB) == {"member1": 3}


async def test_new_template_is_placed_at_once_by_a_lazy_policy(story: Story) -> None:
    await story.submit(policy("p", on("member1"), activationPreference="Lazy"))
    await story.submit(deployment("web", 2))
    assert story.placed(WEB) == {"member1": 2}


async def test_changed_lazy_policy_moves_nothing_until_the_template_changes(story: Story) -> None:
    await story.submit(policy("p", on("member1"), activationPreference="Lazy"), deployment("web", 2))
    await story.submit(policy("p", on("member2"), activationPreference="Lazy"))
    assert story.placed(WEB) == {"member1": 2}
    await story.restart()
    assert story.placed(WEB) == {"member1": 2}
    await story.submit(deployment("web", 2, labels={"release": "2"}))
    assert story.placed(WEB) == {"member2": 2}


async def test_policy_that_is_no_longer_lazy_applies_at_once(story: Story) -> None:
    await story.submit(policy("p", on("member1"), activationPreference="Lazy"), deployment("web", 2))
    await story.submit(policy("p", on("member2"), activationPreference="Lazy"))
    await story.submit(policy("p", on("member2")))
    assert story.placed(WEB) == {"member2": 2}


async def test_lazy_activation_does_not_delay_taints(story: Story) -> None:
    await story.submit(policy("p", {}, activationPreference="Lazy"), deployment("web", 2))
    await story.submit(tainted("member1", "NoExecute"))
    assert story.placed(WEB) == {"member2": 2}


async def test_lazy_policy_preempts_when_the_template_changes(story: Story) -> None:
    await story.submit(policy("p", on("member1")), deployment("web", 2))
    await story.submit(
        policy(
            "q", on("member2"), selector("web"), priority=5, preemption="Always", activationPreference="Lazy"
        )
    )
    assert story.placed(WEB) == {"member1": 2}
    (marked,) = await story.recorded(decisions.TemplateMarked)
    assert (marked.policy.name, marked.preempted and marked.preempted.name) == ("q", "p")
    await story.submit(deployment("web", 3))
    assert story.placed(WEB) == {"member2": 3}
    assert [claim.preempted for claim in await story.recorded(decisions.BindingClaimed)] == [None, None]


async def test_template_shows_its_claim_again_if_the_lazy_policy_is_deleted_first(story: Story) -> None:
    await story.submit(policy("p", on("member1")), deployment("web", 2))
    await story.submit(
        policy(
            "q", on("member2"), selector("web"), priority=5, preemption="Always", activationPreference="Lazy"
        )
    )
    await story.submit(policy_deleted("q"))
    shown = [mark.policy.name for mark in await story.recorded(decisions.TemplateMarked)]
    assert shown == ["q", "p"]
    await story.submit(deployment("web", 3))
    assert story.placed(WEB) == {"member1": 3}


async def test_immediately_preempting_policy_names_the_preempted_one(story: Story) -> None:
    await story.submit(policy("p", on("member1")), deployment("web", 2))
    await story.submit(policy("q", on("member2"), selector("web"), priority=5, preemption="Always"))
    claims = await story.recorded(decisions.BindingClaimed)
    assert [claim.preempted and claim.preempted.name for claim in claims] == [None, "p"]


@pytest.mark.parametrize("activation", ["", "Lazy"])
@pytest.mark.parametrize("end", [policy_deleted("p"), policy("p", on("member1"), selector("other"))])
async def test_lazy_policy_claims_at_once_when_the_claim_of_another_policy_ends(
    story: Story, end: shapes.Event, activation: str
) -> None:
    """As in Karmada, where the end of a claim changes the labels of the template."""
    former = policy("p", on("member1"), priority=5, activationPreference=activation)
    await story.submit(former, deployment("web", 2))
    await story.submit(policy("q", on("member2"), activationPreference="Lazy"))
    assert story.placed(WEB) == {"member1": 2}
    await story.submit(end)
    assert story.placed(WEB) == {"member2": 2}
    assert await story.recorded(decisions.BindingReleased) == []


@pytest.mark.parametrize("first", ["deletion", "lazy policy"])
async def test_released_workload_waits_for_a_write_before_a_lazy_policy_places_it(
    story: Story, first: str
) -> None:
    """A lazy policy that is created after the release, or has marked the template before it, does not place it."""
    lazy = policy(
        "q", on("member2"), selector("web"), priority=5, preemption="Always", activationPreference="Lazy"
    )
    await story.submit(policy("p", on("member1")), deployment("web", 2))
    for change in (policy_deleted("p"), lazy) if first == "deletion" else (lazy, policy_deleted("p")):
        await story.submit(change)
    assert await story.replicas(WEB) == {"member1": 2}
    await story.submit(deployment("web", 3))
    assert story.placed(WEB) == {"member2": 3}


async def test_eviction_follows_the_placement_that_the_lazy_policy_had_for_the_template(story: Story) -> None:
    """As in Karmada: the binding keeps its placement, also for decisions that other changes cause."""
    await story.submit(joined("member3"))
    both = on("member1", "member2")
    await story.submit(policy("p", both, activationPreference="Lazy"), deployment("web", 2))
    await story.submit(policy("p", on("member3"), activationPreference="Lazy"))
    await story.submit(tainted("member1", "NoExecute"))
    assert story.placed(WEB) == {"member2": 2}
    await story.submit(deployment("web", 2, labels={"release": "2"}))
    assert story.placed(WEB) == {"member3": 2}


@pytest.mark.parametrize("holder", ["p", ""])
async def test_refusal_of_a_deleted_policy_does_not_make_lazy_policies_apply_at_once(
    story: Story, holder: str
) -> None:
    missing = {"priorityClassSource": "KubePriorityClass", "priorityClassName": "missing"}
    if holder:
        await story.submit(policy(holder, on("member1"), activationPreference="Lazy"))
    await story.submit(deployment("web", 2))
    placed = story.placed(WEB)
    await story.submit(
        policy("q", on("member1"), selector("web"), priority=5, preemption="Always", schedulePriority=missing)
    )
    assert story.binding(WEB).refused is not None
    await story.submit(policy_deleted("q"))
    await story.submit(policy("p", on("member2"), activationPreference="Lazy"))
    assert story.placed(WEB) == placed
    await story.submit(deployment("web", 3))
    assert story.placed(WEB) == {"member2": 3}


# --- templates without a claim ---


def lazy(name: str, cluster: str) -> policies.PolicyApplied:
    return policy(name, on(cluster), activationPreference="Lazy")


async def marks(story: Story) -> list[str]:
    return [mark.policy.name for mark in await story.recorded(decisions.TemplateMarked)]


async def test_other_policies_do_not_claim_a_template_that_a_lazy_policy_has_marked(story: Story) -> None:
    """As in Karmada, where the first policy claims the template even if it is lazy."""
    await story.submit(deployment("web", 2))
    await story.submit(lazy("p", "member1"))
    assert await marks(story) == ["p"]
    await story.restart()
    await story.submit(policy("q", on("member2"), priority=9))
    assert story.placed(WEB) == {}
    await story.submit(deployment("web", 3))
    assert story.placed(WEB) == {"member1": 3}
    assert await marks(story) == ["p"]


async def test_mark_waits_for_a_write_even_if_its_policy_is_lazy_no_longer(story: Story) -> None:
    """As in Karmada, which looks for bindings of a changed policy, and the marked template has none."""
    await story.submit(deployment("web", 2))
    await story.submit(lazy("p", "member1"))
    await story.submit(policy("p", on("member1")))
    assert story.placed(WEB) == {}
    await story.restart()
    await story.submit(policy("p", on("member2")), policy("q", on("member1"), priority=9))
    assert (story.placed(WEB), await marks(story)) == ({}, ["p"])
    await story.submit(deployment("web", 3))
    assert story.placed(WEB) == {"member2": 3}


async def test_preempted_template_stays_in_place_until_a_write_even_if_the_policy_is_lazy_no_longer(
    story: Story,
) -> None:
    await story.submit(policy("p", on("member1")), deployment("web", 2))
    for preference in ("Lazy", ""):
        await story.submit(
            policy(
                "q",
                on("member2"),
                selector("web"),
                priority=5,
                preemption="Always",
                activationPreference=preference,
            )
        )
    assert story.placed(WEB) == {"member1": 2}
    await story.submit(deployment("web", 3))
    assert story.placed(WEB) == {"member2": 3}


async def test_policy_preempts_a_lazy_one_that_has_only_marked_the_template(story: Story) -> None:
    await story.submit(deployment("web", 2))
    await story.submit(lazy("p", "member1"))
    await story.submit(policy("q", on("member2"), selector("web"), priority=9, preemption="Always"))
    assert story.placed(WEB) == {"member2": 2}


@pytest.mark.parametrize("end", [policy_deleted("p"), policy("p", on("member1"), selector("other"))])
async def test_end_of_the_lazy_policy_leaves_its_template_to_the_others(
    story: Story, end: shapes.Event
) -> None:
    await story.submit(deployment("web", 2))
    await story.submit(lazy("p", "member1"))
    await story.submit(policy("q", on("member2")))
    assert story.placed(WEB) == {}
    await story.submit(end)
    assert story.placed(WEB) == {"member2": 2}


async def test_mark_ends_with_its_policy_and_another_lazy_policy_marks_the_template(story: Story) -> None:
    await story.submit(deployment("web", 2))
    await story.submit(lazy("p", "member1"))
    await story.submit(policy_deleted("p"))
    (released,) = await story.recorded(decisions.BindingReleased)
    assert (released.policy.name, released.reason) == ("p", "PolicyDeleted")
    await story.submit(lazy("q", "member2"))
    assert (story.placed(WEB), await marks(story)) == ({}, ["p", "q"])
    await story.submit(deployment("web", 3))
    assert story.placed(WEB) == {"member2": 3}


async def test_mark_ends_if_the_template_changes_so_that_the_lazy_policy_no_longer_selects_it(
    story: Story,
) -> None:
    await story.submit(deployment("web", 2, labels={"team": "a"}))
    labelled = {**selector(), "labelSelector": {"matchLabels": {"team": "a"}}}
    await story.submit(policy("p", on("member1"), labelled, activationPreference="Lazy"))
    await story.submit(policy("q", on("member2")))
    await story.submit(deployment("web", 2, labels={"team": "b"}))
    assert story.placed(WEB) == {"member2": 2}


async def test_new_template_of_the_same_name_is_placed_by_the_lazy_policy(story: Story) -> None:
    await story.submit(deployment("web", 2))
    await story.submit(lazy("p", "member1"))
    await story.submit(deleted("web"))
    assert not story.is_known(WEB)
    await story.submit(deployment("web", 2))
    assert story.placed(WEB) == {"member1": 2}
