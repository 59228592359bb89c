"""Preemption: a binding without capacity evicts bindings of lower priority, if that is enough."""

import pytest

from engine.deciders.preemption_victims import EXCLUSION_SECONDS
from events import decisions, keys, links, policies, preemption_decisions, shapes, specs
from events.json_values import Json
from tests.builders import manifests
from tests.builders.inputs import (
    applied,
    capacity,
    deleted,
    deployment,
    joined,
    key,
    policy,
    policy_deleted,
    priority_class,
    rebalancer,
    ref,
)
from tests.builders.manifests import AGGREGATED, DYNAMIC, on, selector
from tests.deciders.story import Story

MEMBERS = ("member1", "member2")
HIGH, LOW, OTHER = key("high"), key("low"), key("other")
PAUSE_S = 60


@pytest.fixture(autouse=True)
async def two_members(story: Story) -> None:
    """Two members, and three priority classes."""
    await story.submit(*(joined(name) for name in MEMBERS))
    await story.submit(*(capacity(name, 4) for name in MEMBERS))
    await story.submit(
        priority_class("high", 1000),
        priority_class("modest", 1000, preemptionPolicy="Never"),
        priority_class("middle", 500),
        priority_class("low", -1),
    )


def ranked(
    of: str, by: str, *clusters: str, scheduling: Json = DYNAMIC, scheduler: str = ""
) -> policies.PolicyApplied:
    """A policy for one Deployment, with the priority of a class."""
    priority: Json = {"priorityClassSource": "KubePriorityClass", "priorityClassName": by}
    placement = on(*(clusters or MEMBERS), scheduling=scheduling)
    return policy(of, placement, selector(of), schedulePriority=priority, schedulerName=scheduler)


async def fill(story: Story, *names: str, replicas: int = 8, by: str = "low") -> None:
    """Deployments that use all capacity, as the members then report it."""
    for name in names:
        await story.submit(ranked(name, by), deployment(name, replicas))
    await story.submit(*(capacity(name, 0) for name in MEMBERS))


async def victims(story: Story) -> list[tuple[str, str]]:
    """Return the chosen victims: binding and cluster."""
    return [(victim.key, victim.cluster) for decision in await chosen(story) for victim in decision.victims]


async def chosen(story: Story) -> list[preemption_decisions.PreemptionDecided]:
    return await story.recorded(preemption_decisions.PreemptionDecided, HIGH)


# --- capacity by eviction ---


async def test_lower_priority_binding_is_evicted(story: Story) -> None:
    await fill(story, "low")
    assert story.placed(LOW) == {"member1": 4, "member2": 4}
    await story.submit(ranked("high", "high"), deployment("high", 3))
    assert await victims(story) == [(LOW, "member1")]
    assert story.placed(LOW) == {"member2": 4}, "it shrinks: there is no room elsewhere"
    assert await story.replicas(LOW) == {"member2": 4}, "it leaves at once"
    assert story.placed(HIGH) == {}, "the room comes when the member reports it"
    await story.submit(capacity("member1", 4))
    await story.pass_s(2)
    assert story.placed(HIGH) == {"member1": 3}


async def test_preempted_binding_moves_where_capacity_exists(story: Story) -> None:
    await story.submit(joined("member3"), capacity("member3", 0))
    await story.submit(ranked("low", "low", *MEMBERS, "member3"), deployment("low", 8))
    await story.submit(*(capacity(name, 0) for name in MEMBERS))
    await story.submit(ranked("high", "high"), deployment("high", 3))
    await story.submit(capacity("member3", 4))
    await story.pass_s(2)
    assert story.placed(LOW) == {"member2": 4, "member3": 4}


async def test_eviction_names_its_preemptor_and_reserves_the_capacity(story: Story) -> None:
    await fill(story, "low")
    await story.submit(ranked("high", "high"), deployment("high", 3))
    (started,) = await story.recorded(decisions.EvictionStarted)
    assert (started.reason, started.by, started.purge_mode, started.held) == (
        "Preempted",
        HIGH,
        "Directly",
        True,
    )
    await story.submit(capacity("member1", 20))
    await story.pass_s(2)
    assert story.placed(LOW) == {"member2": 4}, "it does not take the room back"
    await story.report(LOW, "member2")
    assert len(story.binding(LOW).tasks) == 1, "however well it is elsewhere"
    await story.pass_s(EXCLUSION_SECONDS + 1)
    assert story.binding(LOW).tasks == ()
    assert story.placed(LOW) == {"member1": 4, "member2": 4}, "what was missing is placed once it may be"


async def test_rebalancer_spreads_the_victim_again_once_there_is_capacity(story: Story) -> None:
    await fill(story, "low")
    await story.submit(ranked("high", "high"), deployment("high", 3))
    await story.submit(capacity("member1", 4))
    await story.pass_s(2)
    await story.submit(deleted("high"), *(capacity(name, 6) for name in MEMBERS))
    await story.submit(rebalancer("again", ref("low")))
    assert story.placed(LOW) == {"member1": 3, "member2": 5}
    assert {eviction.reason for eviction in await story.recorded(decisions.EvictionFinished)} == {
        "RescheduleTriggered"
    }


