"""Append records: inputs of the write API and of members as batches, steps as transactions.

Inputs are written without transactions. The transaction of a killed or frozen process stays open until the
brokers abort it, and until then later records in every partition that it touched stay invisible to readers.
Records that must be written together form one batch of one partition, which the brokers accept or refuse as a
whole.
"""

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from typing import Final

import anyio
from aiokafka.errors import IllegalOperation, KafkaError, KafkaTimeoutError
from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.structs import RecordMetadata
from msgspec import Struct

from engine import shared_waits
from engine.log import port
from engine.log.kafka import clients, record_format
from engine.log.kafka.address import Address
from engine.log.kafka.clients import Slot
from events import records
from events.records import Record, StoredRecord

_GROUP_RECORDS_MAX: Final = 5_000
COMMIT_S: Final = clients.DELIVERY_S + 15.0
"""Time limit in seconds of an append or a transaction.

After this time the call fails; a transaction stays open until another producer with its transactional id ends it.
"""


class _Part(Struct):
    """The records of one append in one partition; the future ``outcome`` gets their offsets, or the error."""

    records: list[Record]
    outcome: "asyncio.Future[list[int] | Exception]"


class Appender:
    """Appends inputs: each record once, consecutive records of one key atomically."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._producer = clients.SharedProducer(address)
        self._queues: dict[Slot, list[_Part]] = {}
        self._writing: dict[Slot, asyncio.Task[None]] = {}

    async def open(self) -> None:
        """Connect; raises KafkaError if no broker answers."""
        await self._producer.started()

    async def append(self, batch: Sequence[Record]) -> list[StoredRecord]:
        """Append a batch; raises OutcomeUnknownError if some records may not have been appended.

        If the caller is cancelled, its records are appended anyway.
        """
        if not batch:
            return []
        parts = [
            (indexes, self._put(slot, [batch[index] for index in indexes]))
            for slot, indexes in _indexes(batch).items()
        ]
        await asyncio.wait([part.outcome for _, part in parts])
        offsets = [0] * len(batch)
        for indexes, part in parts:
            outcome = part.outcome.result()
            if isinstance(outcome, Exception):
                message = (
                    f"it is unknown whether the records were appended: {type(outcome).__name__}: {outcome}"
                )
                raise port.OutcomeUnknownError(message) from outcome
            for index, offset in zip(indexes, outcome, strict=True):
                offsets[index] = offset
        return [records.stored(record, offset, 0) for record, offset in zip(batch, offsets, strict=True)]

    async def close(self) -> None:
        """Stop the producer after writing everything that was submitted."""
        if self._writing:
            await asyncio.wait(self._writing.values())
        await self._producer.close()

    def _put(self, slot: Slot, batch: list[Record]) -> _Part:
        part = _Part(batch, asyncio.get_running_loop().create_future())
        self._queues.setdefault(slot, []).append(part)
        # One task per partition: a partition without a leader must not block the others.
        if slot not in self._writing:
            self._writing[slot] = asyncio.create_task(self._write(slot))
        return part

    async def _write(self, slot: Slot) -> None:
        """Append the waiting parts of a partition.

        Parts that arrive meanwhile are written together in the next round.
        """
        queue = self._queues[slot]
        try:
            while queue:
                group: list[_Part] = []
                size = 0
                while queue and size < _GROUP_RECORDS_MAX:
                    group.append(queue.pop(0))
                    size += len(group[-1].records)
                await self._write_group(group)
        finally:
            # There was no await since the queue became empty, so a part that is added later starts another task.
            del self._writing[slot]

    async def _write_group(self, group: Sequence[_Part]) -> None:
        batch = [record for part in group for record in part.records]
        producer: clients.Producer | None = None
        try:
            async with asyncio.timeout(COMMIT_S):
                producer = await self._producer.started()
                offsets = iter(await send(producer, self._address, batch))
        except Exception as error:  # noqa: BLE001  # every caller must get an outcome, whatever the error
            for part in group:
                part.outcome.set_result(error)
            if producer is not None:
                await self._producer.drop(producer)
        else:
            for part in group:
                part.outcome.set_result(list(itertools.islice(offsets, len(part.records))))


def _indexes(batch: Sequence[Record]) -> dict[Slot, list[int]]:
    """Return the indexes of the records of each partition."""
    indexes: dict[Slot, list[int]] = {}
    for index, record in enumerate(batch):
        indexes.setdefault((record.topic, record.partition), []).append(index)
    return indexes


async def send(producer: clients.Producer, address: Address, batch: Sequence[Record]) -> list[int]:
    """Send records and return their offsets when all in-sync replicas have them.

    Builds the batches itself and sends the batches of a partition one after the other: this costs a tenth of
    sending the records one by one.
    """
    sent: list[tuple[list[int], asyncio.Future[RecordMetadata]]] = []
    try:
        for slot, indexes in _indexes(batch).items():
            for part, builder in batches(producer, batch, indexes):
                future = await producer.send_batch(builder, address.topic(slot[0]), partition=slot[1])
                sent.append((part, future))
        await asyncio.gather(*(future for _, future in sent))
    except BaseException:
        for _, future in sent:
            future.add_done_callback(shared_waits.retrieve_exception)
        raise
    offsets = [0] * len(batch)
    for part, future in sent:
        first = future.result().offset
        for position, index in enumerate(part):
            offsets[index] = first + position
    return offsets


def batches(
    producer: clients.Producer, batch: Sequence[Record], indexes: Sequence[int]
) -> Iterator[tuple[list[int], BatchBuilder]]:
    """Yield batches of the records with these indexes, each with the indexes of its records.

    Consecutive records of one key share a batch unless they exceed the maximum size of a batch.
    """
    builder, part = producer.create_batch(), list[int]()
    for _key, run in itertools.groupby(indexes, lambda index: batch[index].key):
        run_indexes = list(run)
        if part and len(run_indexes) > 1 and builder.size() + _size(batch, run_indexes) > clients.BATCH_BYTES:
            builder.close()
            yield part, builder
            builder, part = producer.create_batch(), []
        for index in run_indexes:
            record = batch[index]
            key, headers = record.key.encode(), record_format.headers(record)
            if builder.append(timestamp=None, key=key, value=record.value, headers=headers) is None:
                builder.close()
                yield part, builder
                # An empty batch accepts any record, whatever its size.
                builder, part = producer.create_batch(), []
                builder.append(timestamp=None, key=key, value=record.value, headers=headers)
            part.append(index)
    builder.close()
    yield part, builder


def _size(batch: Sequence[Record], indexes: Sequence[int]) -> int:
    """Return an upper bound of the bytes that the records take in a batch."""
    return sum(
        DefaultRecordBatchBuilder.estimate_size_in_bytes(
            record.key.encode(), record.value, [*record_format.headers(record)]
        )
        for record in (batch[index] for index in indexes)
    )


async def commit(producer: clients.Producer, address: Address, batch: Sequence[Record]) -> list[int]:
    """Send records in one transaction; return their offsets after the commit.

    Cancellation waits for the outcome, because a cancelled commit continues anyway. Raises the error of the
    transaction, such as ProducerFenced. Raises KafkaTimeoutError if the transaction does not end in time; a new
    producer with the same transactional id must then end it.
    """
    offsets: list[int] = []
    with anyio.CancelScope(shield=True):
        try:
            async with asyncio.timeout(COMMIT_S):
                await producer.begin_transaction()
                offsets = await send(producer, address, batch)
                await producer.commit_transaction()
        except TimeoutError as error:
            raise KafkaTimeoutError(f"a transaction did not end within {COMMIT_S:.0f} s") from error
        except (IllegalOperation, KafkaError) as error:
            # Always retrieve the failure: aiokafka logs one that was never retrieved.
            failure = clients.failure(producer)
            if isinstance(error, KafkaError):
                raise
            # After a failure half-way aiokafka raises IllegalOperation, as if no transaction had begun.
            raise (failure or KafkaError(str(error))) from error
    return offsets
