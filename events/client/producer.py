"""Kafka producer for other systems: appends typed events to the log of a Reballast.

    async with producer.Producer("broker:9092", source="/pipelines/shop") as shop:
        await shop.append(clusters.ClusterTainted(name="member1", taint=clusters.Taint(...)))

The client is idempotent and waits for all in-sync replicas. It reports only whether an event was appended;
the event's effect shows in the topics that the engine writes (``events/WIRE.md``). Only this module of the package
creates a Kafka client.
"""

# aiokafka has annotations but no py.typed marker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
import asyncio
import time
import uuid
from collections.abc import Iterable, Mapping
from typing import Final, Self

from aiokafka import AIOKafkaProducer
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    InvalidTopicError,
    KafkaError,
    MessageSizeTooLargeError,
    PolicyViolationError,
    RecordListTooLargeError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)
from aiokafka.structs import RecordMetadata

from events import kube_objects, limits, records, shapes, topics
from events.client import broken_connections, connection_options, statements, undelivered

PENDING_BYTES_MAX: Final = 32 * 1024 * 1024
"""Maximum size of the unacknowledged records, in bytes; the default of Kafka's Java client."""

ACKNOWLEDGED_MS_MAX: Final = 30_000
REQUEST_MS_MAX: Final = 10_000
"""Timeout of one request to a broker; the client then repeats the request."""

_LINGER_MS: Final = 2
_BATCH_BYTES: Final = 256 * 1024
_RECORD_OVERHEAD_BYTES: Final = 1024
_REQUEST_BYTES_MAX: Final = (
    limits.RECORD_BYTES_MAX + limits.HEADER_BYTES_MAX + limits.KEY_BYTES_MAX + _RECORD_OVERHEAD_BYTES
)
_NOT_APPENDED: Final = (
    ClusterAuthorizationFailedError,
    InvalidTopicError,
    MessageSizeTooLargeError,
    PolicyViolationError,
    RecordListTooLargeError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)
"""Errors after which the record is certainly not in the log."""


class ProducerError(Exception):
    """An event could not be appended; the message contains a remedy."""


