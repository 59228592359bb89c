"""Kafka logs opened within a test: followed as by a worker, owned by one, or read in sequence order."""

import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from engine.log.kafka import numbered_log, partition_followers, shard_ownership, topics
from engine.log.kafka.address import Address
from engine.process.replica import clock_ms
from engine.proof import verification
from engine.reconcilers.worker import Worker
from events.topics import SHARDS
from tests.background import background


async def prepared(servers: str) -> Address:
    """Create the topics of a new log and return its address."""
    address = Address(servers=servers, prefix=f"t{secrets.token_hex(4)}.")
    await topics.prepare(address)
    return address


@asynccontextmanager
async def followed(address: Address) -> AsyncGenerator[partition_followers.FollowedLog]:
    """A log opened as a worker opens it."""
    log = partition_followers.FollowedLog(address)
    try:
        await log.open()
        async with background(log.run()):
            yield log
    finally:
        await log.aclose()


@asynccontextmanager
async def owned(
    address: Address,
) -> AsyncGenerator[tuple[shard_ownership.Shards, partition_followers.FollowedLog]]:
    """The shards' write ownership, and the followed log."""
    async with followed(address) as log:
        shards = shard_ownership.Shards(address, log, clock_ms)
        try:
            yield shards, log
        finally:
            await shards.aclose()


@asynccontextmanager
async def working(address: Address) -> AsyncGenerator[Worker]:
    """A running worker that owns all shards."""
    async with owned(address) as (shards, log):
        worker = Worker(log, clock_ms, range(SHARDS), owner=shards)
        async with background(worker.run()):
            yield worker


async def verified(address: Address) -> int:
    """Run ``log verify``; fail on findings, and return the number of steps."""
    async with numbered_log.opened(address) as log:
        await log.wait_current()
        report = await verification.verify(log)
    assert (report.findings, report.differences) == ([], [])
    return report.steps
