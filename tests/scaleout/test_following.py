"""A worker's log: records deleted before they were read are reported for their partition only."""

import asyncio
from contextlib import suppress

import pytest

from engine.log import port
from engine.log.kafka import partition_followers
from engine.log.kafka.address import Address
from events import records, topics
from events.records import Record
from tests.scaleout import logs, retention

pytestmark = pytest.mark.slow
WAIT_S = 120
CUT, OTHER = 3, 4


def spec_record(text: str, partition: int) -> Record:
    return records.record(topics.SPECS, partition, "key", {"ce_id": text}, text.encode())


async def test_records_deleted_before_they_were_read_are_reported_missing(kafka: str) -> None:
    address = await logs.prepared(kafka)
    log = partition_followers.FollowedLog(address)
    await log.open()
    await log.follow([(topics.SPECS, CUT), (topics.SPECS, OTHER)])
    await log.append([spec_record(f"before {partition}", partition) for partition in (CUT, OTHER)])
    running = asyncio.create_task(log.run())
    try:
        await level(log)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        # No consumer reads the next records; the client may have fetched the first of them.
        for name in ("fetched", "missed"):
            await log.append([spec_record(f"{name} {partition}", partition) for partition in (CUT, OTHER)])
        await retention.throw_away(kafka, address.topic(topics.SPECS), CUT)
        first = await begin(address)
        assert first > 1
        running = asyncio.create_task(log.run())
        await log.append([spec_record(f"after {partition}", partition) for partition in (CUT, OTHER)])

        async with asyncio.timeout(WAIT_S):
            while log.known((topics.SPECS, CUT)) <= first or log.known((topics.SPECS, OTHER)) <= first:
                await log.wait(log.moves())
        with pytest.raises(port.LogCutError, match=rf"specs/{CUT} no longer has offset {first - 1}"):
            await log.read(topics.SPECS, CUT, first - 1, 10)
        assert [each.value for each in await log.read(topics.SPECS, CUT, first, 10)] == [b"after 3"]
        found = await log.read(topics.SPECS, OTHER, 0, 10)
        assert [each.value for each in found] == [b"before 4", b"fetched 4", b"missed 4", b"after 4"]
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        await log.aclose()


async def level(log: partition_followers.FollowedLog) -> None:
    async with asyncio.timeout(WAIT_S):
        await log.level()


async def begin(address: Address) -> int:
    """Return the first offset of the partition that was cut."""
    other = partition_followers.FollowedLog(address)
    await other.open()
    try:
        await other.follow([(topics.SPECS, CUT)])
        return other.known((topics.SPECS, CUT))
    finally:
        await other.aclose()
