"""A takeover continues from the newest snapshot: the new owner reads only the tail."""

import asyncio
from typing import Final

import pytest

from engine.log import port
from engine.log.kafka import clients, numbered_log
from engine.proof import verification
from events import records, topics
from tests.builders.inputs import deployment, joined, policy
from tests.builders.manifests import on
from tests.scaleout import logs, retention
from tests.scaleout.owners import owner, settle, written

pytestmark = pytest.mark.slow
COUNT: Final = 300


async def test_next_owner_reads_only_records_since_the_snapshot_and_decides_the_same(kafka: str) -> None:
    address = await logs.prepared(kafka)
    async with numbered_log.opened(address) as replica:
        async with owner(address) as (first, log):
            await settle(first)
            await replica.append([written(joined("member1"), "m"), written(policy("p", on("member1")), "p")])
            await replica.append([written(deployment(f"web{n}", 2), f"d{n}") for n in range(COUNT)])
            await log.wait_current()
            await settle(first)
            await first.store_snapshot()
            late = [written(deployment(f"late{n}", 2), f"l{n}") for n in range(10)]
            await replica.append(late)
            await log.wait_current()
            await settle(first)
            known = {
                key: binding.clusters for fold in first.folds for key, binding in fold.state.bindings.items()
            }

        async with owner(address) as (second, tail):
            await second.turn()
            assert {
                key: binding.clusters for fold in second.folds for key, binding in fold.state.bindings.items()
            } == known
            # Each late input wrote itself, a step and at most four decisions; the first ones are not read
            # again.
            assert len(known) == COUNT + 10
            assert tail.count < COUNT
        await replica.wait_current()
        assert (await verification.verify(replica)).is_clean


async def test_released_shard_is_no_longer_followed_and_does_not_disturb_the_others(kafka: str) -> None:
    address = await logs.prepared(kafka)
    async with logs.owned(address) as (shards, log):
        await shards.own([0, 1])
        await log.append([spec_record(shard) for shard in (0, 1)])
        await log.wait_current()
        assert {slot for slot in log.ends() if slot[0] == topics.SPECS} == {
            (topics.SPECS, 0),
            (topics.SPECS, 1),
        }

        await shards.release([0])

        await log.append([spec_record(shard) for shard in (0, 1)])
        await log.wait_current()
        assert {slot: end for slot, end in log.ends().items() if slot[0] == topics.SPECS} == {
            (topics.SPECS, 1): 2
        }


async def test_owner_that_takes_a_shard_back_reads_no_records_that_were_deleted_meanwhile(kafka: str) -> None:
    address = await logs.prepared(kafka)
    async with logs.owned(address) as (shards, log):
        await shards.own([0])
        await log.append([spec_record(0)])
        await log.wait_current()
        assert len(await log.read(topics.SPECS, 0, 0, 10)) == 1
        await shards.release([0])
        await retention.delete_records(kafka, address.topic(topics.SPECS), 0)

        await shards.own([0])

        with pytest.raises(port.LogCutError, match="specs/0 no longer has offset 0"):
            await log.read(topics.SPECS, 0, 0, 10)


def spec_record(shard: int) -> records.Record:
    return records.record(topics.SPECS, shard, "key", {"ce_id": "spec"}, b"spec")


async def test_cancelled_takeover_stops_the_producers_that_have_started(
    kafka: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = await logs.prepared(kafka)
    start, stop = clients.start, clients.stop
    has_started = asyncio.Event()
    started: list[clients.Producer] = []
    stopped: list[clients.Producer] = []

    async def start_one(producer: clients.Producer) -> clients.Producer:
        if started:
            try:
                await asyncio.Event().wait()
            finally:
                await stop(producer)
        started.append(producer)
        await start(producer)
        has_started.set()
        return producer

    async def stop_one(producer: clients.Producer) -> None:
        await stop(producer)
        stopped.append(producer)

    async with logs.owned(address) as (shards, _):
        monkeypatch.setattr(clients, "start", start_one)
        monkeypatch.setattr(clients, "stop", stop_one)
        taking = asyncio.create_task(shards.own([0, 1]))
        await has_started.wait()
        await asyncio.sleep(0)
        taking.cancel()
        await asyncio.wait([taking])
        assert taking.cancelled()
    assert started[0] in stopped
