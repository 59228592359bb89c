"""The contract of a log; each log's test class inherits it and says how to open one."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

import pytest

from engine.log import port
from events import records, topics
from events.records import Record


def record(topic: str = topics.SPECS, partition: int = 0, text: str = "x") -> Record:
    return records.record(topic, partition, f"key-{text}", {"ce_id": text}, text.encode())


class LogContract:
    """Tests that hold for every log."""

    def open(self) -> AbstractAsyncContextManager[port.Log]:
        raise NotImplementedError

    @pytest.fixture
    async def log(self) -> AsyncIterator[port.Log]:
        async with self.open() as log:
            yield log

    async def test_an_empty_log_has_no_records_and_no_ends(self, log: port.Log) -> None:
        assert log.last_number() == 0
        assert dict(log.ends()) == {}
        assert await log.read(topics.SPECS, 0, 0, 10) == []
        assert await log.read_all(0, 10) == []

    async def test_offsets_count_by_partition_and_numbers_over_all(self, log: port.Log) -> None:
        stored = await log.append([record(partition=1, text="a"), record(partition=2, text="b")])
        stored += await log.append([record(partition=1, text="c")])

        assert [(each.partition, each.offset, each.number) for each in stored] == [
            (1, 0, 1),
            (2, 0, 2),
            (1, 1, 3),
        ]
        assert dict(log.ends()) == {(topics.SPECS, 1): 2, (topics.SPECS, 2): 1}
        assert log.last_number() == 3

    async def test_what_is_read_is_what_was_appended(self, log: port.Log) -> None:
        written = record(topics.DECISIONS, 7, "grüße")
        (stored,) = await log.append([written])

        (read,) = await log.read(topics.DECISIONS, 7, 0, 10)
        assert read == stored
        assert (read.key, dict(read.headers), read.value) == (
            written.key,
            dict(written.headers),
            written.value,
        )
        assert read.checksum == written.checksum
        assert await log.read_all(0, 10) == [stored]

    async def test_reading_starts_and_stops_where_it_is_told(self, log: port.Log) -> None:
        await log.append([record(text=str(index)) for index in range(10)])

        values = [each.value for each in await log.read(topics.SPECS, 0, 4, 3)]
        assert values == [b"4", b"5", b"6"]
        numbers = [each.number for each in await log.read_all(8, 5)]
        assert numbers == [9, 10]
        assert await log.read(topics.SPECS, 0, 10, 5) == []

    async def test_an_empty_batch_changes_nothing(self, log: port.Log) -> None:
        assert await log.append([]) == []
        assert log.last_number() == 0

    async def test_waiting_ends_when_something_comes(self, log: port.Log) -> None:
        waiters = [asyncio.create_task(log.wait(0)) for _ in range(3)]
        await asyncio.sleep(0)
        assert not any(waiter.done() for waiter in waiters)

        await log.append([record()])
        async with asyncio.timeout(5):
            await asyncio.gather(*waiters)

    async def test_one_who_gives_up_waiting_leaves_the_others_waiting(self, log: port.Log) -> None:
        stays, leaves = asyncio.create_task(log.wait(0)), asyncio.create_task(log.wait(0))
        await asyncio.sleep(0)
        leaves.cancel()
        await asyncio.sleep(0)
        assert not stays.done()
        await log.append([record()])
        async with asyncio.timeout(5):
            await stays

    async def test_batches_of_many_writers_stay_whole(self, log: port.Log) -> None:
        async def write(writer: int) -> None:
            for turn in range(10):
                await log.append([record(partition=p, text=f"{writer}.{turn}") for p in range(5)])

        await asyncio.gather(*(write(writer) for writer in range(10)))
        everything = await log.read_all(0, 1_000)
        assert [each.number for each in everything] == list(range(1, 501))
        for start in range(0, 500, 5):
            assert len({each.value for each in everything[start : start + 5]}) == 1

    async def test_an_append_that_nobody_waits_for_still_happens(self, log: port.Log) -> None:
        task = asyncio.create_task(log.append([record()]))
        await asyncio.sleep(0)
        task.cancel()
        async with asyncio.timeout(5):
            await log.wait(0)
        assert log.last_number() == 1

    @pytest.mark.parametrize("seed", range(10))
    async def test_every_partition_is_the_order_of_all_restricted_to_it(
        self, log: port.Log, seed: int
    ) -> None:
        chance = random.Random(seed)  # noqa: S311  # an example, not a secret
        for _ in range(chance.randrange(10)):
            slots = [
                (chance.choice(sorted(topics.TOPICS)), chance.randrange(12))
                for _ in range(chance.randrange(6))
            ]
            await log.append([record(topic, partition) for topic, partition in slots])
        everything = await log.read_all(0, 1_000)
        for (topic, partition), end in log.ends().items():
            mine = [each for each in everything if (each.topic, each.partition) == (topic, partition)]
            assert mine == await log.read(topic, partition, 0, 1_000)
            assert [each.offset for each in mine] == list(range(end))
