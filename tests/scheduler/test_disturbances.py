"""A scheduler with its observer under disturbances: a lapsed lease, unreadable objects, repeated failures."""

import asyncio

import pytest

from engine.bench.karmada_api import binding, cluster, divided
from engine.log import local
from engine.scheduler import election
from engine.scheduler.decider import UNSCHEDULABLE_MS, Decider
from tests.scheduler.api import Api, serving
from tests.scheduler.scheduling import (
    HOUR_MS,
    LEASE_PLACE,
    NAME,
    dynamic,
    karmada,
    observed,
    placed,
    scheduled,
    scheduling,
    writes,
)
from tests.waiting import until_async

pytestmark = pytest.mark.virtual_time


async def test_decision_left_during_a_short_lapse_of_the_lease_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each renewal comes a moment after the lease has lapsed, so writes that are repeated then are left."""
    monkeypatch.setattr(election, "_LEADS_S", 0.25)
    monkeypatch.setattr(election, "_RETRY_S", 0.3)
    api, names = karmada(), [f"web{number}" for number in range(20)]
    async with serving(api) as access, scheduling(access, local.MemoryLog()):
        await until_async(lambda: ("leases", *LEASE_PLACE, "") in api.writes)
        api.faults = ["500"] * 100
        for name in names:
            api.put("resourcebindings", binding(name, 4, divided("member1", "member2")))
        await until_async(lambda: all(scheduled(api, name) == "Success" for name in names), 60)
    assert set(writes(api).values()) == {2}


async def test_unreadable_cluster_stops_nothing() -> None:
    api = karmada()
    api.put("clusters", cluster("odd", cpu="1e400"))
    async with serving(api) as access, scheduling(access, local.MemoryLog()):
        api.put("resourcebindings", binding("web", 4, divided("member1", "member2")))
        await until_async(lambda: scheduled(api, "web") == "Success")
        api.change("resourcebindings", "default", "web-deployment", replicas=6)
        await until_async(lambda: placed(api, "web") == {"member1": 3, "member2": 3})


async def test_binding_that_becomes_unreadable_stops_nothing() -> None:
    api = karmada()
    async with serving(api) as access, scheduling(access, local.MemoryLog()):
        await until_async(lambda: ("leases", *LEASE_PLACE, "") in api.writes)
        api.faults = ["500"]
        api.put("resourcebindings", binding("web", 4, divided("member1", "member2")))
        await until_async(lambda: not api.faults)
        stored = api.objects["resourcebindings", "default", "web-deployment"]
        api.put("resourcebindings", {**stored, "status": {"conditions": [{"type": "Scheduled"}]}})
        await asyncio.sleep(0.5)
        api.put("resourcebindings", binding("api", 2, divided("member1")))
        await until_async(lambda: scheduled(api, "api") == "Success")
        api.put("resourcebindings", {**stored, "status": {}})
        await until_async(lambda: scheduled(api, "web") == "Success")


def test_binding_that_fails_again_and_again_has_one_retry() -> None:
    api, decider = Api(), Decider(NAME)
    api.put("clusters", cluster("member1", cpu="0"))
    api.put("resourcebindings", binding("web", 4, dynamic()))
    for document in (*api.of_kind("clusters"), *api.of_kind("resourcebindings")):
        decider.take(observed(document))
    for changes in range(10):
        decider.take(observed(api.put("clusters", cluster("member1", "0", number=str(changes)))))
        decider.decide(HOUR_MS, changes, 10)
    assert decider.due_ms() == 9 + UNSCHEDULABLE_MS
    decider.decide(HOUR_MS, 9 + UNSCHEDULABLE_MS, 10)
    assert decider.due_ms() == 9 + 2 * UNSCHEDULABLE_MS