async def test_victims_of_several_clusters_are_summed(story: Story) -> None:
    await fill(story, "low")
    await story.submit(ranked("high", "high"), deployment("high", 7))
    assert await victims(story) == [(LOW, "member1"), (LOW, "member2")]
    assert story.placed(LOW) == {}


async def test_aggregated_binding_preempts_in_one_cluster(story: Story) -> None:
    await fill(story, "low")
    await story.submit(ranked("high", "high", scheduling=AGGREGATED), deployment("high", 4))
    assert len(await victims(story)) == 1


# --- choice of victims ---


async def test_victims_are_the_lowest_priorities_and_no_more_than_needed(story: Story) -> None:
    await story.submit(ranked("middle", "middle", "member1"), deployment("middle", 2))
    await story.submit(ranked("low", "low", "member1"), deployment("low", 2))
    await story.submit(*(capacity(name, 0) for name in MEMBERS))
    await story.submit(ranked("high", "high"), deployment("high", 2))
    assert await victims(story) == [(LOW, "member1")]


async def test_sufficient_victim_is_preferred_to_smaller_ones_of_lower_priority(story: Story) -> None:
    """The example of Karmada's proposal: priorities 0 to 3 use 1, 2, 5 and 2 of ten units; 5 are requested."""
    await story.submit(capacity("member1", 10))
    sizes = {0: 1, 1: 2, 2: 5, 3: 2}
    await story.submit(*(priority_class(f"p{number}", number) for number in sizes))
    for number, size in sizes.items():
        await story.submit(
            ranked(f"w{number}", f"p{number}", "member1"), deployment(f"w{number}", 1, cpu=str(size))
        )
    await story.submit(*(capacity(name, 0) for name in MEMBERS))
    await story.submit(ranked("high", "high", "member1"), deployment("high", 1, cpu="5"))
    assert await victims(story) == [(key("w2"), "member1")]


async def test_no_victim_is_evicted_if_all_together_are_not_enough(story: Story) -> None:
    await fill(story, "low")
    await story.submit(ranked("high", "high"), deployment("high", 9))
    (decision,) = await chosen(story)
    assert (decision.victims, decision.reason) == ((), "NotEnough")
    assert await story.recorded(decisions.EvictionStarted) == []


@pytest.mark.parametrize("resource", ["a.example.com/gpu", "z.example.com/gpu"])
async def test_no_victim_is_evicted_if_another_resource_exists_nowhere(story: Story, resource: str) -> None:
    await fill(story, "low")
    requests = {"cpu": "1", resource: "1"}
    await story.submit(ranked("high", "high"))
    await story.submit(applied(manifests.deployment("high", 3, "default", requests=requests)))
    assert [decision.reason for decision in await chosen(story)] == ["NotEnough"]


async def test_victim_also_frees_pods(story: Story) -> None:
    await fill(story, "low")
    await story.submit(capacity("member1", 100, pods=1), capacity("member2", 100, pods=0))
    await story.submit(ranked("high", "high"), deployment("high", 3))
    (request,) = await story.recorded(preemption_decisions.CapacityWanted, HIGH)
    assert request.missing == 2
    assert await victims(story) == [(LOW, "member1")]


@pytest.mark.parametrize("by", ["high", "modest"])
async def test_equal_priority_is_not_preempted(story: Story, by: str) -> None:
    await fill(story, "other", by=by)
    await story.submit(ranked("high", "high"), deployment("high", 3))
    assert [decision.victims for decision in await chosen(story)] == [()]


async def test_binding_without_priority_counts_as_zero(story: Story) -> None:
    await story.submit(
        policy("p", on(*MEMBERS, scheduling=DYNAMIC), selector("plain")), deployment("plain", 8)
    )
    await story.submit(*(capacity(name, 0) for name in MEMBERS))
    await story.submit(ranked("low", "low"), deployment("low", 1))
    assert await story.recorded(decisions.EvictionStarted) == []
    await story.submit(ranked("high", "high"), deployment("high", 1))
    assert await victims(story) == [(key("plain"), "member1")]


async def test_class_that_never_preempts_requests_no_capacity(story: Story) -> None:
    await fill(story, "low")
    await story.submit(ranked("high", "modest"), deployment("high", 3))
    assert await story.recorded(preemption_decisions.CapacityWanted) == []


async def test_no_capacity_is_requested_without_priorities(story: Story) -> None:
    await story.submit(policy("p", on(*MEMBERS, scheduling=DYNAMIC)), deployment("a", 8))
    await story.submit(*(capacity(name, 0) for name in MEMBERS))
    await story.submit(deployment("b", 3))
    assert await story.recorded(links.CapacityRequested) == []


@pytest.mark.parametrize("is_foreign", [False, True])
async def test_bindings_that_nothing_places_again_are_not_victims(story: Story, *, is_foreign: bool) -> None:
    await fill(story, "low", "other")
    await story.submit(
        ranked("low", "low", scheduler="volcano")
        if is_foreign
        else specs.SuspensionWritten(template=ref("low"), scheduling=True)
    )
    await story.submit(ranked("high", "high"), deployment("high", 3))
    assert await victims(story) == [(OTHER, "member1")]
    assert story.placed(LOW) == {"member1": 4, "member2": 4}


