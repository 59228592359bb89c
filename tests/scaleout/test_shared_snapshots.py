"""Snapshots on Kafka: shared between workers; an incomplete one is ignored."""

import secrets
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

import anyio.to_thread
import pytest

from engine.log.kafka import side_topics, topics
from engine.log.kafka.address import Address

pytestmark = pytest.mark.slow
SHARD = 3
_Result = TypeVar("_Result")


@pytest.fixture
async def address(kafka: str) -> Address:
    address = Address(servers=kafka, prefix=f"t{secrets.token_hex(4)}.")
    await topics.prepare(address)
    return address


@pytest.fixture
async def topic(address: Address) -> AsyncIterator[side_topics.SnapshotTopic]:
    snapshot_topic = side_topics.SnapshotTopic(address)
    yield snapshot_topic
    await snapshot_topic.close()


def keeper(snapshot_topic: side_topics.SnapshotTopic) -> side_topics.ShardSnapshots:
    ((shard_keeper, shards),) = snapshot_topic.of([SHARD])
    assert shards == [SHARD]
    return shard_keeper


async def done(work: Callable[..., _Result], *args: object) -> _Result:
    """Run a call in a thread, as the worker does."""
    return await anyio.to_thread.run_sync(work, *args)


async def test_new_log_has_no_snapshots(topic: side_topics.SnapshotTopic) -> None:
    assert await done(keeper(topic).numbers) == []


async def test_two_newest_snapshots_are_readable_by_another_worker(
    topic: side_topics.SnapshotTopic, address: Address
) -> None:
    large = secrets.token_bytes(3_000_000)
    for number, parts in ((5, [b"old"]), (9, [large[:1_000], large[1_000:]]), (12, [b"new"])):
        await done(keeper(topic).write, number, parts)

    other = side_topics.SnapshotTopic(address)
    assert await done(keeper(other).numbers) == [12, 9]
    assert await done(keeper(other).read, 12) == b"new"
    assert await done(keeper(other).read, 9) == large
    with pytest.raises(OSError, match="snapshot 5 of shard 3 is incomplete"):
        await done(keeper(other).read, 5)
    await other.close()


async def test_incomplete_snapshot_does_not_count(
    topic: side_topics.SnapshotTopic,
) -> None:
    await done(keeper(topic).write, 5, [b"whole"])
    for index in range(40):
        await topic.append(SHARD, f"b-{index}", b"half")

    assert await done(keeper(topic).numbers) == [5]
    assert await done(keeper(topic).read, 5) == b"whole"


async def test_dropped_snapshot_leaves_the_one_before_it(
    topic: side_topics.SnapshotTopic,
) -> None:
    await done(keeper(topic).write, 5, [b"first"])
    await done(keeper(topic).write, 7, [b"second"])

    await done(keeper(topic).drop, 7)

    assert await done(keeper(topic).numbers) == [5]
    assert await done(keeper(topic).read, 5) == b"first"
