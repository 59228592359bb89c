"""The library's clients, with the settings that every one of ours needs.

Time limits are shorter than the library's, so that a broker that hangs stops nobody for longer than ten seconds, or
than REBALLAST_REQUEST_MS says.
"""

# The library has annotations, but does not say so to type checkers.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import asyncio
import logging
import os
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

import anyio
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError, KafkaTimeoutError
from aiokafka.producer import sender
from aiokafka.producer.message_accumulator import MessageAccumulator, MessageBatch

from engine import diagnostics
from engine.log import port
from engine.log.kafka.address import Address
from events import breaking, limits

Slot = tuple[str, int]
"""A topic, as the engine names it, and a partition."""

Consumer: TypeAlias = "AIOKafkaConsumer"
Producer: TypeAlias = "AIOKafkaProducer"

REQUEST_MS: Final = 10_000
REQUEST_VARIABLE: Final = "REBALLAST_REQUEST_MS"
_METADATA_MS: Final = 5_000
RECORD_BYTES_MAX: Final = limits.RECORD_BYTES_MAX + limits.HEADER_BYTES_MAX + limits.KEY_BYTES_MAX + 1_024
"""The largest record of a topic, with what Kafka puts round it."""

_REQUEST_BYTES_MAX: Final = 2 * RECORD_BYTES_MAX
BATCH_BYTES: Final = limits.RECORD_BYTES_MAX
"""The most that records of one batch take before they are compressed: what a topic accepts, but for the headers."""

_FETCH_BYTES: Final = 4 * 1_048_576
_FETCH_WAIT_MS: Final = 100
DELIVERY_S: Final = 30.0
TRANSACTION_MS: Final = 60_000
"""When a broker ends a transaction whose writer fell silent."""

_STOP_S: Final = 10.0
"""Whoever waits for a client to end does so no longer; its connections are closed then all the same."""

_log = diagnostics.logger(__name__)

# What the library retries is no news; who wants to hear of it gives its logger a handler of his own.
logging.getLogger("aiokafka").addHandler(logging.NullHandler())

# The library waits 20 ms before each transaction's first request; a fenced producer is the rare case, not the rule.
sender.BACKOFF_OVERRIDE = 0.001

breaking.install()


def consumer(address: Address, *, sees_open: bool = False) -> Consumer:
    """A consumer that sees what was committed, and nothing else; or open transactions too."""
    return AIOKafkaConsumer(
        **_common(address),
        enable_auto_commit=False,
        auto_offset_reset="none",
        isolation_level="read_uncommitted" if sees_open else "read_committed",
        fetch_max_wait_ms=_FETCH_WAIT_MS,
        max_partition_fetch_bytes=_FETCH_BYTES,
    )


def member(address: Address, group: str, session_ms: int, heartbeat_ms: int, assignor: type) -> Consumer:
    """A consumer that is there to be a member of a group."""
    return AIOKafkaConsumer(
        **_common(address),
        group_id=address.topic(group),
        enable_auto_commit=False,
        auto_offset_reset="latest",
        session_timeout_ms=session_ms,
        heartbeat_interval_ms=heartbeat_ms,
        partition_assignment_strategy=(assignor,),
    )


def producer(address: Address, transactional_id: str | None = None) -> Producer:
    """A producer whose repetitions have no effect; with an id, one that writes in transactions."""
    more: dict[str, Any] = {}
    if transactional_id is not None:
        more = {"transactional_id": transactional_id, "transaction_timeout_ms": TRANSACTION_MS}
    found = AIOKafkaProducer(
        **_common(address),
        acks="all",
        enable_idempotence=True,
        compression_type="lz4",
        max_batch_size=BATCH_BYTES,
        max_request_size=_REQUEST_BYTES_MAX,
        **more,
    )
    # The library gives up what a partition without a leader can't take after the time of one request; electing a leader
    # may take longer.
    _accumulator(found)._batch_ttl = DELIVERY_S  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    return found


async def introduce(consumer: Consumer, partitions: Iterable[TopicPartition]) -> None:
    """Lets a consumer find out about topics side by side: asked for all at once, it pauses after each new one.

    Raises KafkaError where the brokers don't tell.
    """
    each_topic = {partition.topic: partition for partition in partitions}
    await asyncio.gather(*(consumer.end_offsets([partition]) for partition in each_topic.values()))


async def stopped(producer: Producer) -> None:
    """Ends a producer, also one that failed: what it has not delivered it gives up."""
    with anyio.CancelScope(shield=True):
        accumulator = _accumulator(producer)
        accumulator.fail_all(KafkaTimeoutError())
        for batches in (*accumulator._batches.values(), accumulator._pending_batches):  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
            for batch in batches:
                _unheard(batch)
        stopping = asyncio.ensure_future(producer.stop())
        await asyncio.wait([stopping], timeout=_STOP_S)
        if not stopping.done():
            _log.warning("a producer does not end, left alone")
            stopping.cancel()
            await asyncio.wait([stopping])
            await producer.client.close()
        elif (error := stopping.exception()) and not isinstance(error, (KafkaError, AssertionError)):
            raise error


async def closed(consumer: Consumer) -> None:
    """Ends a consumer, also one whose brokers are gone: the library's own cancelled requests are nobody else's."""
    closing = asyncio.ensure_future(consumer.stop())
    with anyio.CancelScope(shield=True):
        await asyncio.wait([closing])
    if not closing.cancelled() and (error := closing.exception()) and not isinstance(error, KafkaError):
        raise error


def _unheard(batch: MessageBatch) -> None:
    """Nobody waits for a batch to be taken that never will be; the library would complain of that."""
    waiter = batch._drain_waiter  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    if waiter.done() and not waiter.cancelled():
        waiter.exception()


def failure(producer: Producer) -> BaseException | None:
    """Why the producer's last transaction failed; None where it did not."""
    manager = producer._txn_manager  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    ended = None if manager is None else manager.wait_for_transaction_end()
    return ended.exception() if ended is not None and ended.done() and not ended.cancelled() else None


def _accumulator(producer: Producer) -> MessageAccumulator:
    """Where a producer keeps what it has still to deliver; there is no public way to it."""
    return producer._message_accumulator  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def admin(address: Address) -> AIOKafkaAdminClient:
    """A client that makes and describes topics."""
    return AIOKafkaAdminClient(**_common(address))


def partition(address: Address, slot: Slot) -> TopicPartition:
    """A slot, as the library names it."""
    return TopicPartition(address.topic(slot[0]), slot[1])


def slot(address: Address, at: TopicPartition) -> Slot:
    """A partition of the library's, as the engine names it."""
    return at.topic[len(address.prefix) :], at.partition


def failed(what: str, error: KafkaError) -> port.LogError:
    """What the library raised, as the engine knows it."""
    return port.LogError(f"{what}: {type(error).__name__}: {error}")


def chosen_ms(variable: str, otherwise: int) -> int:
    """The milliseconds that a variable of the environment says. Raises LogError where that is no number."""
    text = os.environ.get(variable, str(otherwise))
    if not text.isdecimal() or not int(text):
        raise port.LogError(f"{variable} is {text!r}; write milliseconds, {otherwise} for example")
    return int(text)


def _common(address: Address) -> dict[str, Any]:
    return {
        "bootstrap_servers": address.servers,
        "request_timeout_ms": chosen_ms(REQUEST_VARIABLE, REQUEST_MS),
        "metadata_max_age_ms": _METADATA_MS,
        "retry_backoff_ms": 50,
        **address.security.options(),
    }
