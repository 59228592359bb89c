"""The end of the log as seen by one replica after another one answered, with real brokers."""

import asyncio
import random

import pytest

from engine import shared_waits
from engine.log.kafka import numbered_log
from events import records, topics
from events.records import Record
from tests.scaleout import logs

PAIRS = 100


def _record(number: int) -> Record:
    return records.record(topics.SPECS, number % topics.SHARDS, "k", {"ce_id": str(number)}, b"{}")


@pytest.mark.kafka
@pytest.mark.slow
async def test_replica_includes_every_append_answered_by_another_replica(kafka: str) -> None:
    address = await logs.prepared(kafka)
    chance = random.Random("pairs")  # noqa: S311  # choices of a test
    async with numbered_log.opened(address) as first, numbered_log.opened(address) as other:
        for number in range(PAIRS):
            writer, reader = chance.sample((first, other), 2)
            (stored,) = await writer.append([_record(number)])
            newest = await asyncio.gather(*(reader.newest() for _ in range(chance.randrange(1, 4))))
            assert min(newest) >= stored.number
            assert reader.last_number() >= stored.number
            (read,) = await reader.read(stored.topic, stored.partition, stored.offset, 1)
            assert read == stored


async def test_one_query_answers_its_waiters_and_no_later_ones() -> None:
    queries = 0
    answering = asyncio.Event()

    async def ask() -> int:
        nonlocal queries
        queries += 1
        query = queries
        await answering.wait()
        return query

    question = shared_waits.SharedRequest(ask)
    first = asyncio.create_task(question.answer())
    for _ in range(3):
        await asyncio.sleep(0)
    late = [asyncio.create_task(question.answer()) for _ in range(100)]
    for _ in range(3):
        await asyncio.sleep(0)
    late[0].cancel()
    answering.set()

    assert await first == 1
    assert set(await asyncio.gather(*late[1:])) == {2}
    assert queries == 2
