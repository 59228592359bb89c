"""Local brokers: start, writes, and recovery after stops, kills and freezes."""

import asyncio
import signal
import subprocess
import sys
import uuid
from collections.abc import Generator
from pathlib import Path
from typing import Final

import pytest

from tests.brokers import clients, probing, processes
from tests.tidy import trees
from tests.waiting import until

_ABANDONED: Final = """
import sys
from tests.brokers import processes
brokers = processes.LocalBrokers()
brokers.start()
print(brokers.nodes[0].directory, brokers.nodes[0].port, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def brokers() -> Generator[processes.LocalBrokers]:
    with processes.LocalBrokers(3) as started:
        yield started


async def test_record_is_appended_to_the_broker_of_the_run(kafka: str) -> None:
    topic = f"through-{uuid.uuid4()}"
    await clients.create_topics(kafka, {topic: 2})
    offset = await clients.append(kafka, topic, 1, b"key", b"value")
    (record,) = await clients.read(kafka, topic, 1, count=1)
    assert (record.offset, record.key, record.value) == (offset, b"key", b"value")


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.parametrize("end", ["kill", "stop"])
async def test_ended_broker_restarts_with_all_acknowledged_records(
    brokers: processes.LocalBrokers, end: str
) -> None:
    topic = f"ended-{uuid.uuid4()}"
    await clients.create_topics(brokers.servers, {topic: 1}, replicas=3)
    await clients.append(brokers.servers, topic, 0, b"k", b"before")
    await asyncio.to_thread(getattr(brokers, end), 2)
    assert not brokers.is_up(2)
    await clients.append(brokers.servers, topic, 0, b"k", b"meanwhile")
    assert (topic, 0) in probing.ask(brokers.nodes[0].port).lagging
    await asyncio.to_thread(brokers.up, 2)
    await asyncio.to_thread(brokers.heal)
    assert not probing.ask(brokers.nodes[0].port).lagging
    records = await clients.read(brokers.servers, topic, 0, count=2)
    assert [record.value for record in records] == [b"before", b"meanwhile"]


@pytest.mark.kafka
@pytest.mark.slow
def test_frozen_broker_answers_when_it_continues(brokers: processes.LocalBrokers) -> None:
    port = brokers.nodes[2].port
    brokers.pause(3)
    with pytest.raises(probing.NoAnswerError):
        probing.ask(port)
    brokers.resume(3)
    brokers.up(3)
    assert 3 in probing.ask(port).alive


@pytest.mark.kafka
@pytest.mark.slow
def test_broker_that_cannot_start_reports_the_reason() -> None:
    with (
        pytest.raises(processes.BrokerError, match=r"broker 1 ended: [\s\S]*no\.such\.Authorizer"),
        processes.LocalBrokers(properties={"authorizer.class.name": "no.such.Authorizer"}),
    ):
        pass


@pytest.mark.kafka
@pytest.mark.slow
def test_brokers_end_with_the_process_that_started_them() -> None:
    command = [sys.executable, "-c", _ABANDONED]
    with subprocess.Popen(
        command, cwd=trees.ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        directory, port = owner.stdout.readline().split()
        assert probing.ask(int(port)).alive == {1}
        owner.send_signal(signal.SIGKILL)
    # The directory is deleted after the broker has ended.
    until(lambda: not Path(directory).exists())
    with pytest.raises(probing.NoAnswerError):
        probing.ask(int(port))
