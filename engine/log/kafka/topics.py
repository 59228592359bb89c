"""The topics on the brokers: create missing ones and refuse those with unsuitable settings.

Broker defaults must never delete records of the log: no compaction, no retention by time or size.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from aiokafka import TopicPartition, errors
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, KafkaTimeoutError, for_code
from msgspec import Struct

from engine import diagnostics
from engine.log import port
from engine.log.kafka import clients, sequence
from engine.log.kafka.address import Address
from events import topics

SNAPSHOTS: Final = "snapshots"
LIMIT_SETTING: Final = "transaction.max.timeout.ms"
FOREIGN_MS_MAX: Final = 60_000
"""Highest value of the broker setting ``LIMIT_SETTING`` without a warning, in milliseconds.

No transaction of a healthy producer takes longer.
"""

_REPLICAS: Final = 3
_IN_SYNC: Final = 2
_EXISTS: Final = 36
_TRANSIENT: Final = frozenset(
    {
        errors.LeaderNotAvailableError.errno,
        errors.RequestTimedOutError.errno,
        errors.BrokerNotAvailableError.errno,
        errors.InvalidReplicationFactorError.errno,
        errors.NotControllerError.errno,
    }
)
"""Error codes of temporary states; a replication factor is invalid while too many brokers are fenced."""

_FENCED_S_MAX: Final = 30.0
_KNOWN_S_MAX: Final = 30.0
_POLL_S: Final = 0.1
_log = diagnostics.logger(__name__)


class _ExpectedTopic(Struct, frozen=True):
    partitions: int
    policy: str = "delete"


def _expected_topics() -> dict[str, _ExpectedTopic]:
    expected = {name: _ExpectedTopic(topic.partitions) for name, topic in topics.TOPICS.items()}
    return expected | {sequence.TOPIC: _ExpectedTopic(1), SNAPSHOTS: _ExpectedTopic(topics.SHARDS, "compact")}


async def prepare(address: Address) -> None:
    """Create missing topics and check all of them. Raises LogError for unsuitable ones."""
    admin = clients.admin(address)
    try:
        with clients.converted(f"the topics at {address.servers} were not prepared"):
            await admin.start()
            await check_broker_limits(admin)
            await _make(admin, address, _expected_topics())
            await _check(admin, address)
            await _wait_for_leaders(address)
    finally:
        await admin.close()


def _settings(expected: _ExpectedTopic, replicas: int) -> dict[str, str]:
    more = {} if expected.policy == "delete" else _COMPACTED
    return more | {
        "cleanup.policy": expected.policy,
        "retention.ms": _FOR_EVER,
        "retention.bytes": _FOR_EVER,
        "max.message.bytes": str(clients.RECORD_BYTES_MAX),
        "min.insync.replicas": str(min(_IN_SYNC, replicas)),
    }


async def prepare_topic(address: Address, name: str) -> None:
    """Create a topic of one partition, unless it exists; its records are kept forever. Raises LogError."""
    admin = clients.admin(address)
    try:
        with clients.converted(f"topic {address.topic(name)} was not prepared"):
            await admin.start()
            await _make(admin, address, {name: _ExpectedTopic(1)})
    finally:
        await admin.close()


async def _make(admin: AIOKafkaAdminClient, address: Address, topics: Mapping[str, _ExpectedTopic]) -> None:
    """Create missing topics; another process may be creating them at the same time.

    Brokers that have just started, or were stalled, are fenced until their next heartbeat, and topics cannot
    be created meanwhile. Such errors are retried.
    """
    until_s = time.monotonic() + _FENCED_S_MAX
    while (refused := await _create_missing(admin, address, topics)) is not None:
        topic, code, message = refused
        if code not in _TRANSIENT or time.monotonic() > until_s:
            raise port.LogError(f"topic {topic} was not created: {message}")
        await asyncio.sleep(_POLL_S)


async def _create_missing(
    admin: AIOKafkaAdminClient, address: Address, topics: Mapping[str, _ExpectedTopic]
) -> tuple[str, int, str] | None:
    """Request missing topics once; return the first refused topic with its error code and message, or None."""
    existing = set(await admin.list_topics())
    missing = {name: expected for name, expected in topics.items() if address.topic(name) not in existing}
    if not missing:
        return None
    # The response lists no fenced brokers; each topic needs at least one replica.
    replicas = min(_REPLICAS, max(1, len((await admin.describe_cluster())["brokers"])))
    new = [
        NewTopic(address.topic(name), expected.partitions, replicas, None, _settings(expected, replicas))
        for name, expected in missing.items()
    ]
    answer: dict[str, Any] = (await admin.create_topics(new)).to_object()
    for error in answer["topic_errors"]:
        code = error["error_code"]
        if code not in {0, _EXISTS}:
            return error["topic"], code, error.get("error_message") or f"error {code}"
    _log.info("topics created", topics=len(missing), replicas=replicas)
    return None


async def _check(admin: AIOKafkaAdminClient, address: Address) -> None:
    expected_topics = {
        address.topic(name): expected_topic for name, expected_topic in _expected_topics().items()
    }
    counts, settings = await _described(admin, list(expected_topics))
    for name, expected in expected_topics.items():
        if counts[name] != expected.partitions:
            raise port.LogError(
                f"topic {name} has {counts[name]} partitions but must have {expected.partitions}, which can't change; "
                "use another prefix (kafka://…/PREFIX), or copy the log to new topics"
            )
        _check_settings(name, expected, settings[name])


async def _wait_for_leaders(address: Address) -> None:
    """Wait until each partition has a leader that answers, which takes a while for new topics."""
    partitions = [
        clients.partition(address, (name, number))
        for name, expected in _expected_topics().items()
        for number in range(expected.partitions)
    ]
    consumer = clients.consumer(address)
    try:
        await consumer.start()
        async with asyncio.timeout(_KNOWN_S_MAX):
            while not await _have_leaders(consumer, partitions):
                pass
    except TimeoutError:
        raise port.LogError("some partitions have no leader; check the brokers' logs") from None
    finally:
        await clients.close(consumer)


async def _have_leaders(consumer: clients.Consumer, partitions: Sequence[TopicPartition]) -> bool:
    try:
        await clients.load_metadata(consumer, partitions)
        await consumer.end_offsets(partitions)
    except KafkaTimeoutError:
        return False
    return True


async def _described(
    admin: AIOKafkaAdminClient, names: Sequence[str]
) -> tuple[dict[str, int], dict[str, dict[str, str]]]:
    """Return the partition counts and settings of topics; waits until the brokers know new topics."""
    counts: dict[str, int] = {}
    settings: dict[str, dict[str, str]] = {}
    try:
        async with asyncio.timeout(_KNOWN_S_MAX):
            while len(counts) < len(names) or len(settings) < len(names):
                descriptions = await admin.describe_topics(list(names))
                counts = {
                    description["topic"]: len(description["partitions"])
                    for description in descriptions
                    if description["error_code"] == 0
                }
                settings = await _settings_of(admin, names)
                if len(counts) < len(names) or len(settings) < len(names):
                    await asyncio.sleep(_POLL_S)
    except TimeoutError:
        unknown = sorted(set(names) - (counts.keys() & settings.keys()))
        raise port.LogError(f"the brokers do not report topic {unknown[0]}; check their logs") from None
    return counts, settings


async def _settings_of(admin: AIOKafkaAdminClient, names: Sequence[str]) -> dict[str, dict[str, str]]:
    resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
    settings: dict[str, dict[str, str]] = {}
    for answer in await admin.describe_configs(resources):
        described: list[Any] = getattr(answer, "resources")  # noqa: B009
        for code, _message, _kind, name, entries in described:
            if code == 0 and entries:
                settings[name] = {entry[0]: entry[1] for entry in entries}
    return settings


def _check_settings(name: str, expected: _ExpectedTopic, settings: Mapping[str, str]) -> None:
    """Raise LogError for settings that would delete records, or refuse records that the limits allow."""
    wrong = {
        key: value
        for key, value in _settings(expected, _IN_SYNC).items()
        if key in _RETENTION_SETTINGS and settings.get(key, value) != value
    }
    if int(settings.get("max.message.bytes", "0")) < clients.RECORD_BYTES_MAX:
        wrong["max.message.bytes"] = str(clients.RECORD_BYTES_MAX)
    if wrong:
        has = ", ".join(f"{key}={settings.get(key)}" for key in wrong)
        needs = ", ".join(f"{key}={value}" for key, value in wrong.items())
        raise port.LogError(
            f"topic {name} has {has}; the log needs other settings. Set with kafka-configs --alter: {needs}"
        )


_FOR_EVER: Final = "-1"
_COMPACTED: Final = {
    "segment.bytes": str(64 * 1_048_576),
    "max.compaction.lag.ms": str(3_600_000),
    "message.timestamp.type": "LogAppendTime",
}
"""Settings of the topic of snapshots, which is compacted early, so that a search for the newest one reads little.

