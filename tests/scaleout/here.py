"""A worker and replicas of the log within the test's own process, for what needs no fault."""

import asyncio
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from engine.log.kafka import following, owning, topics
from engine.log.kafka.address import Address
from engine.reconcilers import worker
from engine.replica import clock_ms
from events import topics as all_topics


async def prepared(servers: str) -> Address:
    """A log of its own on these brokers."""
    found = Address(servers=servers, prefix=f"t{secrets.token_hex(4)}.")
    await topics.prepare(found)
    return found


@asynccontextmanager
async def working(at: Address) -> AsyncGenerator[worker.Worker]:
    """A worker that owns all shards."""
    log = following.FollowedLog(at)
    await log.open()
    shards = owning.Shards(at, log, clock_ms)
    found = worker.Worker(log, clock_ms, range(all_topics.SHARDS), owner=shards)
    following_log = asyncio.create_task(log.run())
    deciding = asyncio.create_task(found.run())
    try:
        yield found
    finally:
        for task in (deciding, following_log):
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await shards.aclose()
        await log.aclose()
