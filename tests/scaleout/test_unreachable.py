"""Brokers that cannot be reached: each caller gets an error, and no client of the Kafka library stays open."""

import gc
import warnings
from collections.abc import Callable, Generator
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path

import pytest
from aiokafka.errors import KafkaConnectionError  # pyright: ignore[reportMissingTypeStubs]

from engine.log import port
from engine.log.kafka import clients, numbered_log, range_reads, side_topics, topics
from engine.log.kafka.address import Address
from engine.process import scaleout
from events.topics import SPECS

SLOT = (SPECS, 0)
RETRIES = 3


@pytest.fixture
def address() -> Address:
    """An address where nothing listens."""
    return Address(servers="127.0.0.1:1", prefix="t.")


@contextmanager
def no_client_stays_open() -> Generator[None]:
    """Fail if a client of the Kafka library is collected that was not stopped."""
    gc.collect()  # clients that an earlier test left open are not counted
    with warnings.catch_warnings(record=True) as recorded:
        warnings.simplefilter("always")
        yield
        gc.collect()
    assert [str(warning.message) for warning in recorded if "Unclosed" in str(warning.message)] == []


async def test_failed_reads_leave_no_consumer_open(address: Address) -> None:
    with no_client_stays_open():
        reader = range_reads.Ranges(address)
        for _ in range(RETRIES):
            with pytest.raises(port.LogError):
                await reader.bounds(SLOT)
            with pytest.raises(port.LogError):
                await reader.written([SLOT])
        await reader.close()


async def test_failed_snapshot_writes_leave_no_producer_open(address: Address) -> None:
    with no_client_stays_open():
        snapshot_topic = side_topics.SnapshotTopic(address)
        for _ in range(RETRIES):
            with pytest.raises(OSError, match="KafkaConnectionError"):
                await snapshot_topic.append(0, "a-0", b"piece")
        await snapshot_topic.close()


async def test_producer_that_fails_to_stop_is_abandoned(
    address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = clients.producer(address)
    stop, failures = producer.stop, iter([KeyError("a batch"), KafkaConnectionError("no broker")])

    async def fail() -> None:
        await stop()
        raise next(failures)

    monkeypatch.setattr(producer, "stop", fail)
    for _ in range(2):
        await clients.stop(producer)
    assert next(failures, None) is None


async def _prepared(_: Address) -> None:
    """Do nothing, as if the brokers had become unreachable just after the topics were prepared."""


def _log(address: Address, directory: Path) -> AbstractAsyncContextManager[object]:
    return numbered_log.opened(address, directory=directory)


def _worker(address: Address, _: Path) -> AbstractAsyncContextManager[object]:
    return scaleout.worker_on(address)


def _replica(address: Address, directory: Path) -> AbstractAsyncContextManager[object]:
    return scaleout.replica_on(f"kafka://{address.servers}", directory)


@pytest.mark.parametrize("opened", [_log, _worker, _replica])
async def test_log_that_fails_to_open_is_closed(
    address: Address,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    opened: Callable[[Address, Path], AbstractAsyncContextManager[object]],
) -> None:
    monkeypatch.setattr(topics, "prepare", _prepared)
    with no_client_stays_open(), pytest.raises(port.LogError, match="no broker answers"):
        async with opened(address, tmp_path):
            pytest.fail("the log is open")
