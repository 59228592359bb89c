"""The producer against a real broker."""

import asyncio
import subprocess
import sys
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec
import pytest

from events import clusters, codec, keys, records, specs, topics
from events.client import connection_options, producer, statements
from tests.brokers import certificates, clients, probing, processes, rights
from tests.builders import inputs, log_records, manifests
from tests.events import wire_tables
from tests.tidy import trees

SOURCE: Final = "/pipelines/shop"
PASSWORD: Final = uuid.uuid4().hex
TAINTED: Final = clusters.ClusterTainted(
    name="member1", taint=clusters.Taint(key="maintenance", effect="NoExecute")
)


@pytest.fixture
async def prefix(kafka: str) -> str:
    """The prefix of a new log."""
    own = f"{uuid.uuid4()}."
    await clients.create_log(kafka, own)
    return own


@pytest.fixture
async def shop(kafka: str, prefix: str) -> AsyncGenerator[producer.Producer]:
    async with producer.Producer(kafka, source=SOURCE, prefix=prefix) as started:
        yield started


def decoded(topic: str, seen: clients.ReceivedRecord) -> codec.Decoded:
    at = records.record(topic, seen.partition, seen.key.decode(), seen.headers, seen.value)
    event = codec.decode(at)
    assert isinstance(event, codec.Decoded), event
    return event


async def test_appended_event_is_read_unchanged(kafka: str, prefix: str, shop: producer.Producer) -> None:
    statement = statements.Statement(data=TAINTED, id="t-1", at_ms=1_716_630_591_120, subject="member1")
    position = await shop.append(statement)
    (seen,) = await clients.read(kafka, f"{prefix}clusters", 0, 1)
    assert position == records.Position("clusters", 0, seen.offset)
    event = decoded("clusters", seen)
    assert event.data == TAINTED
    assert (event.envelope.id, event.envelope.source) == ("t-1", SOURCE)
    assert (event.envelope.subject, event.envelope.time) == ("member1", "2024-05-25T09:49:51.120Z")


async def test_batch_is_stored_in_the_partitions_of_its_keys_in_order(
    kafka: str, prefix: str, shop: producer.Producer
) -> None:
    names = [f"web-{number % 50}" for number in range(500)]
    positions = await shop.append_all(
        inputs.deployment(name, replicas) for replicas, name in enumerate(names)
    )
    seen = await clients.read_all(kafka, f"{prefix}specs", topics.SHARDS)
    assert len(seen) == len(set(positions)) == 500
    assert len({record.headers["ce_id"] for record in seen}) == 500
    events_by_position = {(record.partition, record.offset): decoded("specs", record).data for record in seen}
    for replicas, (name, position) in enumerate(zip(names, positions, strict=True)):
        assert events_by_position[position.partition, position.offset] == inputs.deployment(name, replicas)
        assert position.partition == keys.partition_of(f"default/{name}-deployment", topics.SHARDS)
    of_one = [position.offset for name, position in zip(names, positions, strict=True) if name == "web-7"]
    assert of_one == sorted(of_one)


async def test_batch_with_one_invalid_event_is_not_sent(
    kafka: str, prefix: str, shop: producer.Producer
) -> None:
    bad = clusters.ClusterTainted(name="member1", taint=clusters.Taint(key="k", effect="Never"))
    with pytest.raises(producer.RefusedError, match="effect"):
        await shop.append_all([TAINTED, bad])
    assert await clients.read_all(kafka, f"{prefix}clusters", 1) == []


async def test_full_buffer_delays_and_loses_nothing(kafka: str, prefix: str) -> None:
    most = 0
    async with producer.Producer(kafka, source=SOURCE, prefix=prefix, pending_bytes_max=20_000) as shop:
        pending: set[asyncio.Future[records.Position]] = set()
        for number in range(300):
            future = await shop.enqueue(inputs.deployment(f"web-{number}"))
            pending = {waiting for waiting in pending if not waiting.done()} | {future}
            most = max(most, len(pending))
        await shop.flush()
    assert most <= 20
    assert len(await clients.read_all(kafka, f"{prefix}specs", topics.SHARDS)) == 300


async def test_flush_waits_for_events_whose_callers_were_cancelled(kafka: str, prefix: str) -> None:
    async with producer.Producer(kafka, source=SOURCE, prefix=prefix, options={"linger_ms": 500}) as shop:
        for _ in range(2):
            (await shop.enqueue(TAINTED)).cancel()
        await shop.flush()
        assert len(await clients.read_all(kafka, f"{prefix}clusters", 1)) == 2


