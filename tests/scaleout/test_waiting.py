"""A hidden partition of real brokers delays its effects, and nothing else."""

# aiokafka has annotations, but no py.typed marker for type checkers.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import pytest
from aiokafka.errors import KafkaConnectionError

from engine.log.kafka import appends, clients, numbered_log, sequence
from engine.log.kafka.address import Address
from engine.log.kafka.partition_followers import FollowedLog
from engine.log.kafka.sequence import Extent, Extents
from events import topics
from events.records import Record, StoredRecord
from tests.brokers import clients as plain
from tests.scaleout import logs
from tests.scaleout.step_records import foreign_input, output, step

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
SHARD: Final = 3
HELD_S: Final = 2.5
WAIT_S: Final = 120
UNHELD_S: Final = 30.0
"""Shorter than brokers keep a transaction open, which would delay what waits for it."""


@pytest.fixture
async def address(kafka: str) -> Address:
    return await logs.prepared(kafka)


@asynccontextmanager
async def open_transaction(address: Address, topic: str, partition: int) -> AsyncGenerator[None]:
    """Hold a foreign transaction open: brokers hide the records of the partition behind it."""
    producer = clients.producer(address, address.topic("somebody"))
    await producer.start()
    try:
        await producer.begin_transaction()
        await producer.send_and_wait(address.topic(topic), b"{}", partition=partition)
        yield
        await producer.abort_transaction()
    finally:
        await clients.stop(producer)


@asynccontextmanager
async def owner(address: Address) -> AsyncGenerator[clients.Producer]:
    producer = clients.producer(address, address.topic(f"shard-{SHARD}"))
    await producer.start()
    try:
        yield producer
    finally:
        await clients.stop(producer)


async def order(log: numbered_log.KafkaLog, count: int) -> list[StoredRecord]:
    """Return the records in order, once there are ``count``."""
    async with asyncio.timeout(WAIT_S):
        while len(records := await log.read_all(0, 1_000)) < count:
            await log.wait(log.change_count())
    return records


async def test_effects_wait_for_a_hidden_step(address: Address) -> None:
    async with numbered_log.opened(address) as log, owner(address) as producer:
        async with open_transaction(address, topics.DECISIONS, SHARD):
            batch = [
                step(SHARD, 1),
                output(topics.LINKS, 5, SHARD, 1, 1),
                output(topics.WORKS, 0, SHARD, 1, 2),
            ]
            await appends.commit(producer, address, batch)
            async with asyncio.timeout(UNHELD_S):
                await log.append([foreign_input(topics.SPECS, 1)])
            await asyncio.sleep(HELD_S)
            async with asyncio.timeout(UNHELD_S):
                await log.append([foreign_input(topics.SPECS, 2)])
            assert [record.topic for record in await log.read_all(0, 100)] == ["specs", "specs"]

        records = await order(log, 5)
    assert [record.topic for record in records][2:] == ["decisions", "links", "works"]


async def test_step_waits_for_a_hidden_input(address: Address) -> None:
    async with numbered_log.opened(address) as log, owner(address) as producer:
        async with open_transaction(address, topics.LINKS, SHARD):
            link = output(topics.LINKS, SHARD, SHARD, 1)
            (offset, _) = await appends.commit(producer, address, [link, step(SHARD, 1)])
            await appends.commit(producer, address, [step(SHARD, 2, {topics.LINKS: offset + 1})])
            await asyncio.sleep(HELD_S)

        records = await order(log, 3)
    assert [record.topic for record in records] == ["decisions", "links", "decisions"]


async def test_forged_effect_delays_nothing(address: Address) -> None:
    async with numbered_log.opened(address) as log, owner(address) as producer:
        await log.append([output(topics.WORKS, 0, SHARD, 1_000)])
        async with asyncio.timeout(HELD_S):
            await appends.commit(producer, address, [step(SHARD, 1), output(topics.WORKS, 0, SHARD, 1)])
            records = await order(log, 3)
    assert [record.topic for record in records] == ["works", "decisions", "works"]


async def test_extents_of_missing_offsets_have_no_effect_on_any_replica(address: Address) -> None:
    async with numbered_log.opened(address) as log, numbered_log.opened(address) as second:
        before = await log.append([foreign_input(topics.SPECS, 1)])
        number = await log.newest()
        forged = Extents(
            number + 1, "forger", (Extent(topics.SPECS, 1, 1, 6), Extent(topics.WORKS, 99, 0, 9))
        )
        nowhere = Extents(number + 1, "forger", (Extent(topics.SPECS, 1, 1, 6),))
        for extents in (forged, nowhere):
            await plain.append(
                address.servers, address.topic(sequence.TOPIC), 0, b"", sequence.record(extents).value, {}
            )
        async with asyncio.timeout(WAIT_S):
            after = [
                (await replica_log.append([foreign_input(topics.SPECS, 1)]))[0]
                for replica_log in (log, second, log, second, log)
            ]
            # The forged offsets exist by now; a replica that starts later must agree nevertheless.
            after.append((await log.append([foreign_input(topics.SPECS, 1)]))[0])
            await asyncio.gather(log.newest(), second.newest())
        expected = [*before, *after]
        assert await log.read_all(0, 100) == await second.read_all(0, 100) == expected
    async with numbered_log.opened(address) as late:
        assert await late.newest() == expected[-1].number
        assert await late.read_all(0, 100) == expected


async def test_refused_extents_stay_refused_after_a_failed_append(
    address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    appends = FailingAppends(monkeypatch)
    async with numbered_log.opened(address) as log:
        first = (await log.append([foreign_input(topics.SPECS, 1)]))[0]
        nowhere = Extents(await log.newest() + 1, "forger", (Extent(topics.SPECS, 1, 1, 2),))
        appends.failures = 1
        value = sequence.record(nowhere).value
        await plain.append(address.servers, address.topic(sequence.TOPIC), 0, b"", value, {})
        await log.newest()
        expected = [first, *[(await log.append([foreign_input(topics.SPECS, 2)]))[0] for _ in range(2)]]
        # The forged offset exists by now.
        expected.append((await log.append([foreign_input(topics.SPECS, 1)]))[0])
        assert appends.failures == 0
    async with numbered_log.opened(address) as late:
        assert await late.newest() == expected[-1].number
        assert await late.read_all(0, 100) == expected


class FailingAppends:
    """Fails the next ``failures`` appends to the sequence, as brokers do that cannot be reached."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.failures = 0
        append = FollowedLog.append

        async def failing(log: FollowedLog, batch: Sequence[Record]) -> list[StoredRecord]:
            if self.failures and batch[0].topic == sequence.TOPIC:
                self.failures -= 1
                raise KafkaConnectionError("no broker answers")
            return await append(log, batch)

        monkeypatch.setattr(FollowedLog, "append", failing)
