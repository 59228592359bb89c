"""Reading ahead: the same records in fewer reads."""

import pytest

from engine.log import local, port
from engine.reconcilers import replay
from events import chain, topics
from events.records import StoredRecord
from tests.builders.inputs import deployment
from tests.deciders.story import Story
from tests.proof import logs

SPECS = topics.SPECS


class CountingLog(local.MemoryLog):
    """A log that counts reads, and has a record that cannot be read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[tuple[int, int]] = []
        self.damaged = -1

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        self.reads.append((start, limit))
        stored = await super().read(topic, partition, start, limit)
        if any(record.offset == self.damaged for record in stored):
            raise port.LogCorruptedError(f"{topic}/{partition}/{self.damaged} is damaged")
        return stored


async def edited(log: local.MemoryLog, *names: str) -> Story:
    """Write that many versions of a Deployment, each decided before the next."""
    story = Story(log)
    await logs.play(story)
    for name in names:
        await story.submit(deployment("web", 6, schedulerName=name))
    return story


async def slot(log: local.MemoryLog) -> tuple[int, list[StoredRecord]]:
    """Return the partition of specs with most records, and these."""
    by_partition = {shard: await log.read(SPECS, shard, 0, 1_000) for shard in range(topics.SHARDS)}
    return max(by_partition.items(), key=lambda item: len(item[1]))


async def test_replay_of_small_steps_reads_batches() -> None:
    log = CountingLog()
    await edited(log, *map(str, range(150)))
    steps = sum(chain.may_be_step(record) for record in await logs.all_records(log))
    log.reads.clear()
    await replay.rebuild(log, range(topics.SHARDS))
    assert steps > 150
    assert len(log.reads) < steps / 2


async def test_reads_in_any_order_return_the_same_records() -> None:
    log = CountingLog()
    await edited(log, *map(str, range(100)))
    shard, history = await slot(log)
    ahead = replay.ReadAhead(log)
    for start, limit in [(0, 1), (1, 2), (0, 3), (60, 9), (3, 1), (99, 1_000), (len(history), 5)]:
        stored = await ahead.read(SPECS, shard, start, limit)
        assert stored == history[start : start + min(limit, len(stored))]
        assert bool(stored) is (start < len(history))


async def test_record_behind_the_wanted_ones_may_be_damaged() -> None:
    log = CountingLog()
    await edited(log, "a", "b")
    shard, history = await slot(log)
    log.damaged = 2
    ahead = replay.ReadAhead(log)
    assert await ahead.read(SPECS, shard, 0, 2) == history[:2]
    with pytest.raises(port.LogCorruptedError):
        await ahead.read(SPECS, shard, 2, 1)


async def test_large_records_are_not_kept() -> None:
    log = CountingLog()
    await edited(log, "a" * 300_000, "b" * 300_000)
    shard, history = await slot(log)
    ahead = replay.ReadAhead(log)
    log.reads.clear()
    for start in range(len(history)):
        assert await ahead.read(SPECS, shard, start, 1) == history[start : start + 1]
    assert log.reads[1:] == [(start, 1) for start in range(1, len(history))]
