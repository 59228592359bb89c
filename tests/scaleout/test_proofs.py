"""A log on Kafka is verified by processes of their own, and its signed checkpoints are kept in a topic."""

import asyncio

import pytest

from engine.log.kafka import numbered_log
from engine.process import checkpoint_signing, log_locations, proofs
from engine.process.replica import clock_ms
from engine.proof import checkpoints
from tests.builders.inputs import deployment, joined, policy
from tests.builders.manifests import on
from tests.scaleout import logs
from tests.scaleout.owners import owner, settle, written

pytestmark = pytest.mark.kafka


async def test_log_on_kafka_is_proved_and_contains_its_checkpoints(kafka: str) -> None:
    address = await logs.prepared(kafka)
    where = f"kafka://{kafka}/{address.prefix.removesuffix('.')}"
    private, _ = checkpoints.new_keys()
    key = checkpoints.private_key(private)
    async with numbered_log.opened(address) as replica, owner(address) as (working, log):
        await settle(working)
        await replica.append([written(joined("member1"), "m"), written(policy("p", on("member1")), "p")])
        for number in range(3):
            await replica.append([written(deployment(f"web{number}", 2), f"d{number}")])
            await log.wait_current()
            await settle(working)
            await replica.wait_current()
            async with checkpoint_signing.sink(where) as sink:
                assert await checkpoint_signing.extend(replica, sink, key, clock_ms())
        async with checkpoint_signing.sink(where) as sink:
            stored = checkpoints.read(await sink.lines(), key.public_key())
        assert stored[-1].number == replica.last_number()
        assert await checkpoints.differing(replica, stored) == []
        await working.store_snapshot()
        location = log_locations.parse(where)
        report = await asyncio.to_thread(proofs.verify, location, processes=2)
        assert (report.findings, report.notes) == ([], [])
        assert report.steps > 0
        since = await asyncio.to_thread(proofs.verify, location, processes=2, since_snapshot=True)
        assert (since.findings, since.notes) == ([], [])
        assert since.steps < report.steps
