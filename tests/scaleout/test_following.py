"""A worker's log: records deleted before they were read are reported for their partition only."""

import asyncio
import os
from contextlib import suppress

import pytest

from engine.log import port
from engine.log.kafka import clients, partition_followers
from engine.log.kafka.address import Address
from events import limits, records, topics
from events.records import Record
from tests.scaleout import logs, retention

pytestmark = pytest.mark.slow
WAIT_S = 120
CUT, OTHER = 3, 4


def spec_record(text: str, partition: int) -> Record:
    return records.record(topics.SPECS, partition, "key", {"ce_id": text}, text.encode())


def large_record(number: int) -> Record:
    """Return one of several records that no client fetches in one request."""
    value = os.urandom(limits.RECORD_BYTES_MAX)  # bytes that do not compress
    return records.record(topics.SPECS, CUT, "key", {"ce_id": f"large {number}"}, value)


async def test_records_deleted_before_they_were_read_are_reported_missing(kafka: str) -> None:
    address = await logs.prepared(kafka)
    log = partition_followers.FollowedLog(address)
    await log.open()
    await log.follow([(topics.SPECS, CUT), (topics.SPECS, OTHER)])
    await log.append([spec_record(f"before {partition}", partition) for partition in (CUT, OTHER)])
    running = asyncio.create_task(log.run())
    try:
        await wait_current(log)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        # No consumer reads the next records. The client may have fetched some of them ahead, but not all.
        await log.append([spec_record("next 4", OTHER)])
        for number in range(clients.FETCH_BYTES // limits.RECORD_BYTES_MAX + 1):
            await log.append([large_record(number)])
        await retention.delete_records(kafka, address.topic(topics.SPECS), CUT)
        first = await begin(address)
        assert first > 1
        running = asyncio.create_task(log.run())
        await log.append([spec_record(f"after {partition}", partition) for partition in (CUT, OTHER)])

        rest = [b"before 4", b"next 4", b"after 4"]
        async with asyncio.timeout(WAIT_S):
            while log.known_end((topics.SPECS, CUT)) <= first or log.known_end((topics.SPECS, OTHER)) < len(
                rest
            ):
                await log.wait(log.change_count())
        with pytest.raises(port.LogCutError, match=rf"specs/{CUT} no longer has offset {first - 1}"):
            await log.read(topics.SPECS, CUT, first - 1, 10)
        assert [record.value for record in await log.read(topics.SPECS, CUT, first, 10)] == [b"after 3"]
        assert [record.value for record in await log.read(topics.SPECS, OTHER, 0, 10)] == rest
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        await log.aclose()


async def wait_current(log: partition_followers.FollowedLog) -> None:
    async with asyncio.timeout(WAIT_S):
        await log.wait_current()


async def begin(address: Address) -> int:
    """Return the first offset of the partition that was cut."""
    other = partition_followers.FollowedLog(address)
    await other.open()
    try:
        await other.follow([(topics.SPECS, CUT)])
        return other.known_end((topics.SPECS, CUT))
    finally:
        await other.aclose()
