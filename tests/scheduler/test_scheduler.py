"""The scheduler beside a Karmada: what it decides is in its log first, and in the API after at most two writes."""

import asyncio
import random
import time

import pytest

from engine.agent.kubeconfigs import Access
from engine.bench.karmada_api import binding, cluster, divided
from engine.log import local
from engine.scheduler.decider import UNSCHEDULABLE_MS, Decider
from tests.relay import relayed
from tests.scheduler.api import Api, serving
from tests.scheduler.scheduling import (
    HOUR_MS,
    LEASE_PLACE,
    NAME,
    decided,
    dynamic,
    karmada,
    observed,
    placed,
    scheduled,
    scheduling,
    status,
    writes,
)
from tests.waiting import until_async

pytestmark = pytest.mark.virtual_time

PARTITION_S = 40
"""Longer than the client waits for a response, and than a lease lasts."""


async def test_binding_is_decided_and_written_with_two_writes() -> None:
    api, log = karmada(), local.MemoryLog()
    api.put("resourcebindings", binding("other", 3, divided("member1"), "default-scheduler"))
    async with serving(api) as access, scheduling(access, log):
        api.put("resourcebindings", binding("web", 4, divided("member1", "member2")))
        await until_async(lambda: scheduled(api, "web") == "Success")
        await until_async(lambda: len(api.of_kind("events")) == 2)
    assert placed(api, "web") == {"member1": 2, "member2": 2}
    written = api.objects["resourcebindings", "default", "web-deployment"]
    assert written["status"]["schedulerObservedGeneration"] == written["metadata"]["generation"] == 2
    assert written["status"]["lastScheduledTime"].endswith("Z")
    assert (
        '"clusterNames":["member1","member2"]'
        in written["metadata"]["annotations"]["policy.karmada.io/applied-placement"]
    )
    assert writes(api) == {"web-deployment": 2}
    assert placed(api, "other") == {}
    (decision,) = await decided(log)
    assert (decision.trigger, decision.clusters, decision.generation) == (
        "PlacementChanged",
        placed(api, "web"),
        1,
    )
    assert {event["message"] for event in api.of_kind("events")} == {
        "Binding has been scheduled successfully. Result: {member1:2, member2:2}"
    }
    assert {event["involvedObject"]["kind"] for event in api.of_kind("events")} == {
        "Deployment",
        "ResourceBinding",
    }


async def test_affinity_group_in_use_is_written_with_the_status() -> None:
    api = karmada()
    groups = [
        {"affinityName": name, "clusterNames": [cluster]}
        for name, cluster in (("first", "nowhere"), ("second", "member1"))
    ]
    placement = {"clusterAffinities": groups, "replicaScheduling": divided()["replicaScheduling"]}
    async with serving(api) as access, scheduling(access, local.MemoryLog()):
        api.put("resourcebindings", binding("web", 4, placement))
        await until_async(lambda: scheduled(api, "web") == "Success")
    assert placed(api, "web") == {"member1": 4}
    assert status(api, "web")["schedulerObservingAffinityName"] == "second"
    assert writes(api) == {"web-deployment": 2}


async def test_writes_are_limited_to_a_rate() -> None:
    """Half a second of unused writes may come at once; the others take the rest of the time at least."""
    api, count, per_second = karmada(), 15, 20
    async with serving(api) as access, scheduling(access, local.MemoryLog(), per_second=per_second):
        await until_async(lambda: ("leases", *LEASE_PLACE, "") in api.writes)
        start_s = time.monotonic()
        for number in range(count):
            api.put("resourcebindings", binding(f"web{number}", 4, divided("member1")))
        await until_async(lambda: all(scheduled(api, f"web{number}") == "Success" for number in range(count)))
        assert time.monotonic() - start_s >= 2 * count / per_second - 0.5 - 1 / per_second
    assert set(writes(api).values()) == {2}


async def test_changes_are_followed_until_nothing_is_due() -> None:
    api, log = karmada(), local.MemoryLog()
    async with serving(api) as access, scheduling(access, log):
        api.put("resourcebindings", binding("web", 4, divided("member1", "member2")))
        await until_async(lambda: scheduled(api, "web") == "Success")
        api.change("resourcebindings", "default", "web-deployment", replicas=6)
        await until_async(lambda: placed(api, "web") == {"member1": 3, "member2": 3})
        await until_async(lambda: status(api, "web")["schedulerObservedGeneration"] == 4)
        api.change("resourcebindings", "default", "web-deployment", placement=divided("nowhere"))
        await until_async(lambda: scheduled(api, "web") == "NoClusterFit")
        assert placed(api, "web") == {}
        await asyncio.sleep(0.3)
    assert writes(api)["web-deployment"] == 6
    assert [decision.reason for decision in await decided(log)] == ["Success", "Success", "NoClusterFit"]