class RefusedError(ProducerError):
    """The form of the event is invalid, so every reader would refuse it; nothing was sent."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class TopicError(ProducerError):
    """The topic does not exist, has the wrong partition count, or is forbidden to this user; nothing was appended."""


class OutcomeUnknownError(ProducerError):
    """No acknowledgement arrived in time; the event may or may not be in the log.

    Append it again with the same id: if it is in the log already, the repetition has no effect.
    """

    def __init__(self, event_id: str, reason: str) -> None:
        super().__init__(f"{event_id}: {reason}; retry with the same id: a duplicate has no effect")
        self.event_id = event_id


class Producer:
    """Appends events with one CloudEvents ``source``; an async context manager, for one event loop.

    ``enqueue`` returns once the event fits in the buffer, ``append`` once the record is durable. Records of
    one partition keep their order. ``options`` are passed to aiokafka and override all other settings.
    """

    def __init__(
        self,
        servers: str,
        *,
        source: str,
        prefix: str = topics.PREFIX,
        security: connection_options.Security = connection_options.NO_SECURITY,
        pending_bytes_max: int = PENDING_BYTES_MAX,
        acknowledged_ms_max: int = ACKNOWLEDGED_MS_MAX,
        options: Mapping[str, object] | None = None,
    ) -> None:
        self.source = source
        self._prefix = prefix
        self._acknowledged_s_max = acknowledged_ms_max / 1000
        self._options: dict[str, object] = {
            "bootstrap_servers": servers,
            "acks": "all",
            "enable_idempotence": True,
            "compression_type": "lz4",
            "linger_ms": _LINGER_MS,
            "max_batch_size": _BATCH_BYTES,
            "max_request_size": _REQUEST_BYTES_MAX,
            "request_timeout_ms": REQUEST_MS_MAX,
            **security.options(),
            **(options or {}),
        }
        self._buffer = _ByteBudget(pending_bytes_max)
        self._turn = asyncio.Lock()
        self._client: AIOKafkaProducer | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._failed = False
        self._checked: set[str] = set()
        # aiokafka's futures of the events that wait for their acknowledgement, oldest first, with the loop
        # time at which they were sent. A caller that is cancelled cancels its own future, not these.
        self._pending: dict[asyncio.Future[RecordMetadata], float] = {}
        # Random prefix and counter for the ids of events that have neither an id nor a time.
        self._name = uuid.uuid4().hex
        self._count = 0

    async def __aenter__(self) -> Self:
        self._client = await self._connected()
        self._watching = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Wait until each pending event is durable or has failed, then close the connections."""
        try:
            await self._close()
        finally:
            if self._watching is not None:
                self._watching.cancel()

    async def append(self, event: shapes.Event | statements.Statement) -> records.Position:
        """Append one event and return its position once it is durable. Raises ProducerError."""
        return await (await self.enqueue(event))

    async def append_all(
        self, batch: Iterable[shapes.Event | statements.Statement]
    ) -> list[records.Position]:
        """Append several events in order and return their positions once all are durable.

        Nothing is sent if the form of an event is invalid. This is not a transaction: after any other
        ProducerError some of the events may be in the log; append all of them again with the same ids.
        """
        made = [self._record(event) for event in batch]
        pending = [await self._enqueue(record) for record in made]
        return list(await asyncio.gather(*pending))

    async def enqueue(self, event: shapes.Event | statements.Statement) -> asyncio.Future[records.Position]:
        """Send one event as soon as the buffer has space; the future returns its position once it is durable.

        The future fails with a ProducerError. Raises RefusedError, TopicError, or OutcomeUnknownError if the
        buffer did not drain in time.
        """
        return await self._enqueue(self._record(event))

    async def flush(self) -> None:
        """Wait until each event that was sent so far is durable or has failed; its result is in its future."""
        if self._pending:
            await asyncio.wait(list(self._pending))

    def _record(self, event: shapes.Event | statements.Statement) -> records.Record:
        statement = event if isinstance(event, statements.Statement) else statements.Statement(data=event)
        self._count += 1
        now_ms = time.time_ns() // 1_000_000
        try:
            return statements.record_of(statement, self.source, now_ms, f"{self._name}-{self._count}")
        except kube_objects.Refusal as refusal:
            raise RefusedError(refusal.field, refusal.reason) from None

    async def _enqueue(self, record: records.Record) -> asyncio.Future[records.Position]:
        size = len(record.value) + len(record.headers_json) + len(record.key) + _RECORD_OVERHEAD_BYTES
        headers = [(name, text.encode()) for name, text in record.headers.items()]
        # One at a time, so that events that wait for buffer space keep their order.
        async with self._turn:
            await self._buffer.take(size)
            try:
                client = await self._usable()
                await self._check_topic(client, record.topic)
                sent = await client.send(
                    self._prefix + record.topic,
                    record.value,
                    record.key.encode(),
                    record.partition,
                    headers=headers,
                )
            # BaseException: a cancelled call must release its buffer space too.
            except BaseException as error:
                self._buffer.release(size)
                if isinstance(error, KafkaError):
                    raise self._meaning(error, record) from error
                raise
            return self._follow(sent, record, size)

    def _follow(
        self, sent: asyncio.Future[RecordMetadata], record: records.Record, size: int
    ) -> asyncio.Future[records.Position]:
        """Return a future that gets the record's position or a ProducerError when aiokafka's future ``sent`` is done.

        The buffer space is released at the same time.
        """
        loop = asyncio.get_running_loop()
        appended: asyncio.Future[records.Position] = loop.create_future()
        self._pending[sent] = loop.time()

        def settle(done: asyncio.Future[RecordMetadata]) -> None:
            del self._pending[done]
            self._buffer.release(size)
            error = done.exception()
            if error is not None:
                self._failed = True
            if appended.done():
                return  # cancelled by the caller
            if error is None:
                appended.set_result(records.Position(record.topic, record.partition, done.result().offset))
            else:
                appended.set_exception(self._meaning(error, record))

        sent.add_done_callback(settle)
        return appended

    def _meaning(self, error: BaseException, record: records.Record) -> ProducerError:
        topic = self._prefix + record.topic
        if isinstance(error, _NOT_APPENDED):
            return TopicError(
                f"{topic}: {type(error).__name__}: check the topic's settings and this user's rights"
            )
        return OutcomeUnknownError(record.headers["ce_id"], f"{topic}: {type(error).__name__}")

    async def _usable(self) -> AIOKafkaProducer:
        """Return a connected client.

        After a failure it is a new one: the failed batch may leave a gap in the sequence numbers of the
        idempotent producer.
        """
        if self._failed:
            await self._close()
            self._failed = False
        if self._client is None:
            self._client = await self._connected()
        return self._client

    async def _connected(self) -> AIOKafkaProducer:
        broken_connections.install()
        client = AIOKafkaProducer(**self._options)  # pyright: ignore[reportArgumentType]
        undelivered.limit_delivery(client, self._acknowledged_s_max)
        try:
            await client.start()
        except KafkaError as error:
            await client.stop()
            servers = self._options["bootstrap_servers"]
            raise ProducerError(
                f"{servers}: {error}; check the address, TLS, the user and its rights"
            ) from error
        except BaseException:
            await client.stop()
            raise
        return client

    async def _close(self) -> None:
        if self._client is None:
            return
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._client.stop())
        stopping = self._stopping
        try:
            # Shielded: a client whose stop is cancelled keeps its tasks and connections.
            await asyncio.shield(stopping)
        finally:
            # Keep the reference while the client stops: the watch task must be able to fail events that cannot be
            # delivered.
            if stopping.done():
                self._client = self._stopping = None

    async def _check_topic(self, client: AIOKafkaProducer, name: str) -> None:
        """Check the partition count once per topic; with another count, keys would fall on the wrong partitions."""
        if name in self._checked:
            return
        actual, expected = (
            len(await client.partitions_for(self._prefix + name)),
            topics.TOPICS[name].partitions,
        )
        if actual != expected:
            raise TopicError(
                f"{self._prefix}{name} has {actual} partitions, not {expected}: not a topic created by Reballast"
            )
        self._checked.add(name)

    async def _watch(self) -> None:
        """Fail pending events that were not acknowledged in time; an idempotent client would retry forever."""
        while True:
            await asyncio.sleep(self._acknowledged_s_max / 10)
            oldest = next(iter(self._pending.values()), None)
            late = (
                oldest is not None and oldest + self._acknowledged_s_max < asyncio.get_running_loop().time()
            )
            if late and self._client is not None:
                undelivered.drop(self._client)


class _ByteBudget:
    """Limit on pending bytes: ``take`` waits until there is space.

    One record larger than the limit is accepted when nothing else is pending.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._taken = 0
        self._released = asyncio.Event()

    async def take(self, size: int) -> None:
        while self._taken and self._taken + size > self._bytes_max:
            self._released.clear()
            await self._released.wait()
        self._taken += size

    def release(self, size: int) -> None:
        self._taken -= size
        self._released.set()
