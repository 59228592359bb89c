"""Scheduling priority: from the PriorityClass of a policy to the order of decisions."""

import pytest

from events import decisions, keys, policies
from events.json_values import Json
from tests.builders.inputs import (
    capacity,
    deleted,
    deployment,
    joined,
    key,
    policy,
    policy_deleted,
    priority_class,
    template,
)
from tests.builders.manifests import AGGREGATED, DUPLICATED, PRIORITY_CLASS, on, selector
from tests.deciders.story import Story

WEB = key("web")


@pytest.fixture(autouse=True)
async def one_member(story: Story) -> None:
    await story.submit(joined("member1"))


def ranked(
    name: str = "p", of: str = "", source: str = "KubePriorityClass", by: str = "high", activation: str = ""
) -> policies.PolicyApplied:
    """A policy that places Deployments, or one, with the priority of a class."""
    priority: Json = {"priorityClassSource": source}
    if by:
        priority["priorityClassName"] = by
    selectors = [selector(of)] if of else []
    return policy(
        name,
        on("member1", scheduling=DUPLICATED),
        *selectors,
        schedulePriority=priority,
        activationPreference=activation,
    )


def rank(story: Story, binding_key: str = WEB) -> tuple[int, str, str] | None:
    """Return priority, preemption policy and fault of a binding."""
    binding_rank = story.binding(binding_key).rank
    if binding_rank is None:
        return None
    return story.binding(binding_key).priority, binding_rank.preemption_policy, binding_rank.fault


async def refusals(story: Story) -> list[str]:
    """Return why the policy was not applied, once for each decision."""
    return [refused.fault for refused in await story.recorded(decisions.ClaimRefused, WEB)]


# --- choice of the class ---


async def test_class_named_by_the_policy_gives_the_priority(story: Story) -> None:
    await story.submit(priority_class("high", 1000), ranked(), deployment("web"))
    assert rank(story) == (1000, "PreemptLowerPriority", "")


async def test_policy_without_schedule_priority_gives_no_priority(story: Story) -> None:
    await story.submit(
        priority_class("high", 1000, globalDefault=True), policy("p", on("member1")), deployment("web")
    )
    assert rank(story) is None
    assert await story.recorded(decisions.PriorityResolved) == []


async def test_class_of_the_pods_gives_the_priority_if_the_policy_requests_it(story: Story) -> None:
    await story.submit(priority_class("high", 1000), ranked(source="PodPriorityClass", by=""))
    await story.submit(deployment("web", priorityClassName="high"), deployment("other"))
    assert rank(story) == (1000, "PreemptLowerPriority", "")
    assert rank(story, key("other")) == (0, "Never", "")


async def test_lowest_of_several_default_classes_is_the_default(story: Story) -> None:
    await story.submit(
        priority_class("a", 7, globalDefault=True),
        priority_class("b", 3, globalDefault=True, preemptionPolicy="Never"),
    )
    await story.submit(ranked(source="PodPriorityClass", by=""), deployment("web"))
    assert rank(story) == (3, "Never", "")


async def test_system_classes_exist(story: Story) -> None:
    await story.submit(ranked(by="system-cluster-critical"), deployment("web"))
    assert rank(story) == (2_000_000_000, "PreemptLowerPriority", "")


# --- missing classes ---


async def test_policy_whose_class_is_missing_applies_once_the_class_is_created(story: Story) -> None:
    await story.submit(ranked(), deployment("web"))
    assert await refusals(story) == ["PriorityClass high does not exist"]
    await story.submit(priority_class("other", 5))
    await story.restart()
    assert not await story.recorded(decisions.BindingDeclared, WEB)
    await story.submit(priority_class("high", 1000))
    assert rank(story) == (1000, "PreemptLowerPriority", "")
    assert story.placed(WEB) == {"member1": 1}


async def test_lazy_policy_whose_class_is_missing_applies_once_the_class_is_created(story: Story) -> None:
    await story.submit(ranked(activation="Lazy"), deployment("web"))
    await story.submit(priority_class("high", 1000))
    assert story.placed(WEB) == {"member1": 1}


async def test_binding_stays_as_it_is_while_the_class_of_a_changed_policy_is_missing(story: Story) -> None:
    await story.submit(priority_class("low", 1))
    await story.submit(ranked(by="low"), deployment("web", 2))
    await story.submit(ranked())
    await story.submit(deployment("web", 3))
    assert story.placed(WEB) == {"member1": 2}
    assert await refusals(story) == ["PriorityClass high does not exist"]
    await story.submit(priority_class("high", 1000))
    assert story.placed(WEB) == {"member1": 3}
    assert rank(story) == (1000, "PreemptLowerPriority", "")


async def test_deleted_template_is_forgotten_although_its_policy_was_refused(story: Story) -> None:
    await story.submit(ranked(), deployment("web"))
    await story.submit(deleted("web"))
    assert not story.is_known(WEB)


async def test_unsupported_class_source_is_reported(story: Story) -> None:
    await story.submit(ranked(source="FederatedPriorityClass"), deployment("web"))
    assert await refusals(story) == ["priorityClassSource FederatedPriorityClass is not supported"]


