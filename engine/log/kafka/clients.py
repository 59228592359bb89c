"""Clients of aiokafka, with the settings that all parts of the engine need.

Time limits are shorter than aiokafka's: a hanging broker blocks a caller for at most ten seconds, or
REBALLAST_REQUEST_MS.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import Generator, Iterable
from typing import Any, Final, TypeAlias, TypeVar

import anyio
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError
from aiokafka.producer import sender

from engine import diagnostics
from engine.log import port
from engine.log.kafka.address import Address
from events import limits
from events.client import broken_connections, undelivered

Slot = tuple[str, int]
"""A partition: the topic's name without the log's prefix, and the number of the partition."""

Consumer: TypeAlias = "AIOKafkaConsumer"
Producer: TypeAlias = "AIOKafkaProducer"
_Client = TypeVar("_Client", bound=AIOKafkaConsumer | AIOKafkaProducer)

REQUEST_MS: Final = 10_000
REQUEST_VARIABLE: Final = "REBALLAST_REQUEST_MS"
_METADATA_MS: Final = 5_000
RECORD_BYTES_MAX: Final = limits.RECORD_BYTES_MAX + limits.HEADER_BYTES_MAX + limits.KEY_BYTES_MAX + 1_024
"""Maximum size in bytes of a record in a topic, including Kafka's overhead."""

_REQUEST_BYTES_MAX: Final = 2 * RECORD_BYTES_MAX
BATCH_BYTES: Final = limits.RECORD_BYTES_MAX
"""Maximum size in bytes of a batch before compression."""

FETCH_BYTES: Final = 4 * 1_048_576
"""Maximum size in bytes of the records of one partition that a consumer fetches in one request."""

_FETCH_WAIT_MS: Final = 100
DELIVERY_S: Final = 30.0
TRANSACTION_MS: Final = 60_000
"""Milliseconds after which a broker aborts the transaction of a producer that sends nothing."""

AFTER_FAILURE_S: Final = 0.5
"""Seconds to wait after a failed request before the next one."""

_STOP_S: Final = 10.0
"""Seconds to wait for a client to stop; after that its connections are closed."""

_log = diagnostics.logger(__name__)

# aiokafka logs every retry, which only repeats the warnings of this package; to see its log, add a handler.
logging.getLogger("aiokafka").addHandler(logging.NullHandler())
logging.getLogger("aiokafka").propagate = False

# While brokers still complete the producer's previous transaction, as between consecutive steps, aiokafka
# retries after 20 ms; retry after 1 ms.
sender.BACKOFF_OVERRIDE = 0.001

broken_connections.install()


def consumer(address: Address, *, sees_open: bool = False) -> Consumer:
    """Return a consumer of committed records; with ``sees_open`` also of records in open transactions."""
    return AIOKafkaConsumer(
        **_common(address),
        enable_auto_commit=False,
        auto_offset_reset="none",
        isolation_level="read_uncommitted" if sees_open else "read_committed",
        fetch_max_wait_ms=_FETCH_WAIT_MS,
        max_partition_fetch_bytes=FETCH_BYTES,
    )


def member(address: Address, group: str, session_ms: int, heartbeat_ms: int, assignor: type) -> Consumer:
    """Return a consumer that is a member of a consumer group and does not commit offsets."""
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
    """Return an idempotent producer; with a transactional id, one that writes in transactions."""
    more: dict[str, Any] = {}
    if transactional_id is not None:
        more = {"transactional_id": transactional_id, "transaction_timeout_ms": TRANSACTION_MS}
    created = AIOKafkaProducer(
        **_common(address),
        acks="all",
        enable_idempotence=True,
        compression_type="lz4",
        max_batch_size=BATCH_BYTES,
        max_request_size=_REQUEST_BYTES_MAX,
        **more,
    )
    undelivered.limit_delivery(created, DELIVERY_S)
    return created


