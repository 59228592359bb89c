"""The scheduler beside a control plane whose etcd is restored from a backup: resourceVersions begin again."""

import asyncio

import pytest

from engine.bench.karmada_api import binding, cluster, divided
from tests.scheduler.scheduling import karmada, placed, scheduled, scheduling_through_relay, writes
from tests.waiting import until_async

pytestmark = pytest.mark.virtual_time


async def test_decision_that_a_restored_backup_lacks_is_made_again() -> None:
    api = karmada()
    async with scheduling_through_relay(api) as relay:
        api.put("resourcebindings", binding("old", 4, divided("member1", "member2")))
        restore = api.restorer()
        api.put("resourcebindings", binding("lost", 4, divided("member1", "member2")))
        await until_async(lambda: {scheduled(api, name) for name in ("old", "lost")} == {"Success"})
        await until_async(lambda: len(api.of_kind("events")) == 4)
        relay.stop()
        restore()
        assert not placed(api, "old")
        relay.start()
        await until_async(lambda: scheduled(api, "old") == "Success")
        api.put("resourcebindings", binding("lost", 4, divided("member1")))
        await until_async(lambda: scheduled(api, "lost") == "Success")
    assert placed(api, "lost") == {"member1": 4}
    assert writes(api) == {"old-deployment": 4, "lost-deployment": 4}


async def test_versions_that_only_the_writer_has_seen_reveal_a_restore() -> None:
    """The watches are late, so the followers have seen earlier versions than the responses to the writes had."""
    api = karmada()
    async with scheduling_through_relay(api) as relay:
        api.put("resourcebindings", binding("web", 4, divided("member1", "member2")))
        restore = api.restorer()
        api.is_silent = True
        await until_async(lambda: scheduled(api, "web") == "Success")
        await until_async(lambda: len(api.of_kind("events")) == 2)
        relay.stop()
        restore()
        for _ in range(2):
            api.put("clusters", cluster("member1"))
        api.is_silent = False
        relay.start()
        await until_async(lambda: scheduled(api, "web") == "Success")
    assert placed(api, "web") == {"member1": 2, "member2": 2}


async def test_conflict_with_a_restored_backup_is_not_repeated_until_it_is_observed() -> None:
    api, refusals = karmada(), ["409"] * 50
    async with scheduling_through_relay(api) as relay:
        api.put("resourcebindings", binding("web", 4, divided("member1", "member2")))
        restore = api.restorer()
        api.change("resourcebindings", "default", "web-deployment", replicas=6)
        api.faults = ["500", *refusals]
        await until_async(lambda: api.faults == refusals)
        restore()
        await asyncio.sleep(1)
        assert len(api.faults) >= len(refusals) - 1
        api.faults = []
        relay.stop()
        relay.start()
        await until_async(lambda: scheduled(api, "web") == "Success")
    assert placed(api, "web") == {"member1": 2, "member2": 2}
