"""A process that appends inputs is killed or frozen: other writers are not delayed, and nothing is lost or repeated."""

import asyncio
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import pytest

from engine.log import port
from engine.log.kafka import appends, clients, numbered_log
from engine.log.kafka.address import Address
from events import records, topics
from tests.scaleout import appending_process, logs

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

ROUNDS: Final = 3
ANSWERED_S: Final = 9.0
_BATCHES: Final = 20
"""Batches that a process appends before something happens to it."""


class Appending:
    """The process, and the numbers of its acknowledged batches."""

    def __init__(self, process: subprocess.Popen[str], name: str) -> None:
        self.process = process
        self.name = name
        self.acknowledged: list[int] = []

    def take(self, count: int) -> None:
        """Wait for ``count`` more acknowledgements."""
        assert self.process.stdout is not None
        for _ in range(count):
            self.acknowledged.append(int(self.process.stdout.readline()))

    def end(self) -> None:
        """Kill the process, and read the rest of its output."""
        self.process.kill()
        assert self.process.stdout is not None
        self.acknowledged += [int(line) for line in self.process.stdout.read().split("\n") if line]


@contextmanager
def appending(address: Address, name: str) -> Generator[Appending]:
    log = f"kafka://{address.servers}/{address.prefix.removesuffix('.')}"
    command = [sys.executable, "-m", appending_process.__name__, log, name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Appending(process, name)
        finally:
            process.kill()


async def answered_s(log: port.Log, name: str, before_s: float | None = None) -> float:
    """Return the seconds for one append to every partition; fail if it takes much longer than ``before_s``."""
    began_s = time.monotonic()
    async with asyncio.timeout(None if before_s is None else before_s + ANSWERED_S):
        await log.append(appending_process.batch(name, 0))
    return time.monotonic() - began_s


async def assert_nothing_is_lost_or_doubled(log: port.NumberedLog, writers: list[Appending]) -> None:
    await log.wait_current()
    counts = Counter(record.headers["ce_id"] for record in await log.read_all(0, 1_000_000))
    assert [event_id for event_id, count in counts.items() if count > 1] == []
    acknowledged = {
        f"{writer.name}-{number}-{shard}"
        for writer in writers
        for number in writer.acknowledged
        for shard in range(topics.SHARDS)
    }
    assert acknowledged <= counts.keys()


@pytest.fixture
async def address(kafka: str) -> Address:
    return await logs.prepared(kafka)


async def test_partition_accepts_appends_after_a_refused_batch(address: Address) -> None:
    def record(value: bytes) -> records.Record:
        return records.record(topics.SPECS, 0, "k", {}, value)

    noise = random.Random("noise").randbytes(3_000_000)  # noqa: S311  # it can't be compressed
    appender = appends.Appender(address)
    await appender.open()
    try:
        await appender.append([record(b"before")])
        with pytest.raises(port.OutcomeUnknownError):
            await appender.append([record(noise)])
        async with asyncio.timeout(ANSWERED_S):
            (stored,) = await appender.append([record(b"after")])
    finally:
        await appender.close()
    assert stored.offset == 1


async def test_consecutive_records_of_one_key_share_a_batch(address: Address) -> None:
    def record(key: str, size: int) -> records.Record:
        return records.record(topics.SPECS, 0, key, {"ce_id": key}, bytes(size))

    large = clients.BATCH_BYTES // 3
    batch = [record(key, large) for key in ("a", "a", "b", "b", "c")]
    producer = clients.producer(address)
    try:
        built = [part for part, _ in appends.batches(producer, batch, range(len(batch)))]
    finally:
        await producer.stop()
    assert built == [[0, 1], [2, 3], [4]]


async def test_killed_appending_process_does_not_delay_others(address: Address) -> None:
    killed: list[Appending] = []
    async with numbered_log.opened(address) as log:
        for index in range(ROUNDS):
            with appending(address, f"killed{index}") as writer:
                await asyncio.to_thread(writer.take, _BATCHES)
                before_s = await answered_s(log, f"before{index}")
                writer.end()
                killed.append(writer)
                await answered_s(log, f"after{index}", before_s)
        await assert_nothing_is_lost_or_doubled(log, killed)


async def test_frozen_appending_process_does_not_delay_others_and_continues(
    address: Address,
) -> None:
    frozen: list[Appending] = []
    async with numbered_log.opened(address) as log:
        for index in range(ROUNDS):
            with appending(address, f"frozen{index}") as writer:
                await asyncio.to_thread(writer.take, _BATCHES)
                before_s = await answered_s(log, f"before{index}")
                writer.process.send_signal(signal.SIGSTOP)
                await answered_s(log, f"after{index}", before_s)
                writer.process.send_signal(signal.SIGCONT)
                await asyncio.to_thread(writer.take, _BATCHES)
                writer.end()
                frozen.append(writer)
        await assert_nothing_is_lost_or_doubled(log, frozen)