async def test_suspended_and_zero_request_bindings_are_not_victims(story: Story) -> None:
    priority: Json = {"priorityClassSource": "KubePriorityClass", "priorityClassName": "low"}
    placement = on(*MEMBERS, scheduling=DYNAMIC)
    suspended = policy(
        "held", placement, selector("held"), schedulePriority=priority, suspension={"dispatching": True}
    )
    await story.submit(
        suspended, deployment("held", 4), ranked("free", "low"), deployment("free", 4, cpu="0")
    )
    await story.submit(*(capacity(name, 0) for name in MEMBERS))
    await story.submit(ranked("high", "high"), deployment("high", 1))
    assert [decision.victims for decision in await chosen(story)] == [()]


# --- retries and late messages ---


async def test_preemption_is_retried_after_a_pause_and_only_after_another_failure(story: Story) -> None:
    await fill(story, "low")
    await story.submit(ranked("high", "high"), deployment("high", 9))
    await story.submit(capacity("member1", 0))
    await story.pass_s(PAUSE_S - 1)
    assert [
        request.attempt for request in await story.recorded(preemption_decisions.CapacityWanted, HIGH)
    ] == [1]
    await story.pass_s(600)
    assert [
        request.attempt for request in await story.recorded(preemption_decisions.CapacityWanted, HIGH)
    ] == [1], "nothing happened"
    await story.submit(capacity("member1", 0))
    await story.pass_s(PAUSE_S)
    assert [
        request.attempt for request in await story.recorded(preemption_decisions.CapacityWanted, HIGH)
    ] == [1, 2]


async def test_preemption_is_repeated_if_the_capacity_is_never_reported(story: Story) -> None:
    await fill(story, "low")
    await story.submit(ranked("high", "high"), deployment("high", 3))
    await story.pass_s(PAUSE_S + 1)
    assert [
        request.attempt for request in await story.recorded(preemption_decisions.CapacityWanted, HIGH)
    ] == [1, 2]
    assert await victims(story) == [(LOW, "member1"), (LOW, "member2")]


async def test_late_smaller_or_equal_priority_preemption_request_is_ignored(story: Story) -> None:
    await fill(story, "low")

    def request(**fields: object) -> links.PreemptionRequested:
        defaults = {"cluster": "member1", "replicas": 4, "by": HIGH, "priority": 5, "until_ms": story.now_ms}
        return links.PreemptionRequested(**{"key": LOW, **defaults, **fields})  # pyright: ignore[reportArgumentType]

    await story.submit(
        request(until_ms=story.now_ms - 1),
        request(replicas=5),
        request(priority=-1),
        request(cluster="member3"),
        request(key=key("nobody")),
    )
    await story.submit(specs.SuspensionWritten(template=ref("low"), scheduling=True))
    await story.submit(request())
    await story.submit(specs.SuspensionWritten(template=ref("low"), scheduling=False))
    assert await story.recorded(decisions.EvictionStarted) == []
    await story.pass_ms(1)
    await story.submit(request(replicas=5), request(cluster="member2"))
    assert [eviction.cluster for eviction in await story.recorded(decisions.EvictionStarted)] == ["member2"]


async def test_deletion_permission_does_not_end_a_preemption(story: Story) -> None:
    await fill(story, "low")
    await story.submit(ranked("high", "high"), deployment("high", 3))
    await story.submit(specs.DeletionAllowed(template=ref("low"), cluster="member1"))
    assert await story.recorded(decisions.EvictionFinished) == []


async def test_offers_are_dropped_once_the_binding_may_not_preempt(story: Story) -> None:
    await fill(story, "low")
    await story.write(ranked("high", "high"), deployment("high", 3))
    while not await story.recorded(preemption_decisions.CapacityWanted):
        await story.worker.turn()
    await story.submit(policy_deleted("high"))
    assert await chosen(story) == []
    assert story.worker.folds[keys.shard_of(HIGH)].state.capacity_requests == {}
    await story.submit(ranked("high", "high"))
    assert [
        request.attempt for request in await story.recorded(preemption_decisions.CapacityWanted, HIGH)
    ] == [1, 1]
    assert await victims(story) == [(LOW, "member1")]


async def test_unrequested_offers_are_ignored(story: Story) -> None:
    await fill(story, "low")
    occupant = shapes.Occupant(key=LOW, cluster="member1", priority=-1, replicas=4, requests={"cpu": "1"})
    await story.submit(links.CapacityOffered(key=HIGH, number=3, shard=2, occupants=(occupant,)))
    assert await chosen(story) == []


async def test_restart_between_request_and_offers_changes_nothing(story: Story) -> None:
    await fill(story, "low")
    await story.write(ranked("high", "high"), deployment("high", 3))
    while not await story.recorded(preemption_decisions.CapacityWanted):
        await story.worker.turn()
    await story.restart()
    assert await victims(story) == [(LOW, "member1")]