class SharedProducer:
    """A producer without transactions that many tasks share. It starts at its first use, and again after a failure."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._producer: Producer | None = None
        self._starting = asyncio.Lock()

    async def started(self) -> Producer:
        """Return the producer. Raises KafkaError if it must be started and no broker answers."""
        async with self._starting:
            if self._producer is None:
                self._producer = await start(producer(self._address))
            return self._producer

    async def drop(self, failed: Producer) -> None:
        """Drop a producer that lost a batch.

        The producer's sequence numbers in the batch's partition have a gap, so brokers would refuse the next batch
        there.
        """
        if failed is self._producer:
            self._producer = None
            await stop(failed)

    async def close(self) -> None:
        """Stop the producer after it has sent what was submitted."""
        if self._producer is not None:
            await stop(self._producer)


async def start(client: _Client) -> _Client:
    """Start a client and return it; if that fails or is cancelled, stop it and raise the error."""
    try:
        await client.start()
    except BaseException:
        # A client that failed to start keeps its connections until it is stopped.
        if isinstance(client, AIOKafkaConsumer):
            await close(client)
        else:
            await stop(client)
        raise
    return client


async def load_metadata(consumer: Consumer, partitions: Iterable[TopicPartition]) -> None:
    """Load the metadata of all topics by parallel calls; a single call would pause after each topic unknown so far.

    Raises KafkaError if the brokers do not answer.
    """
    each_topic = {partition.topic: partition for partition in partitions}
    await asyncio.gather(*(consumer.end_offsets([partition]) for partition in each_topic.values()))


async def stop(producer: Producer) -> None:
    """Stop a producer, also a failed one; undelivered records are dropped."""
    with anyio.CancelScope(shield=True):
        # Drop undelivered batches: ``stop`` would wait for them even if no broker accepts them.
        undelivered.drop(producer)
        stopping = asyncio.ensure_future(producer.stop())
        await asyncio.wait([stopping], timeout=_STOP_S)
        if not stopping.done():
            _log.warning("producer did not stop in time; abandoned")
            stopping.cancel()
            await asyncio.wait([stopping])
        error = None if stopping.cancelled() else stopping.exception()
        if error is not None and not isinstance(error, (KafkaError, AssertionError)):
            # Not raised: the caller no longer uses this producer, so its failure does not matter.
            _log.warning("producer failed to stop; abandoned", error=repr(error))
        if error is not None or stopping.cancelled():
            # ``stop`` closes the connections last, so they may still be open.
            await producer.client.close()


async def close(consumer: Consumer) -> None:
    """Stop a consumer, even if no broker responds; ignore errors of Kafka and cancellations of aiokafka's requests."""
    closing = asyncio.ensure_future(consumer.stop())
    with anyio.CancelScope(shield=True):
        await asyncio.wait([closing])
    if not closing.cancelled() and (error := closing.exception()) and not isinstance(error, KafkaError):
        raise error


def failure(producer: Producer) -> BaseException | None:
    """Return the error of the producer's last transaction; None if it succeeded."""
    manager = producer._txn_manager  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    ended = None if manager is None else manager.wait_for_transaction_end()
    return ended.exception() if ended is not None and ended.done() and not ended.cancelled() else None


def add_to_transaction(producer: Producer, partitions: Iterable[TopicPartition]) -> None:
    """Add partitions to the producer's open transaction, so that its end is recorded in them too."""
    manager = producer._txn_manager  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    if manager is not None:
        for partition in partitions:
            manager.maybe_add_partition_to_txn(partition)


def admin(address: Address) -> AIOKafkaAdminClient:
    """Return a client that creates and describes topics."""
    return AIOKafkaAdminClient(**_common(address))


def partition(address: Address, slot: Slot) -> TopicPartition:
    """Convert a slot to a partition of aiokafka: the topic gets the log's prefix."""
    return TopicPartition(address.topic(slot[0]), slot[1])


def slot(address: Address, at: TopicPartition) -> Slot:
    """Convert a partition of aiokafka to a slot: the topic loses the log's prefix."""
    return at.topic[len(address.prefix) :], at.partition


@contextlib.contextmanager
def converted(failure_text: str) -> Generator[None]:
    """Convert errors of aiokafka into LogError; ``failure_text`` begins its message."""
    try:
        yield
    except KafkaError as error:
        # The text of a KafkaError begins with the name of its class.
        raise port.LogError(f"{failure_text}: {error}") from error


def chosen_ms(variable: str, otherwise: int) -> int:
    """Return the milliseconds in an environment variable, or ``otherwise`` if it is unset.

    Raises LogError unless the value is positive.
    """
    text = os.environ.get(variable, str(otherwise))
    if not text.isdecimal() or not int(text):
        raise port.LogError(f"{variable} is {text!r}; write milliseconds, for example {otherwise}")
    return int(text)


def _common(address: Address) -> dict[str, Any]:
    return {
        "bootstrap_servers": address.servers,
        "request_timeout_ms": chosen_ms(REQUEST_VARIABLE, REQUEST_MS),
        "metadata_max_age_ms": _METADATA_MS,
        "retry_backoff_ms": 50,
        **address.security.options(),
    }
