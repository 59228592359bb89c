"""Owning shards on Kafka: one producer for each, whose transactional id is the shard's name.

Starting it ends whoever owned the shard before, and his open transaction; what he committed stands in decisions then. A
step is one transaction. Beside that, an owner reads its own output: a step of somebody else that follows the last one
ends its ownership, whatever the brokers let through (design section 5).
"""

# The library has annotations, but does not say so to type checkers.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

import anyio
import structlog
from aiokafka.errors import InvalidProducerEpoch, KafkaError, ProducerFenced

from engine.log import port
from engine.log.kafka import appending, clients, following
from engine.log.kafka.address import Address
from engine.log.kafka.clients import Slot
from events import chain, codec, decisions, topics
from events.records import Record, StoredRecord

_READ: Final = 1_000
_log = structlog.get_logger(__name__)


class Shards:
    """A ``port.Owner`` of shards on Kafka. ``fences`` counts the ownerships that others ended."""

    def __init__(self, address: Address, log: following.FollowedLog) -> None:
        self._address = address
        self._log = log
        self._producers: dict[int, clients.Producer] = {}
        self._chains: dict[int, chain.Chain] = {}
        self._mine: dict[int, set[str]] = {}
        self._read: dict[int, int] = {}
        self.fences = 0

    async def own(self, shards: Iterable[int]) -> None:
        """See ``port.Owner``."""
        wanted = list(shards)
        await self.release(wanted)
        try:
            started = await asyncio.gather(*(self._started(shard) for shard in wanted))
        except KafkaError as error:
            raise clients.failed("the shards were not taken over", error) from error
        self._producers.update(zip(wanted, started, strict=True))
        await self._log.follow(_slots(self._producers))
        ends = self._log.ends()
        self._read.update({shard: ends.get((topics.DECISIONS, shard), 0) for shard in wanted})

    async def release(self, shards: Iterable[int]) -> None:
        """Gives shards up."""
        for shard in shards:
            producer = self._producers.pop(shard, None)
            self._chains.pop(shard, None)
            if producer is not None:
                await clients.stopped(producer)

    def begin(self, shard: int, number: int, term: int, digest: str) -> None:
        """See ``port.Owner``."""
        self._chains[shard] = chain.Chain(shard, number, term, digest)
        self._mine[shard] = set()

    async def commit(self, steps: Sequence[tuple[int, Sequence[Record]]]) -> dict[int, int]:
        """See ``port.Owner``."""
        found: list[int | BaseException] = []
        with anyio.CancelScope(shield=True):
            found = await asyncio.gather(
                *(self._commit(shard, batch) for shard, batch in steps), return_exceptions=True
            )
        lost = [shard for (shard, _), each in zip(steps, found, strict=True) if isinstance(each, _FENCED)]
        if lost:
            self._lose(lost)
        for each in found:
            if isinstance(each, BaseException):
                if isinstance(each, (KafkaError, AssertionError)):
                    message = f"it is not known whether steps were appended: {type(each).__name__}: {each}"
                    raise port.OutcomeUnknownError(message) from each
                raise each
        return {
            shard: first for (shard, _), first in zip(steps, found, strict=True) if isinstance(first, int)
        }

    async def check(self) -> None:
        """See ``port.Owner``."""
        lost = [shard for shard in sorted(self._chains) if await self._is_followed(shard)]
        if lost:
            self._lose(lost)

    async def aclose(self) -> None:
        """Gives everything up."""
        await self.release(list(self._producers))

    def _lose(self, shards: Sequence[int]) -> None:
        self.fences += len(shards)
        _log.warning("ownership ended by another owner", shards=shards)
        raise port.OwnershipLostError(shards)

    async def _started(self, shard: int) -> clients.Producer:
        producer = clients.producer(self._address, self._address.topic(f"shard-{shard}"))
        await producer.start()
        return producer

    async def _commit(self, shard: int, batch: Sequence[Record]) -> int:
        """Commits a step; gives the offset of its first record."""
        self._mine[shard].add(chain.step_digest(batch[0].value))
        offsets = await appending.commit(self._producers[shard], self._address, batch)
        return offsets[0]

    async def _is_followed(self, shard: int) -> bool:
        """Whether a step that counts is none of ours."""
        end = self._log.ends().get((topics.DECISIONS, shard), 0)
        while self._read[shard] < end:
            for record in await self._log.read(topics.DECISIONS, shard, self._read[shard], _READ):
                self._read[shard] = record.offset + 1
                if record.headers.get("ce_type") == _STEP and self._is_strange(shard, record):
                    return True
        return False

    def _is_strange(self, shard: int, record: StoredRecord) -> bool:
        decoded = codec.decode(record)
        if not isinstance(decoded, codec.Decoded) or not self._chains[shard].take(record, decoded.data):
            return False
        mine, digest = self._mine[shard], self._chains[shard].digest
        if digest not in mine:
            return True
        mine.discard(digest)
        return False


def _slots(shards: Iterable[int]) -> list[Slot]:
    """What an owner of these shards follows."""
    facts = [(topic, 0) for topic in topics.FACT_TOPICS]
    own = [(topic, shard) for shard in shards for topic in (*topics.OWN_TOPICS, topics.DECISIONS)]
    return facts + own


_STEP: Final = codec.catalogue.BY_STRUCT[decisions.StepTaken].type
_FENCED: Final = (ProducerFenced, InvalidProducerEpoch)
