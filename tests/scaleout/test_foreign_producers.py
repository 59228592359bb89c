"""Foreign producers may write anything: invalid records are rejected with a reason, and the worker continues."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from engine.log.kafka import numbered_log
from engine.log.kafka.address import Address
from engine.log.kafka.numbered_log import KafkaLog
from engine.process.replica import clock_ms
from engine.proof import verification
from events import codec, decisions, keys, rejections, shapes, topics
from events.client import statements
from events.records import Record
from tests.brokers import clients
from tests.builders.inputs import deployment, joined, key, policy
from tests.builders.manifests import on
from tests.events import java_example
from tests.scaleout import logs

pytestmark = pytest.mark.slow
WAIT_S: Final = 120
WEB: Final = key("web")
DIVIDED: Final[dict[str, object]] = {
    "replicaSchedulingType": "Divided",
    "replicaDivisionPreference": "Weighted",
}
SHARD: Final = keys.shard_of(WEB)


@pytest.fixture
async def address(kafka: str) -> Address:
    return await logs.prepared(kafka)


def written(data: shapes.Event, event_id: str) -> Record:
    """Return an event as a foreign producer writes it."""
    return statements.record_of(statements.Statement(data=data, id=event_id), "/shop", clock_ms(), event_id)


async def events_in(log: KafkaLog, topic: str, partition: int) -> list[object]:
    read = [codec.decode(record) for record in await log.read(topic, partition, 0, 10_000)]
    return [event.data for event in read if isinstance(event, codec.Decoded)]


async def decided(log: KafkaLog, count: int, shard: int = SHARD) -> list[decisions.ScheduleDecided]:
    """Return the schedule decisions of a shard once there are ``count``."""
    async with asyncio.timeout(WAIT_S):
        while True:
            moves = log.change_count()
            those = [
                event
                for event in await events_in(log, topics.DECISIONS, shard)
                if isinstance(event, decisions.ScheduleDecided)
            ]
            if len(those) >= count:
                return those
            await log.wait(moves)


async def rejected(log: KafkaLog, verdicts: set[str]) -> list[rejections.InputRejected]:
    """Return the rejections once each of these verdicts occurs."""
    async with asyncio.timeout(WAIT_S):
        while True:
            moves = log.change_count()
            those = [
                event
                for event in await events_in(log, topics.REJECTIONS, 0)
                if isinstance(event, rejections.InputRejected)
            ]
            if verdicts <= {refusal.verdict for refusal in those}:
                return those
            await log.wait(moves)


async def send(
    address: Address,
    record: Record,
    *,
    value: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    partition: int | None = None,
    named: bytes | None = None,
) -> None:
    """Append a record as a foreign client writes it, with some bytes replaced."""
    await clients.append(
        address.servers,
        address.topic(record.topic),
        record.partition if partition is None else partition,
        record.key.encode() if named is None else named,
        record.value if value is None else value,
        record.headers if headers is None else headers,
    )


async def test_invalid_records_are_rejected_and_the_next_one_is_decided(address: Address) -> None:
    good = written(deployment("web", 2), "shop-1")
    other = (SHARD + 1) % topics.SHARDS
    async with numbered_log.opened(address) as log, logs.working(address):
        await log.append([written(joined("member1"), "a"), written(policy("p", on("member1")), "b")])
        await send(address, good, value=b"{", headers={**good.headers, "ce_id": "malformed"})
        await send(address, good, value=b"\xff\xfe\x00")
        await send(address, good, headers={**good.headers, "ce_id": "deep"}, value=b"[" * 100_000)
        await send(address, good, headers={**good.headers, "ce_id": "elsewhere"}, partition=other)
        await send(address, good, headers={**good.headers, "ce_id": "k"}, named=b"\xff\xff")
        await send(address, good, headers={"ce_id": "no-envelope"})
        await send(address, good, headers={**good.headers, "ce_type": "io.reballast.unheard-of.v1"})
        forged = {**good.headers, "ce_id": f"{SHARD}-99-99-1", "ce_source": f"/reballast/shards/{SHARD}"}
        step = records_step(good)
        await send(address, step, headers=forged | {"ce_type": step.headers["ce_type"]})
        await send(address, good)
        await send(address, good)

        (first, *_) = await decided(log, 1)
        assert [(cluster.name, cluster.replicas) for cluster in first.clusters] == [("member1", 2)]
        refusals = await rejected(log, {"refused", "repeated", "misplaced"})

        assert all(refusal.reason and refusal.topic == topics.SPECS for refusal in refusals)
        await log.append([written(deployment("web", 3), "shop-2")])
        assert (await decided(log, 2))[-1].clusters[0].replicas == 3
        # The forged step has no effect, and verification reports it.
        report = await verification.verify(log)
        assert report.is_clean
        assert [note.where.rpartition("/")[0] for note in report.notes] == [f"decisions/{SHARD}"]


def records_step(like: Record) -> Record:
    """Return a forged record that looks like a step of the shard."""
    taken = decisions.StepTaken(
        shard=SHARD,
        number=99,
        term=99,
        time_ms=1,
        release="0",
        ends={},
        processed=0,
        outputs=0,
        inputs_digest="",
        outputs_digest="",
        previous="forged",
    )
    head = codec.decode(like)
    assert isinstance(head, codec.Decoded)
    return codec.encode(taken, head.envelope, partition=SHARD, key=str(SHARD))


async def test_java_example_taints_a_cluster_and_reads_the_decisions(
    address: Address, tmp_path: Path
) -> None:
    classes = await asyncio.to_thread(java_example.compiled, tmp_path)
    async with numbered_log.opened(address) as log, logs.working(address):
        names = ("member1", "member2")
        batch = [written(joined(name), name) for name in names]
        await log.append(
            [
                *batch,
                written(policy("p", on(*names, scheduling=DIVIDED)), "p"),
                written(deployment("web", 2), "w"),
            ]
        )
        await decided(log, 1)

        with java_example.TaintCluster(classes, address.servers, address.prefix, event_id="t-1") as program:
            appended_line = await asyncio.to_thread(program.line)
            decided_line = await asyncio.to_thread(program.line)
            await asyncio.to_thread(program.end)

    assert appended_line.startswith(f"said {address.prefix}clusters/0/")
    word, position, data = decided_line.split(" ", 2)
    assert (word, position.rpartition("/")[0]) == ("decided", f"{address.prefix}decisions/{SHARD}")
    assert json.loads(data)["key"] == WEB
