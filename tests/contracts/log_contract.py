"""The contract of a log; each log's test class inherits it and defines how to open one."""

import asyncio
import random
from collections import Counter
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

    def open(self) -> AbstractAsyncContextManager[port.NumberedLog]:
        raise NotImplementedError

    @pytest.fixture
    async def log(self) -> AsyncIterator[port.NumberedLog]:
        async with self.open() as log:
            yield log

    async def test_empty_log_has_no_records_and_no_ends(self, log: port.NumberedLog) -> None:
        assert log.last_number() == 0
        assert dict(log.ends()) == {}
        assert await log.read(topics.SPECS, 0, 0, 10) == []
        assert await log.read_all(0, 10) == []

    async def test_offsets_increase_by_partition_and_numbers_over_all(self, log: port.NumberedLog) -> None:
        stored = await log.append([record(partition=1, text="a"), record(partition=2, text="b")])
        stored += await log.append([record(partition=1, text="c")])

        first, second, third = stored
        assert [record.partition for record in stored] == [1, 2, 1]
        assert first.offset == second.offset == 0 < third.offset
        assert 0 < first.number < second.number < third.number == log.last_number()
        assert dict(log.ends()) == {(topics.SPECS, 1): third.offset + 1, (topics.SPECS, 2): 1}

    async def test_read_record_equals_the_appended_one(self, log: port.NumberedLog) -> None:
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

    async def test_read_respects_start_and_limit(self, log: port.NumberedLog) -> None:
        stored = await log.append([record(text=str(index)) for index in range(10)])

        values = [record.value for record in await log.read(topics.SPECS, 0, 4, 3)]
        assert values == [b"4", b"5", b"6"]
        assert await log.read_all(stored[7].number, 5) == stored[8:]
        assert await log.read_all(stored[3].number, 2) == stored[4:6]
        assert await log.read(topics.SPECS, 0, 10, 5) == []

    async def test_read_of_large_records_returns_a_part_of_them(self, log: port.NumberedLog) -> None:
        large = [records.record(topics.SPECS, 0, "key", {}, bytes(1_000_000)) for _ in range(40)]
        for start in range(0, len(large), 10):
            await log.append(large[start : start + 10])

        ends = [0]
        while batch := await log.read(topics.SPECS, 0, ends[-1], 1_000):
            assert len(batch) < len(large)
            assert [record.offset for record in batch] == list(range(ends[-1], ends[-1] + len(batch)))
            ends.append(batch[-1].offset + 1)
        assert ends[-1] == len(large)

        numbers: list[int] = [0]
        while batch := await log.read_all(numbers[-1], 1_000):
            assert len(batch) < len(large)
            numbers += [record.number for record in batch]
        assert len(numbers) == len(large) + 1
        assert numbers == sorted(set(numbers))

    async def test_empty_batch_changes_nothing(self, log: port.NumberedLog) -> None:
        assert await log.append([]) == []
        assert log.last_number() == 0

    async def test_wait_ends_with_the_next_append(self, log: port.NumberedLog) -> None:
        waiters = [asyncio.create_task(log.wait(0)) for _ in range(3)]
        await asyncio.sleep(0)
        assert not any(waiter.done() for waiter in waiters)

        await log.append([record()])
        async with asyncio.timeout(60):
            await asyncio.gather(*waiters)

    async def test_cancelled_wait_does_not_end_the_others(self, log: port.NumberedLog) -> None:
        stays, leaves = asyncio.create_task(log.wait(0)), asyncio.create_task(log.wait(0))
        await asyncio.sleep(0)
        leaves.cancel()
        await asyncio.sleep(0)
        assert not stays.done()
        await log.append([record()])
        async with asyncio.timeout(60):
            await stays

    async def test_concurrent_batches_stay_whole(self, log: port.NumberedLog) -> None:
        async def write(writer: int) -> None:
            for turn in range(10):
                await log.append([record(partition=p, text=f"{writer}.{turn}") for p in range(5)])

        await asyncio.gather(*(write(writer) for writer in range(10)))
        everything = await log.read_all(0, 1_000)
        assert sorted({record.number for record in everything}) == [record.number for record in everything]
        assert set(Counter(record.value for record in everything).values()) == {5}
        assert len(everything) == 500

    async def test_append_continues_after_its_caller_was_cancelled(self, log: port.NumberedLog) -> None:
        task = asyncio.create_task(log.append([record()]))
        await asyncio.sleep(0)
        task.cancel()
        async with asyncio.timeout(60):
            await log.wait(0)
        assert [record.value for record in await log.read_all(0, 10)] == [b"x"]

    @pytest.mark.parametrize("seed", range(10))
    async def test_partitions_keep_the_order_of_the_whole_log(self, log: port.NumberedLog, seed: int) -> None:
        chance = random.Random(seed)  # noqa: S311  # an example, not a secret
        for _ in range(chance.randrange(10)):
            chosen = [topics.TOPICS[chance.choice(sorted(topics.TOPICS))] for _ in range(chance.randrange(6))]
            batch = [record(topic.name, chance.randrange(topic.partitions)) for topic in chosen]
            await log.append(batch)
        everything = await log.read_all(0, 1_000)
        for (topic, partition), end in log.ends().items():
            records = [
                record for record in everything if (record.topic, record.partition) == (topic, partition)
            ]
            assert records == await log.read(topic, partition, 0, 1_000)
            offsets = [record.offset for record in records]
            assert offsets == sorted(set(offsets))
            assert offsets[-1] == end - 1