async def test_largest_object_is_accepted(kafka: str, prefix: str, shop: producer.Producer) -> None:
    manifest = manifests.raw(
        manifests.manifest("v1", "ConfigMap", "large", "default", data={"text": "x" * 1_000_000})
    )
    position = await shop.append(specs.TemplateApplied(manifest=manifest))
    seen = await clients.read(kafka, f"{prefix}specs", position.partition, position.offset + 1)
    assert len(seen[-1].value) > 1_000_000


async def test_topic_with_another_partition_count_is_refused(kafka: str) -> None:
    prefix = f"{uuid.uuid4()}."
    await clients.create_topics(kafka, {f"{prefix}clusters": 3})
    async with producer.Producer(kafka, source=SOURCE, prefix=prefix) as shop:
        with pytest.raises(producer.TopicError, match="has 3 partitions, not 1"):
            await shop.append(TAINTED)


async def test_missing_topic_is_reported(kafka: str) -> None:
    options = {"request_timeout_ms": 500}
    async with producer.Producer(kafka, source=SOURCE, prefix=f"{uuid.uuid4()}.", options=options) as shop:
        with pytest.raises(producer.TopicError, match="UnknownTopic"):
            await shop.append(TAINTED)


async def test_missing_broker_is_reported() -> None:
    with pytest.raises(producer.ProducerError, match="check the address"):
        async with producer.Producer("127.0.0.1:9", source=SOURCE):
            pass


async def test_record_refused_by_the_topic_is_reported_and_the_next_one_is_sent(
    kafka: str,
) -> None:
    prefix = f"{uuid.uuid4()}."
    await clients.create_topics(kafka, {f"{prefix}clusters": 1}, settings={"max.message.bytes": "2000"})
    wide = clusters.ClusterLabelled(name="member1", labels={f"key-{n}": uuid.uuid4().hex for n in range(200)})
    async with producer.Producer(kafka, source=SOURCE, prefix=prefix) as shop:
        await shop.append(TAINTED)
        with pytest.raises(producer.TopicError, match="MessageSizeTooLarge"):
            await shop.append(wide)
        assert (await shop.append(TAINTED)).offset == 1


async def test_call_that_is_cancelled_while_the_client_is_replaced_leaves_none_behind(kafka: str) -> None:
    prefix = f"{uuid.uuid4()}."
    await clients.create_topics(kafka, {f"{prefix}clusters": 1}, settings={"max.message.bytes": "2000"})
    wide = clusters.ClusterLabelled(name="member1", labels={f"key-{n}": uuid.uuid4().hex for n in range(200)})
    before = asyncio.all_tasks()
    async with producer.Producer(kafka, source=SOURCE, prefix=prefix) as shop:
        for _ in range(3):
            with pytest.raises(producer.TopicError):
                await shop.append(wide)
            cancelled = asyncio.create_task(shop.append(TAINTED))
            await asyncio.sleep(0)
            cancelled.cancel()
            await asyncio.gather(cancelled, return_exceptions=True)
        await shop.append(TAINTED)
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


@asynccontextmanager
async def paused(
    acknowledged_ms: int, request_ms: int
) -> AsyncGenerator[tuple[processes.LocalBrokers, producer.Producer]]:
    """A broker that is paused, and a producer with these timeouts that has appended one event to it."""
    with processes.LocalBrokers() as brokers:
        await clients.create_log(brokers.servers, "r.")
        async with producer.Producer(
            brokers.servers,
            source=SOURCE,
            prefix="r.",
            acknowledged_ms_max=acknowledged_ms,
            options={"request_timeout_ms": request_ms},
        ) as shop:
            await shop.append(clusters.ClusterJoined(name="member1"))
            brokers.pause(1)
            yield brokers, shop


@pytest.mark.kafka
@pytest.mark.slow
async def test_unknown_outcome_is_reported_and_a_repeated_event_counts_once() -> None:
    statement = statements.Statement(data=TAINTED, id="t-1", at_ms=0)
    async with paused(6_000, 3_000) as (brokers, shop):
        with pytest.raises(producer.OutcomeUnknownError, match=r"t-1: .*same id"):
            await shop.append(statement)
        brokers.resume(1)
        await shop.append(statement)
        seen = await clients.read_all(brokers.servers, "r.clusters", 1)
    partition = log_records.Partition(topics.CLUSTERS)
    verdicts = [type(partition.take(_as_record(record))).__name__ for record in seen]
    assert verdicts[:2] == ["Taken", "Taken"]
    assert verdicts[2:] in ([], ["Refused"])