@pytest.mark.parametrize(
    "fields", [{"value": "much"}, {"value": 2**31}, {"value": 1, "preemptionPolicy": "Sometimes"}]
)
async def test_invalid_class_is_ignored(story: Story, fields: Json) -> None:
    await story.submit(template("high", PRIORITY_CLASS, fields=fields), ranked(), deployment("web"))
    assert await refusals(story) == ["PriorityClass high does not exist"]


# --- changes ---


async def test_changed_class_applies_with_the_next_write_of_the_template(story: Story) -> None:
    await story.submit(priority_class("high", 1000), ranked(), deployment("web"))
    await story.submit(priority_class("high", 2000))
    assert story.binding(WEB).priority == 1000
    await story.submit(deployment("web", 2))
    assert story.binding(WEB).priority == 2000


async def test_deleted_class_keeps_the_priority_and_the_placement(story: Story) -> None:
    await story.submit(priority_class("high", 1000))
    await story.submit(ranked(), deployment("web"))
    await story.submit(deleted("high", PRIORITY_CLASS))
    assert await story.recorded(policies.PriorityClassGone) == [policies.PriorityClassGone(name="high")]
    assert story.binding(WEB).priority == 1000
    await story.submit(deployment("web", 2))
    assert (story.binding(WEB).priority, story.placed(WEB)) == (1000, {"member1": 1})
    assert await refusals(story) == ["PriorityClass high does not exist"]


async def test_foreign_class_events_are_corrected_from_the_template(story: Story) -> None:
    await story.submit(priority_class("high", 1000))
    await story.submit(
        policies.PriorityClassDeclared(name="high", value=5),
        policies.PriorityClassDeclared(name="none", value=5),
    )
    await story.submit(ranked(), deployment("web"))
    assert story.binding(WEB).priority == 1000
    assert [declared.value for declared in await story.recorded(policies.PriorityClassDeclared, "high")] == [
        1000,
        5,
        1000,
    ]
    assert len(await story.recorded(policies.PriorityClassGone, "none")) == 1


async def test_removed_schedule_priority_ends_the_priority_and_deleted_policy_keeps_it(
    story: Story,
) -> None:
    await story.submit(priority_class("high", 1000), ranked(), deployment("web"))
    await story.submit(policy_deleted("p"))
    assert story.binding(WEB).priority == 1000, "what it placed stays as it is"
    await story.submit(policy("p", on("member1")))
    assert rank(story) is None


@pytest.mark.parametrize(
    "bad",
    [
        policies.PriorityClassDeclared(name="High", value=1),
        policies.PriorityClassDeclared(name="high", value=2**31),
        policies.PriorityClassGone(name=""),
    ],
)
async def test_malformed_class_is_refused(story: Story, bad: policies.PriorityClassDeclared) -> None:
    story.refused = 1
    await story.submit(bad)


# --- order ---


async def decided(story: Story) -> list[str]:
    """Return the Deployments of one shard in the order of their decisions."""
    return [decision.key for decision in await story.recorded(decisions.ScheduleDecided)]


def of_one_shard(count: int) -> list[str]:
    """Return names of Deployments whose keys belong to one shard."""
    names = (f"web-{number:03}" for number in range(10_000))
    chosen = [name for name in names if keys.shard_of(key(name)) == 0]
    return chosen[:count]


async def test_higher_priority_is_decided_first(story: Story) -> None:
    first, second, third, last = of_one_shard(4)
    await story.submit(
        priority_class("high", 1000),
        priority_class("low", -5),
        policy("all", on("member1")),
        ranked("low", first, by="low"),
        ranked("high", last),
    )
    await story.submit(*map(deployment, (first, second, third, last)))
    assert await decided(story) == [key(last), key(second), key(third), key(first)]


async def test_higher_priority_overtakes_waiting_bindings(story: Story) -> None:
    *many, last = of_one_shard(250)
    await story.submit(priority_class("high", 1000), policy("all", on("member1")), ranked("high", last))
    await story.write(*map(deployment, many))
    await story.worker.turn()
    assert len(await decided(story)) == 200, "a step is bounded"
    await story.submit(deployment(last))
    order = await decided(story)
    assert order[200] == key(last)
    assert order[:200] + order[201:] == sorted(map(key, many))


@pytest.mark.parametrize(("by", "reason"), [("high", "Unschedulable"), ("", "SchedulerError")])
async def test_lack_of_capacity_is_unschedulable_for_a_binding_with_a_priority(
    story: Story, by: str, reason: str
) -> None:
    one_cluster = [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]
    placed = on("member1", scheduling=AGGREGATED, spreadConstraints=one_cluster)
    ranking: Json = {"priorityClassSource": "KubePriorityClass", "priorityClassName": by}
    written = policy("p", placed, schedulePriority=ranking) if by else policy("p", placed)
    await story.submit(capacity("member1", cpu=1), priority_class("high", 1000))
    await story.submit(written, deployment("web", 3))
    assert {failed.reason for failed in await story.recorded(decisions.ScheduleFailed, WEB)} == {reason}
