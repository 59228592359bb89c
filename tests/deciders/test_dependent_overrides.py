"""Policies with ``dependentOverrides``: not applied to any template before these override policies exist."""

import pytest

from events import decisions, policies, works
from tests.builders.inputs import deployment, joined, key, override, override_deleted, policy
from tests.builders.manifests import images, on, selector
from tests.deciders.story import Story

WEB = key("web")


@pytest.fixture(autouse=True)
async def two_members(story: Story) -> None:
    await story.submit(joined("member1"), joined("member2"))


def dependent(
    *needed: str, on_member: str = "member1", namespace: str = "default", activation: str = ""
) -> policies.PolicyApplied:
    """A policy that needs these override policies."""
    return policy(
        "p",
        on(on_member),
        namespace=namespace,
        dependentOverrides=list(needed),
        activationPreference=activation,
    )


async def refusals(story: Story) -> list[str]:
    return [refused.fault for refused in await story.recorded(decisions.ClaimRefused, WEB)]


async def test_policy_waits_for_all_its_overrides(story: Story) -> None:
    await story.submit(dependent("first", "second"), deployment("web"))
    await story.submit(override("first", images("v2")))
    assert await refusals(story) == [
        "OverridePolicy first does not exist",
        "OverridePolicy second does not exist",
    ]
    assert not await story.recorded(decisions.BindingDeclared)
    await story.submit(override("second", images("v3")))
    assert story.placed(WEB) == {"member1": 1}


async def test_first_work_has_the_overrides(story: Story) -> None:
    await story.submit(dependent("o"), deployment("web"))
    await story.submit(override("o", images("v2")))
    (work,) = await story.recorded(works.WorkApplied, "member1")
    assert [applied.name for applied in work.overrides] == ["o"]


async def test_override_of_another_namespace_or_kind_does_not_count(story: Story) -> None:
    await story.submit(
        override("o", images("v2"), namespace="other"), override("o", images("v2"), namespace="")
    )
    await story.submit(dependent("o"), deployment("web"))
    assert await refusals(story) == ["OverridePolicy o does not exist"]


async def test_cluster_policy_waits_for_a_cluster_override_policy(story: Story) -> None:
    await story.submit(dependent("o", namespace=""), deployment("web"), override("o", images("v2")))
    assert await refusals(story) == ["ClusterOverridePolicy o does not exist"]
    await story.submit(override("o", images("v2"), namespace=""))
    assert story.placed(WEB) == {"member1": 1}


async def test_claimed_template_keeps_its_placement_while_an_override_is_missing(story: Story) -> None:
    await story.submit(override("o", images("v2")), dependent("o"), deployment("web", 2))
    await story.submit(override_deleted("o"), dependent("o", on_member="member2"), deployment("web", 5))
    assert story.placed(WEB) == {"member1": 2}
    await story.submit(override("o", images("v2")))
    assert story.placed(WEB) == {"member2": 5}


async def test_lazy_policy_marks_an_existing_template_once_its_overrides_exist(story: Story) -> None:
    await story.submit(deployment("web"))
    await story.submit(dependent("o", activation="Lazy"))
    assert not await story.recorded(decisions.TemplateMarked)
    await story.submit(override("o", images("v2")))
    assert story.placed(WEB) == {}
    (marked,) = await story.recorded(decisions.TemplateMarked)
    assert marked.policy.name == "p"


async def test_other_policy_claims_a_template_that_a_lazy_policy_cannot_mark_yet(story: Story) -> None:
    await story.submit(deployment("web", 2))
    await story.submit(dependent("o", activation="Lazy"))
    await story.submit(policy("q", on("member2"), priority=9))
    await story.submit(override("o", images("v2")), deployment("web", 3))
    assert story.placed(WEB) == {"member2": 3}


async def test_lazy_policy_is_applied_once_its_overrides_exist(story: Story) -> None:
    await story.submit(dependent("o", activation="Lazy"), deployment("web"))
    await story.submit(override("o", images("v2")))
    assert story.placed(WEB) == {"member1": 1}


async def test_policy_that_no_longer_needs_an_override_is_applied(story: Story) -> None:
    await story.submit(dependent("o"), deployment("web"))
    await story.submit(dependent())
    assert story.placed(WEB) == {"member1": 1}


async def test_change_of_an_override_does_not_apply_the_policies_again(story: Story) -> None:
    await story.submit(override("o", images("v2")), dependent("o"), deployment("web"))
    claims = await story.recorded(decisions.BindingClaimed)
    await story.submit(override("o", images("v3")))
    assert await story.recorded(decisions.BindingClaimed) == claims


async def test_restart_keeps_policies_waiting(story: Story) -> None:
    await story.submit(dependent("o", "o"), deployment("web"))
    await story.restart()
    await story.submit(override("o", images("v2")))
    assert story.placed(WEB) == {"member1": 1}


async def test_all_policies_that_wait_for_an_override_are_applied(story: Story) -> None:
    for name in ("p", "q"):
        await story.submit(
            policy(name, on("member1"), selector(f"of-{name}"), dependentOverrides=["o"]),
            deployment(f"of-{name}"),
        )
    await story.submit(override("o", images("v2")))
    assert [story.placed(key(f"of-{name}")) for name in ("p", "q")] == [{"member1": 1}] * 2
