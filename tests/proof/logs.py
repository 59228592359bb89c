"""Logs for proofs: a played history in a file, copies of it, and histories that begin alike and then differ."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from engine.log import local, sqlite
from engine.placement.requests import Request
from events import records
from events.records import StoredRecord
from tests.builders.inputs import capacity, deployment, joined, key, policy, rebalancer, ref, tainted
from tests.builders.log_records import all_records
from tests.builders.manifests import DYNAMIC, on
from tests.deciders.story import Story

WEB = key("web")
_BOTH = on("member1", "member2", scheduling=DYNAMIC)


async def play(story: Story, replicas: int | None = None) -> None:
    """Play a history with events of every kind; those with other ``replicas`` begin alike, and then differ."""
    await story.submit(joined("member1"), joined("member2"), capacity("member1"), capacity("member2", 20))
    await story.submit(policy("p", _BOTH), deployment("web", 6), deployment("big", 300))
    if replicas is not None:
        await story.submit(deployment("web", replicas))
    await story.submit(tainted("member1", "NoExecute"))
    await story.report(WEB, "member2")
    await story.submit(rebalancer("demo", ref("web"), ref("nobody")))


async def played(replicas: int | None = None) -> local.MemoryLog:
    """Return the log of a played history."""
    story = Story()
    await play(story, replicas)
    return await copied(await all_records(story.log))


async def copied(history: Iterable[StoredRecord]) -> local.MemoryLog:
    """Return a log with these records, appended as they are."""
    log = local.MemoryLog()
    await log.append(to_append(history))
    return log


def to_append(stored: Iterable[StoredRecord]) -> list[records.Record]:
    """Return stored records as they are appended."""
    return [
        records.record(record.topic, record.partition, record.key, record.headers, record.value)
        for record in stored
    ]


@asynccontextmanager
async def opened(directory: Path) -> AsyncGenerator[sqlite.SqliteLog]:
    log = await sqlite.SqliteLog.open(directory)
    try:
        yield log
    finally:
        await log.aclose()


def changed_mode(_: Request) -> str:
    """A changed rule, to replace ``scheduling._mode``: every decision gets another mode."""
    return "Careless"


class CountingLog(local.MemoryLog):
    """A log that counts the records that its readers get."""

    def __init__(self) -> None:
        super().__init__()
        self.returned = 0

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        records = await super().read(topic, partition, start, limit)
        self.returned += len(records)
        return records

    async def read_all(self, after: int, limit: int) -> list[StoredRecord]:
        records = await super().read_all(after, limit)
        self.returned += len(records)
        return records
