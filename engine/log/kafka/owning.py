"""Owning shards on Kafka: one producer for each, whose transactional id is the shard's name.

Starting it ends whoever owned the shard before, and his open transaction; what he committed stands in decisions then. A
step is one transaction. Beside that, an owner knows where his own output stands: between two of his steps there is
nothing but a mark of the brokers. Where there is more, he reads it, and a step of somebody else that counts ends his
ownership, whatever the brokers let through (design section 5).
"""

# The library has annotations, but does not say so to type checkers.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import anyio
from aiokafka.errors import InvalidProducerEpoch, KafkaError, ProducerFenced
from msgspec import Struct

from engine import diagnostics
from engine.log import port
from engine.log.kafka import appending, clients, clocks, following
from engine.log.kafka.address import Address
from engine.log.kafka.clients import Slot
from events import chain, codec, decisions, records, topics
from events.records import Record

_READ: Final = 1_000
_MARK: Final = 1
"""The offset that the mark at the end of a transaction takes."""

_LOOK_S: Final = 1.0
"""How often an owner looks for what others wrote; what he writes himself tells him earlier."""

_FENCED: Final = (ProducerFenced, InvalidProducerEpoch)
_log = diagnostics.logger(__name__)


class _Owned(Struct):
    """A shard: its producer, its last step that counts, and up to where its decisions are known."""

    producer: clients.Producer
    links: chain.Chain
    end: int


class Shards:
    """A ``port.Owner`` of shards on Kafka. ``fences`` counts the ownerships that others ended."""

    def __init__(self, address: Address, log: following.FollowedLog, clock_ms: Callable[[], int]) -> None:
        self._address = address
        self._log = log
        self._clock_ms = clock_ms
        self._owned: dict[int, _Owned] = {}
        self._looked_s = 0.0
        self._is_committing = False
        self.fences = 0

    async def own(self, shards: Iterable[int]) -> None:
        """See ``port.Owner``."""
        wanted = list(shards)
        await self.release(wanted)
        if wanted:
            await clocks.check(self._address, self._clock_ms)
        started = await asyncio.gather(*(self._started(shard) for shard in wanted), return_exceptions=True)
        for shard, producer in zip(wanted, started, strict=True):
            if not isinstance(producer, BaseException):
                self._owned[shard] = _Owned(producer, chain.Chain(shard), 0)
        for failed in started:
            if isinstance(failed, BaseException):
                await self.release(wanted)
                if isinstance(failed, KafkaError):
                    raise clients.failed("the shards were not taken over", failed) from failed
                raise failed
        await self._log.follow(_inputs(self._owned))
        for slot, end in (await self._log.look(_decisions(wanted))).items():
            self._owned[slot[1]].end = end

    async def release(self, shards: Iterable[int]) -> None:
        """See ``port.Owner``."""
        gone = [self._owned.pop(shard) for shard in list(shards) if shard in self._owned]
        await asyncio.gather(*(clients.stopped(owned.producer) for owned in gone))

    def begin(self, shard: int, number: int, term: int, digest: str) -> None:
        """See ``port.Owner``."""
        self._owned[shard].links = chain.Chain(shard, number, term, digest)

    async def commit(self, steps: Sequence[tuple[int, Sequence[Record]]]) -> dict[int, int]:
        """See ``port.Owner``."""
        found: list[int | BaseException] = []
        self._is_committing = True
        try:
            with anyio.CancelScope(shield=True):
                found = await asyncio.gather(
                    *(self._commit(shard, batch) for shard, batch in steps), return_exceptions=True
                )
        finally:
            self._is_committing = False
        offsets: dict[int, int] = {}
        lost: list[int] = []
        unknown: list[BaseException] = []
        for (shard, _), each in zip(steps, found, strict=True):
            if isinstance(each, int):
                offsets[shard] = each
            elif isinstance(each, (*_FENCED, port.OwnershipLostError)):
                lost.append(shard)
            else:
                unknown.append(each)
        if lost:
            self._lose(lost)
        for each in unknown:
            if isinstance(each, (KafkaError, AssertionError, port.LogError)):
                message = f"it is not known whether steps were appended: {type(each).__name__}: {each}"
                raise port.OutcomeUnknownError(message) from each
            raise each
        return offsets

    async def check(self) -> None:
        """See ``port.Owner``; looks now and then."""
        now_s = asyncio.get_running_loop().time()
        if now_s - self._looked_s < _LOOK_S or not self._owned or self._is_committing:
            return
        self._looked_s = now_s
        lost: list[int] = []
        for slot, end in (await self._log.look(_decisions(self._owned))).items():
            if end > self._owned[slot[1]].end and await self._is_followed(slot[1], end):
                lost.append(slot[1])
        if lost:
            self._lose(lost)

    async def aclose(self) -> None:
        """Gives everything up."""
        await self.release(list(self._owned))

    def _lose(self, shards: Sequence[int]) -> None:
        self.fences += len(shards)
        _log.warning("ownership ended by another owner", shards=shards)
        raise port.OwnershipLostError(shards)

    async def _started(self, shard: int) -> clients.Producer:
        producer = clients.producer(self._address, self._address.topic(f"shard-{shard}"))
        try:
            await producer.start()
        except BaseException:
            await clients.stopped(producer)
            raise
        return producer

    async def _commit(self, shard: int, batch: Sequence[Record]) -> int:
        """Commits a step; gives the offset of its first record."""
        owned = self._owned[shard]
        offsets = await appending.commit(owned.producer, self._address, batch)
        mine = [offset for offset, each in zip(offsets, batch, strict=True) if each.topic == topics.DECISIONS]
        if mine[0] > owned.end and await self._is_followed(shard, mine[0]):
            raise port.OwnershipLostError([shard])
        step = codec.decode(batch[0])
        if isinstance(step, codec.Decoded):
            owned.links.take(records.stored(batch[0], mine[0], 0), step.data)
        owned.end = mine[-1] + 1 + _MARK
        return mine[0]

    async def _is_followed(self, shard: int, end: int) -> bool:
        """Whether among what others wrote up to an offset there is a step that counts."""
        owned = self._owned[shard]
        while found := await self._log.read_up_to((topics.DECISIONS, shard), owned.end, end, _READ):
            for record in found:
                owned.end = record.offset + 1
                match codec.decode(record):
                    case codec.Decoded(data=decisions.StepTaken() as taken) if owned.links.take(
                        record, taken
                    ):
                        return True
                    case _:
                        continue
        owned.end = end
        return False


def _inputs(shards: Iterable[int]) -> list[Slot]:
    """What an owner of these shards follows."""
    return [(topic, 0) for topic in topics.FACT_TOPICS] + [
        (topic, shard) for shard in shards for topic in topics.OWN_TOPICS
    ]


def _decisions(shards: Iterable[int]) -> list[Slot]:
    return [(topics.DECISIONS, shard) for shard in shards]
