"""A paused broker: an append fails after a time limit, and the next append uses a new producer."""

import asyncio

import pytest

from engine.log import port
from engine.log.kafka import appends, side_topics, topics
from engine.log.kafka.address import Address
from tests.brokers.processes import LocalBrokers

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


async def test_snapshots_and_checkpoints_are_not_awaited_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REBALLAST_REQUEST_MS", "1000")
    with LocalBrokers(1) as brokers:
        address = Address(servers=brokers.servers, prefix="t.")
        await topics.prepare(address)
        snapshots = side_topics.SnapshotTopic(address)
        lines = side_topics.LineTopic(address, side_topics.CHECKPOINTS)
        # The first appends of several tasks share one producer.
        await asyncio.gather(*(snapshots.append(shard, "a-0", b"piece") for shard in range(3)))
        await lines.append(b"first")

        brokers.pause(1)
        with monkeypatch.context() as hurry:
            hurry.setattr(appends, "COMMIT_S", 3.0)
            with pytest.raises(OSError, match="no broker has accepted the record within 3 s"):
                await snapshots.append(0, "a-1", b"piece")
            with pytest.raises(port.LogError, match="no broker has accepted the record within 3 s"):
                await lines.append(b"second")
        brokers.resume(1)

        assert await snapshots.append(0, "a-2", b"piece") > 0
        await lines.append(b"third")
        stored_lines = await lines.lines()
        assert (stored_lines[0], stored_lines[-1]) == (b"first", b"third")
        await snapshots.close()
        await lines.aclose()