``shard_ownership.check_clock`` needs the brokers' timestamps.
"""

_RETENTION_SETTINGS: Final = ("cleanup.policy", "retention.ms", "retention.bytes")


async def check_broker_limits(admin: AIOKafkaAdminClient) -> None:
    """Log a warning for brokers that let foreign transactions stay open for longer than a minute.

    An open transaction of another producer blocks all readers of its partitions until the brokers abort it, after
    ``transaction.max.timeout.ms`` at the latest (15 minutes by default).
    Raises LogError for brokers whose limit is shorter than Reballast's own transactions may take.
    """
    try:
        limits = await _broker_limits(admin)
    except KafkaError as error:
        _log.warning("transaction limit not checked", setting=LIMIT_SETTING, reason=type(error).__name__)
        return
    if not limits:
        return
    if (least := min(limits.values())) < clients.TRANSACTION_MS:
        raise port.LogError(
            f"the brokers allow transactions of {least} ms, and {clients.TRANSACTION_MS} are needed;"
            f" set {LIMIT_SETTING}={FOREIGN_MS_MAX} on each broker"
        )
    if loose := {broker: limit for broker, limit in limits.items() if limit > FOREIGN_MS_MAX}:
        _log.warning(
            "brokers allow long foreign transactions; an open one blocks all readers",
            brokers=sorted(loose),
            milliseconds=max(loose.values()),
            remedy=f"set {LIMIT_SETTING}={FOREIGN_MS_MAX} on each broker",
        )


async def _broker_limits(admin: AIOKafkaAdminClient) -> Mapping[int, int]:
    """Return the limit of each broker in milliseconds; raises KafkaError."""
    cluster: dict[str, Any] = await admin.describe_cluster()
    resources = [
        ConfigResource(ConfigResourceType.BROKER, str(broker["node_id"])) for broker in cluster["brokers"]
    ]
    limits: dict[int, int] = {}
    for answer in await admin.describe_configs(resources):
        described: list[Any] = getattr(answer, "resources")  # noqa: B009
        for code, message, _kind, name, entries in described:
            if code:
                raise for_code(code)(message)
            limits |= {int(name): int(entry[1]) for entry in entries if entry[0] == LIMIT_SETTING}
    return limits