async def test_eviction_follows_the_placement_of_the_binding_and_not_a_newer_one_of_its_policy() -> None:
    """Under a lazy policy Karmada leaves a binding its placement until the template changes."""
    api, log = karmada(), local.MemoryLog()
    api.put("clusters", cluster("member3"))
    newer = {"placement": divided("member3"), "activationPreference": "Lazy", "schedulerName": "reballast"}
    async with serving(api) as access, scheduling(access, log):
        api.put("resourcebindings", binding("web", 4, divided("member1", "member2")))
        await until_async(lambda: scheduled(api, "web") == "Success")
        api.put("propagationpolicies", {"metadata": {"name": "p", "namespace": "default"}, "spec": newer})
        api.change(
            "resourcebindings",
            "default",
            "web-deployment",
            clusters=[{"name": "member2", "replicas": 2}],
            gracefulEvictionTasks=[
                {"fromCluster": "member1", "reason": "TaintUntolerated", "producer": "TaintManager"}
            ],
        )
        await until_async(lambda: placed(api, "web") == {"member2": 4})


async def test_binding_is_decided_again_when_its_cluster_changes_labels() -> None:
    api, log = karmada(), local.MemoryLog()
    duplicated = {"clusterAffinity": {"labelSelector": {"matchLabels": {"tier": "gold"}}}}
    api.put("clusters", cluster("member3", tier="gold"))
    async with serving(api) as access, scheduling(access, log):
        api.put(
            "resourcebindings",
            binding("web", 2, duplicated | {"replicaScheduling": {"replicaSchedulingType": "Duplicated"}}),
        )
        await until_async(lambda: placed(api, "web") == {"member3": 2})
        api.put("clusters", cluster("member2", tier="gold"))
        await until_async(lambda: placed(api, "web") == {"member2": 2, "member3": 2})


@pytest.mark.parametrize("fault", ["lost", "cut", "500", "429", "409", "403"])
@pytest.mark.parametrize("write", [0, 1])
async def test_fault_of_a_write_is_repaired_and_nothing_is_written_twice(fault: str, write: int) -> None:
    api, log = karmada(), local.MemoryLog()
    async with serving(api) as access, scheduling(access, log) as scheduler:
        await until_async(lambda: ("leases", *LEASE_PLACE, "") in api.writes)
        api.faults = [""] * write + [fault]
        api.put("resourcebindings", binding("web", 4, divided("member1", "member2")))
        await until_async(lambda: scheduled(api, "web") == "Success")
        await asyncio.sleep(0.1)
        assert scheduler.decisions == 1
    assert placed(api, "web") == {"member1": 2, "member2": 2}
    assert writes(api) == {"web-deployment": 2}


def test_retry_follows_no_correction_of_the_clock() -> None:
    api, decider = Api(), Decider(NAME)
    api.put("clusters", cluster("member1", cpu="0"))
    api.put("resourcebindings", binding("web", 4, dynamic()))
    for document in (*api.of_kind("clusters"), *api.of_kind("resourcebindings")):
        decider.take(observed(document))
    (failed,) = decider.decide(HOUR_MS, 0, 10)
    assert failed.reason == "Unschedulable"
    assert decider.due_ms() == UNSCHEDULABLE_MS
    assert decider.decide(0, UNSCHEDULABLE_MS - 1, 10) == []
    assert decider.due_ms() == UNSCHEDULABLE_MS
    decider.decide(0, UNSCHEDULABLE_MS, 10)
    assert decider.due_ms() == 2 * UNSCHEDULABLE_MS


