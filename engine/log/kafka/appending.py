"""Appending inputs: what a door, a member or a tool says.

One record goes at once; several go in a transaction, so that all or none of them count. Those who wait meanwhile share
the next one. Ids of transactions are the process's own: nobody takes over what a process did not finish.
"""

# The library has annotations, but does not say so to type checkers.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import asyncio
import contextlib
import secrets
from collections.abc import Iterator, Sequence
from typing import Final

import anyio
from aiokafka.errors import IllegalOperation, KafkaError, KafkaTimeoutError
from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.structs import RecordMetadata
from msgspec import Struct

from engine.log import port
from engine.log.kafka import clients, wire
from engine.log.kafka.address import Address
from engine.log.kafka.clients import Slot
from events import records
from events.records import Record, StoredRecord

_GROUP_RECORDS_MAX: Final = 5_000
_ID_BYTES: Final = 8
COMMIT_S: Final = clients.DELIVERY_S + 15.0
"""A transaction that takes longer is given up: it stays open until another producer of the same id ends it."""


class _Waiting(Struct):
    batch: Sequence[Record]
    done: asyncio.Future[list[StoredRecord]]


class Appender:
    """Appends batches, each whole or not at all."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._id = address.topic(f"inputs-{secrets.token_hex(_ID_BYTES)}")
        self._single = clients.producer(address)
        self._many: clients.Producer | None = None
        self._queue: list[_Waiting] = []
        self._writing: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Connects."""
        await self._single.start()

    async def append(self, batch: Sequence[Record]) -> list[StoredRecord]:
        """Appends a batch; raises OutcomeUnknownError where it can't tell whether it did."""
        if not batch:
            return []
        waiting = _Waiting(batch, asyncio.get_running_loop().create_future())
        self._queue.append(waiting)
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())
        # Shielded: what was handed over is appended, whoever gave up waiting for it.
        return await asyncio.shield(waiting.done)

    async def close(self) -> None:
        """Ends the producers, once what was handed over is written."""
        if self._writing is not None:
            await asyncio.wait([self._writing])
        await clients.stopped(self._single)
        if self._many is not None:
            await clients.stopped(self._many)

    async def _write(self) -> None:
        while self._queue:
            group: list[_Waiting] = []
            size = 0
            while self._queue and size < _GROUP_RECORDS_MAX:
                waiting = self._queue.pop(0)
                group.append(waiting)
                size += len(waiting.batch)
            try:
                stored = await self._write_group(group, size)
            except Exception as error:  # noqa: BLE001  # whatever it is, nobody may wait for ever
                await self._give_up(group, error)
            else:
                for waiting, mine in zip(group, stored, strict=True):
                    if not waiting.done.done():
                        waiting.done.set_result(mine)

    async def _write_group(self, group: Sequence[_Waiting], size: int) -> list[list[StoredRecord]]:
        flat = [record for waiting in group for record in waiting.batch]
        if size == 1:
            offsets = await send(self._single, self._address, flat)
        else:
            if self._many is None:
                self._many = await self._opened()
            offsets = await commit(self._many, self._address, flat)
        stored = [records.stored(record, offset, 0) for record, offset in zip(flat, offsets, strict=True)]
        found: list[list[StoredRecord]] = []
        first = 0
        for waiting in group:
            found.append(stored[first : first + len(waiting.batch)])
            first += len(waiting.batch)
        return found

    async def _give_up(self, group: Sequence[_Waiting], error: Exception) -> None:
        for waiting in group:
            if not waiting.done.done():
                message = f"it is not known whether it was appended: {type(error).__name__}: {error}"
                waiting.done.set_exception(port.OutcomeUnknownError(message))
        if self._many is not None:
            many, self._many = self._many, None
            await clients.stopped(many)
            # A transaction that stays open would stop its readers: a new producer of the same id ends it.
            with contextlib.suppress(KafkaError):
                self._many = await self._opened()

    async def _opened(self) -> clients.Producer:
        producer = clients.producer(self._address, self._id)
        await producer.start()
        return producer


async def send(producer: clients.Producer, address: Address, batch: Sequence[Record]) -> list[int]:
    """Sends records and gives their offsets, once all brokers in sync have them.

    They go in batches made here, one after the other in each partition, which costs a tenth of sending each alone.
    """
    indexes: dict[Slot, list[int]] = {}
    for index, record in enumerate(batch):
        indexes.setdefault((record.topic, record.partition), []).append(index)
    sent: list[tuple[list[int], asyncio.Future[RecordMetadata]]] = []
    try:
        for slot, its in indexes.items():
            for part, builder in _built(producer, batch, its):
                future = await producer.send_batch(builder, address.topic(slot[0]), partition=slot[1])
                sent.append((part, future))
        await asyncio.gather(*(future for _, future in sent))
    except BaseException:
        for _, future in sent:
            future.add_done_callback(_look)
        raise
    offsets = [0] * len(batch)
    for part, future in sent:
        first = future.result().offset
        for place, index in enumerate(part):
            offsets[index] = first + place
    return offsets


def _look(future: asyncio.Future[RecordMetadata]) -> None:
    """Looks at a failure that nobody waits for any more: the library would tell of it."""
    if not future.cancelled():
        future.exception()


def _built(
    producer: clients.Producer, batch: Sequence[Record], indexes: Sequence[int]
) -> Iterator[tuple[list[int], BatchBuilder]]:
    """Batches of the records with these indexes, each with those that it holds."""
    builder, part = producer.create_batch(), list[int]()
    for index in indexes:
        record = batch[index]
        key, headers = record.key.encode(), wire.headers(record)
        if builder.append(timestamp=None, key=key, value=record.value, headers=headers) is None:
            builder.close()
            yield part, builder
            # An empty batch takes any record, however large it is.
            builder, part = producer.create_batch(), []
            builder.append(timestamp=None, key=key, value=record.value, headers=headers)
        part.append(index)
    builder.close()
    yield part, builder


async def commit(producer: clients.Producer, address: Address, batch: Sequence[Record]) -> list[int]:
    """Sends records in one transaction; gives their offsets once it is committed.

    Whoever cancels it waits, since a commit that was cancelled goes on all the same. Raises what the transaction failed
    with, as ProducerFenced; KafkaTimeoutError where it does not end, and then a new producer of its id has to end it.
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
            # Asked for in any case: the library complains of a failure at which nobody looked.
            failure = clients.failure(producer)
            if isinstance(error, KafkaError):
                raise
            # A transaction that failed in the midst of it is told of as one that never began.
            raise (failure or KafkaError(str(error))) from error
    return offsets
