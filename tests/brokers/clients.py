"""Direct access to a broker for tests: create topics, append bytes, read them back."""

# aiokafka has annotations, but no py.typed marker for type checkers.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping
from typing import Final

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from msgspec import Struct

from events import limits, topics

READ_S_MAX: Final = 120.0


class ReceivedRecord(Struct, frozen=True, kw_only=True):
    """A record as a consumer received it."""

    partition: int
    offset: int
    key: bytes
    value: bytes
    headers: dict[str, str]


async def create_topics(
    servers: str, partitions: Mapping[str, int], replicas: int = 1, settings: Mapping[str, str] | None = None
) -> None:
    """Create topics with these partition counts, for records up to the size limits."""
    admin = AIOKafkaAdminClient(bootstrap_servers=servers)
    await admin.start()
    try:
        size = str(limits.RECORD_BYTES_MAX + limits.HEADER_BYTES_MAX + limits.KEY_BYTES_MAX + 1024)
        all_settings = {"retention.ms": "-1", "max.message.bytes": size, **(settings or {})}
        new_topics = [
            NewTopic(name, count, replicas, None, all_settings) for name, count in partitions.items()
        ]
        answer = await admin.create_topics(new_topics)
        failed = [error for error in answer.to_object()["topic_errors"] if error["error_code"] != 0]
        assert not failed, failed
    finally:
        await admin.close()


async def create_log(servers: str, prefix: str, replicas: int = 1) -> None:
    """Create all topics of a log."""
    partitions = {prefix + name: topic.partitions for name, topic in topics.TOPICS.items()}
    await create_topics(servers, partitions, replicas)


async def append(
    servers: str,
    topic: str,
    partition: int,
    key: bytes,
    value: bytes,
    headers: Mapping[str, str] | None = None,
) -> int:
    """Append a record and return its offset once all in-sync replicas have it."""
    producer = AIOKafkaProducer(
        bootstrap_servers=servers, acks="all", max_request_size=4 * limits.RECORD_BYTES_MAX
    )
    await producer.start()
    try:
        pairs = [(name, text.encode()) for name, text in (headers or {}).items()]
        return (await producer.send_and_wait(topic, value, key, partition, headers=pairs)).offset
    finally:
        await producer.stop()


async def read(servers: str, topic: str, partition: int, count: int) -> list[ReceivedRecord]:
    """Return the first ``count`` records of a partition; raises TimeoutError if there are fewer."""
    at = TopicPartition(topic, partition)
    async with _reader(servers, [at]) as consumer, asyncio.timeout(READ_S_MAX):
        return [_received(await consumer.getone(at)) for _ in range(count)]


async def read_all(servers: str, topic: str, partitions: int) -> list[ReceivedRecord]:
    """Return all current records of a topic, partition by partition."""
    assignment = [TopicPartition(topic, partition) for partition in range(partitions)]
    records: list[ReceivedRecord] = []
    async with _reader(servers, assignment) as consumer, asyncio.timeout(READ_S_MAX):
        for partition, end in (await consumer.end_offsets(assignment)).items():
            while await consumer.position(partition) < end:
                records.append(_received(await consumer.getone(partition)))
    return records


@contextlib.asynccontextmanager
async def _reader(servers: str, assignment: list[TopicPartition]) -> AsyncGenerator[AIOKafkaConsumer]:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=servers,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
    )
    consumer.assign(assignment)
    await consumer.start()
    try:
        yield consumer
    finally:
        await consumer.stop()


def _received(record: ConsumerRecord[bytes, bytes]) -> ReceivedRecord:
    return ReceivedRecord(
        partition=record.partition,
        offset=record.offset,
        key=record.key or b"",
        value=record.value or b"",
        headers={name: text.decode() for name, text in record.headers},
    )