@pytest.mark.parametrize("stopped_after", [0, 1])
async def test_decision_in_the_log_is_written_by_the_next_run(stopped_after: int) -> None:
    api, log = karmada(), local.MemoryLog()
    async with serving(api) as access:
        async with scheduling(access, log):
            await until_async(lambda: ("leases", *LEASE_PLACE, "") in api.writes)
            api.faults = [""] * stopped_after + ["cut"] * 1_000
            api.put("resourcebindings", binding("web", 4, divided("member1", "member2")))
            async with asyncio.timeout(20):
                while not await decided(log) or len(writes(api)) < stopped_after:  # noqa: ASYNC110  # as above
                    await asyncio.sleep(0.01)
        api.faults = []
        async with scheduling(access, log):
            await until_async(lambda: scheduled(api, "web") == "Success")
    assert len(await decided(log)) == 1
    assert writes(api) == {"web-deployment": 2}


async def test_binding_changed_by_others_meanwhile_is_decided_again() -> None:
    api, log = karmada(), local.MemoryLog()
    async with serving(api) as access, scheduling(access, log):
        await until_async(lambda: ("leases", *LEASE_PLACE, "") in api.writes)
        api.faults = ["500", "500"]
        api.put("resourcebindings", binding("web", 4, divided("member1", "member2")))
        await until_async(lambda: len(api.faults) < 2)
        api.change("resourcebindings", "default", "web-deployment", replicas=8)
        await until_async(lambda: placed(api, "web") == {"member1": 4, "member2": 4})
        await until_async(lambda: scheduled(api, "web") == "Success")
    assert writes(api) == {"web-deployment": 2}


async def test_only_one_of_two_schedulers_writes_and_the_other_takes_over() -> None:
    api, first, second = karmada(), local.MemoryLog(), local.MemoryLog()
    async with serving(api) as access:
        async with scheduling(access, first, "a"):
            await until_async(lambda: ("leases", *LEASE_PLACE, "") in api.writes)
            async with scheduling(access, second, "b") as standby:
                for number in range(20):
                    api.put("resourcebindings", binding(f"web{number}", 4, divided("member1", "member2")))
                await until_async(lambda: all(scheduled(api, f"web{number}") for number in range(20)))
                assert standby.decisions == 0
        async with scheduling(access, second, "b"):
            api.put("resourcebindings", binding("late", 4, divided("member1", "member2")))
            await until_async(lambda: scheduled(api, "late") == "Success")
    assert set(writes(api).values()) == {2}
    assert [decision.name for decision in await decided(second)] == ["late-deployment"]


@pytest.mark.parametrize("seed", range(20))
async def test_every_decision_is_written_once_under_random_faults(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  # an example, not a secret
    api, log = karmada(), local.MemoryLog()
    halves = [f"web{number}" for number in range(6)], [f"api{number}" for number in range(6)]
    async with serving(api) as access:
        for names in halves:
            async with scheduling(access, log):
                await until_async(lambda: ("leases", *LEASE_PLACE, "") in api.writes)
                api.faults = [chance.choice(["", "", "lost", "cut", "500", "409"]) for _ in range(30)]
                for name in names:
                    api.put("resourcebindings", binding(name, 4, divided("member1", "member2")))
                    await asyncio.sleep(chance.random() / 50)
        api.faults = []
        async with scheduling(access, log):
            await until_async(
                lambda: all(scheduled(api, name) == "Success" for half in halves for name in half)
            )
    assert set(writes(api).values()) == {2}
    assert all(placed(api, name) == {"member1": 2, "member2": 2} for half in halves for name in half)


@pytest.mark.slow
async def test_partitioned_leader_writes_nothing_and_its_successor_continues() -> None:
    """Nothing passes to one of two schedulers for a while; nothing is written twice when it comes back."""
    api = karmada()
    names = [f"web{number}" for number in range(20)]
    async with (
        serving(api) as access,
        relayed(access.server) as relay,
        scheduling(Access(server=relay.url), local.MemoryLog(), "cut-off"),
    ):
        api.put("resourcebindings", binding("first", 2, divided("member1")))
        await until_async(lambda: scheduled(api, "first") == "Success")
        relay.passing.clear()
        async with scheduling(access, local.MemoryLog(), "successor"):
            ended_s = time.monotonic() + PARTITION_S
            for name in names:
                api.put("resourcebindings", binding(name, 2, divided("member1", "member2")))
                await asyncio.sleep(0.5)
            await until_async(lambda: all(scheduled(api, name) == "Success" for name in names), PARTITION_S)
            await asyncio.sleep(ended_s - time.monotonic())
            relay.passing.set()
            await asyncio.sleep(2)
            (lease,) = api.of_kind("leases")
            assert lease["spec"]["holderIdentity"] == "successor"
    assert set(writes(api).values()) == {2}
