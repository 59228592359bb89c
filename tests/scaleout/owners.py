"""A worker on Kafka whose turns the test runs."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from engine.log.kafka import partition_followers, shard_ownership, side_topics
from engine.log.kafka.address import Address
from engine.process.replica import clock_ms
from engine.reconcilers import worker
from events import shapes, topics
from events.client import statements
from events.records import Record, StoredRecord


class CountingLog(partition_followers.FollowedLog):
    """Counts the records that are read from partitions."""

    count = 0

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        records = await super().read(topic, partition, start, limit)
        self.count += len(records)
        return records


@asynccontextmanager
async def owner(at: Address) -> AsyncGenerator[tuple[worker.Worker, CountingLog]]:
    """A worker with a snapshot topic; the test runs its turns."""
    log, snapshot_topic = CountingLog(at), side_topics.SnapshotTopic(at)
    await log.open()
    running = asyncio.create_task(log.run())
    shards = shard_ownership.Shards(at, log, clock_ms)
    try:
        yield worker.Worker(log, clock_ms, range(topics.SHARDS), snapshot_topic, shards), log
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await shards.aclose()
        await snapshot_topic.close()
        await log.aclose()


async def settle(shard_worker: worker.Worker) -> None:
    await shard_worker.turn()
    while shard_worker.is_behind():
        await shard_worker.turn()


def written(data: shapes.Event, event_id: str) -> Record:
    return statements.record_of(statements.Statement(data=data, id=event_id), "/shop", clock_ms(), event_id)