@pytest.mark.kafka
@pytest.mark.slow
async def test_request_that_fails_after_its_event_was_given_up_harms_no_later_event() -> None:
    async with paused(2_000, 4_000) as (brokers, shop):
        with pytest.raises(producer.OutcomeUnknownError):
            await shop.append(TAINTED)
        # The client is replaced once the request of the given up event has failed.
        with pytest.raises(producer.ProducerError, match="check the address"):
            await shop.append(TAINTED)
        brokers.resume(1)
        await shop.append(TAINTED)


@pytest.mark.kafka
@pytest.mark.slow
async def test_killed_brokers_under_load_lose_and_repeat_nothing() -> None:
    with processes.LocalBrokers(3) as brokers:
        await clients.create_log(brokers.servers, "r.", replicas=3)
        async with producer.Producer(brokers.servers, source=SOURCE, prefix="r.") as shop:
            pending = [await shop.enqueue(inputs.deployment("web", 0))]
            partition = (await pending[0]).partition
            back = asyncio.create_task(asyncio.to_thread(_leaders_killed_and_up, brokers, partition))
            while not back.done():
                pending.append(await shop.enqueue(inputs.deployment("web", len(pending))))
                await asyncio.sleep(0.01)
            await back
            positions = await asyncio.gather(*pending)
        seen = await clients.read_all(brokers.servers, "r.specs", topics.SHARDS)
    assert [record.offset for record in seen] == [position.offset for position in positions]
    assert [decoded("specs", record).data for record in seen] == [
        inputs.deployment("web", replicas) for replicas in range(len(pending))
    ]


@pytest.mark.kafka
@pytest.mark.slow
async def test_documented_access_control_lists_permit_writing_inputs_only() -> None:
    with processes.LocalBrokers(users={"shop": PASSWORD, "reballast": PASSWORD}) as brokers:
        await clients.create_log(brokers.servers, topics.PREFIX)
        await asyncio.to_thread(rights.grant, brokers, wire_tables.rights())
        secret = connection_options.Security(mechanism="PLAIN", username="shop", password=PASSWORD)
        async with producer.Producer(brokers.secured_servers, source=SOURCE, security=secret) as shop:
            await shop.append(inputs.deployment("foo"))
            with pytest.raises(producer.TopicError, match=r"reballast\.clusters: TopicAuthorizationFailed"):
                await shop.append(TAINTED)
            await shop.append(inputs.deployment("foo"))
        owner = connection_options.Security(mechanism="PLAIN", username="reballast", password=PASSWORD)
        async with producer.Producer(brokers.secured_servers, source=SOURCE, security=owner) as engine:
            await engine.append(TAINTED)
        wrong = connection_options.Security(mechanism="PLAIN", username="shop", password=PASSWORD[1:])
        with pytest.raises(producer.ProducerError, match="check the address, TLS, the user and its rights"):
            async with producer.Producer(brokers.secured_servers, source=SOURCE, security=wrong):
                pass


@pytest.mark.kafka
@pytest.mark.slow
async def test_producer_connects_only_to_brokers_with_a_trusted_certificate(tmp_path: Path) -> None:
    properties, authority = certificates.make(tmp_path)
    trusting = connection_options.Security(
        tls=True, ca_file=authority, mechanism="PLAIN", username="reballast", password=PASSWORD
    )
    with processes.LocalBrokers(users={"reballast": PASSWORD}, properties=properties) as brokers:
        await clients.create_log(brokers.servers, topics.PREFIX)
        grant, *_ = [command for command in wire_tables.rights() if "User:reballast" in command]
        await asyncio.to_thread(rights.grant, brokers, [grant])
        async with producer.Producer(brokers.secured_servers, source=SOURCE, security=trusting) as shop:
            assert (await shop.append(TAINTED)).offset == 0
        doubting = msgspec.structs.replace(trusting, ca_file=None)
        with pytest.raises(producer.ProducerError, match="check the address, TLS, the user and its rights"):
            async with producer.Producer(brokers.secured_servers, source=SOURCE, security=doubting):
                pass


def test_kafka_client_is_imported_by_producers_only() -> None:
    script = "import sys, events.codec, events.schemas; sys.exit('aiokafka' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], cwd=trees.ROOT, check=True)


def _leaders_killed_and_up(brokers: processes.LocalBrokers, partition: int) -> None:
    """Kill and restart the leader of the partition of ``specs``, and then its next leader."""
    for _ in range(2):
        leader = probing.ask(brokers.nodes[0].port).leaders["r.specs", partition]
        brokers.kill(leader)
        brokers.up(leader)
        brokers.heal()


def _as_record(seen: clients.ReceivedRecord) -> records.Record:
    return records.record("clusters", seen.partition, seen.key.decode(), seen.headers, seen.value)
