"""Ownership of shards on Kafka: one producer per shard, with the shard's name as transactional id.

A step is one transaction. Starting the producer fences the former owner and ends that owner's open transaction. When
all records in the shard's partition of ``decisions`` are visible, the new owner can read the former owner's steps.

In addition, an owner detects steps of other owners, in case the brokers allow two writers. Normally only a control
record lies between two steps of the owner. The owner reads any other record there: if it is another owner's step that
continues the shard's chain, the ownership ends.
"""

import asyncio
import contextlib
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import anyio
from aiokafka.errors import InvalidProducerEpoch, KafkaError, ProducerFenced
from msgspec import Struct

from engine import diagnostics
from engine.log import port
from engine.log.kafka import appends, clients, partition_followers
from engine.log.kafka.address import Address
from engine.log.kafka.clients import Slot
from engine.log.kafka.topics import SNAPSHOTS
from events import chain, codec, decisions, records, topics
from events.records import Record

CLOCK_OFF_MS_MAX: Final = 1_000
_LOG_APPEND_TIME: Final = 1
_CLOCK_KEY: Final = b"clock"
_MARK: Final = 1
"""Number of offsets that the control record at the end of a transaction takes."""

_CHECK_S: Final = 1.0
"""Seconds between two checks for other owners' writes; the owner's own commits detect them earlier."""

_HIDDEN_S: Final = 0.02
"""Seconds between two queries while an open transaction hides records in a shard's decisions."""

_ABANDONED_AFTER_S: Final = 1.0
"""Seconds of waiting after which the former owner's transaction counts as abandoned."""

_STUCK_S: Final = 3.0
"""Seconds without progress after which a transaction that hides records of outputs counts as left open."""

_OUTPUTS: Final = tuple(
    (name, partition)
    for name in (topics.WORKS, topics.LINKS, topics.REJECTIONS, *topics.FACT_TOPICS)
    for partition in range(topics.TOPICS[name].partitions)
)
"""Partitions to which the steps of all shards may write; each shard also writes to its partition of the decisions."""

_FENCED: Final = (ProducerFenced, InvalidProducerEpoch)
_log = diagnostics.logger(__name__)


class _Owned(Struct):
    """An owned shard: its producer, the chain of its steps (``links``), and the known end of its decisions."""

    producer: clients.Producer
    links: chain.Chain
    end: int


class Shards:
    """A ``port.Owner`` of shards on Kafka. ``fences`` counts ownerships that other owners ended."""

    def __init__(
        self, address: Address, log: partition_followers.FollowedLog, clock_ms: Callable[[], int]
    ) -> None:
        self._address = address
        self._log = log
        self._clock_ms = clock_ms
        self._owned: dict[int, _Owned] = {}
        self._checked_s = 0.0
        # Output partitions whose newest records an open transaction hides: the visible end, and since when it has not
        # moved. The time is infinity once this owner has ended its own shards' transactions in the partition.
        self._hidden: dict[Slot, tuple[int, float]] = {}
        # Whether all records that this owner has committed were visible at a check after the last commit.
        self._is_settled = True
        self._is_committing = False
        self.fences = 0

    async def own(self, shards: Iterable[int]) -> None:
        """Take over shards; raises LogError if a producer does not start or the clock is off."""
        taken = list(shards)
        await self.release(taken)
        if taken:
            await check_clock(self._address, self._clock_ms)
        outcomes = await asyncio.gather(*(self._start(shard) for shard in taken), return_exceptions=True)
        for failed in outcomes:
            if failed is not None:
                await self.release(taken)
                with clients.converted("the shards were not taken over"):
                    raise failed
        # Read only now: before the producers have started, the former owners could still append steps.
        await self._log.follow(_inputs(self._owned))
        for slot, end in (await self._visible_ends(taken)).items():
            self._owned[slot[1]].end = end

    async def release(self, shards: Iterable[int]) -> None:
        released = {shard: self._owned.pop(shard) for shard in list(shards) if shard in self._owned}
        await asyncio.gather(*(clients.stop(owned.producer) for owned in released.values()))
        # Stop receiving inputs of released shards: they would fill this worker's memory, and a later takeover could
        # read records from memory that the brokers have deleted.
        await self._log.unfollow(_own_inputs(released))

    def begin(self, shard: int, number: int, term: int, digest: str) -> None:
        self._owned[shard].links = chain.Chain(shard, number, term, digest)

    async def commit(self, steps: Sequence[tuple[int, Sequence[Record]]]) -> dict[int, int]:
        """Commit each step in a transaction of its shard; return the offset of each step by shard.

        Raises OwnershipLostError if any shard was fenced, else OutcomeUnknownError if any transaction failed.
        """
        outcomes: list[int | BaseException] = []
        self._is_committing = True
        self._is_settled = False
        try:
            # A cancelled commit has an unknown outcome, so let it finish.
            with anyio.CancelScope(shield=True):
                outcomes = await asyncio.gather(
                    *(self._commit(shard, batch) for shard, batch in steps), return_exceptions=True
                )
        finally:
            self._is_committing = False
        offsets: dict[int, int] = {}
        lost: list[int] = []
        unknown: list[BaseException] = []
        for (shard, _), outcome in zip(steps, outcomes, strict=True):
            if isinstance(outcome, int):
                offsets[shard] = outcome
            elif isinstance(outcome, (*_FENCED, port.OwnershipLostError)):
                lost.append(shard)
            else:
                unknown.append(outcome)
        # Prefer this error to an unknown outcome: the caller recovers all shards after either, but only
        # OwnershipLostError names the shards that must not be claimed again.
        if lost:
            self._raise_lost(lost)
        for error in unknown:
            if isinstance(error, (KafkaError, AssertionError, port.LogError)):
                message = f"it is unknown whether the steps were appended: {type(error).__name__}: {error}"
                raise port.OutcomeUnknownError(message) from error
            raise error
        return offsets

    async def check(self) -> None:
        """Raise OwnershipLostError if another owner's step continues a chain; queries brokers at most once per second.

        Raises LogError if they do not answer.
        """
        now_s = asyncio.get_running_loop().time()
        # Not during a commit: this owner's new step is after ``end`` until the commit returns, so the check would take
        # it for a step of another owner.
        if now_s - self._checked_s < _CHECK_S or not self._owned or self._is_committing:
            return
        self._checked_s = now_s
        lost: list[int] = []
        for slot, end in (await self._log.unfollowed_ends(_decisions(self._owned))).items():
            if end > self._owned[slot[1]].end and await self._has_foreign_step(slot[1], end):
                lost.append(slot[1])
        if lost:
            self._raise_lost(lost)
        await self._end_open_transactions(now_s)

    def check_due_ms(self) -> int | None:
        if self._is_settled or not self._owned:
            return None
        wait_s = self._checked_s + _CHECK_S - asyncio.get_running_loop().time()
        return self._clock_ms() + math.ceil(1_000 * wait_s)

    async def _end_open_transactions(self, now_s: float) -> None:
        """End transactions of the owned shards that have no end marker in some partitions.

        A broker that shuts down may fail to write the marker although the transaction's owner continues. The records
        would then stay hidden until the shard writes to that partition again; until then no view would show the step.
        """
        slots = (*_decisions(self._owned), *_OUTPUTS)
        try:
            written = await self._log.written(slots)
            ends = await self._log.query_ends(*slots)
        except (KafkaError, port.LogError):
            return
        hidden = {slot: ends[slot] for slot in slots if ends[slot] < written[slot]}
        self._hidden = {
            slot: (end, since_s if known == end else now_s)
            for slot, end in hidden.items()
            for known, since_s in [self._hidden.get(slot, (-1, now_s))]
        }
        if self._is_committing:
            return
        self._is_settled = all(since_s == math.inf for _, since_s in self._hidden.values())
        stuck = [slot for slot, (_, since_s) in self._hidden.items() if now_s - since_s >= _STUCK_S]
        if not stuck:
            return
        _log.warning("ending transactions that brokers left open", partitions=len(stuck))
        await self._commit_empty_of_all(stuck)
        # What is still hidden belongs to other owners or producers, whose transactions this owner cannot end: do not
        # try again at the same visible end.
        self._hidden |= {slot: (ends[slot], math.inf) for slot in stuck}

    async def _commit_empty_of_all(self, slots: Sequence[Slot]) -> None:
        """End open transactions of all owned shards in these partitions; raises OwnershipLostError or LogError."""
        shards = list(self._owned)
        # Wait for all, also if one fails: a transaction that is still open would make its shard's next step fail.
        outcomes = await asyncio.gather(
            *(
                self._commit_empty(shard, [slot for slot in slots if _may_write(shard, slot)])
                for shard in shards
            ),
            return_exceptions=True,
        )
        failed = {shard: error for shard, error in zip(shards, outcomes, strict=True) if error is not None}
        if lost := [shard for shard, error in failed.items() if isinstance(error, _FENCED)]:
            self._raise_lost(lost)
        for error in failed.values():
            with clients.converted("transactions that brokers left open were not ended"):
                raise error

    async def aclose(self) -> None:
        """Release all shards."""
        await self.release(list(self._owned))

    def _raise_lost(self, shards: Sequence[int]) -> None:
        self.fences += len(shards)
        _log.warning("ownership ended by another owner", shards=shards)
        raise port.OwnershipLostError(shards)

    async def _start(self, shard: int) -> None:
        """Start the producer of a shard; the shard is then owned."""
        producer = await clients.start(clients.producer(self._address, self._address.topic(f"shard-{shard}")))
        # Set here, not by the caller: if the caller is cancelled, ``release`` must find the started producers.
        self._owned[shard] = _Owned(producer, chain.Chain(shard), 0)

    async def _visible_ends(self, shards: Sequence[int]) -> dict[Slot, int]:
        """Wait until all records written to the shards' decisions are visible; return the ends of these partitions.

        An owner that started earlier would miss the last steps of its predecessor and decide their inputs again. Raises
        LogError if records stay hidden, for example by a foreign transaction that is left open.
        """
        slots = _decisions(shards)
        hidden: list[Slot] = []
        with contextlib.suppress(TimeoutError), clients.converted("the ends of the decisions are not known"):
            async with asyncio.timeout(appends.COMMIT_S):
                for count in itertools.count():
                    # Query this first: records that are written between the two queries must not be waited
                    # for.
                    written = await self._log.written(slots)
                    ends = await self._log.unfollowed_ends(slots)
                    hidden = [slot for slot in slots if ends[slot] < written[slot]]
                    if not hidden:
                        return ends
                    if count == _ABANDONED_AFTER_S // _HIDDEN_S:
                        await asyncio.gather(
                            *(self._commit_empty(slot[1], (slot, *_OUTPUTS)) for slot in hidden)
                        )
                    await asyncio.sleep(_HIDDEN_S)
        names = ", ".join(f"{topic}/{shard}" for topic, shard in hidden)
        message = f"an open transaction hides the last records of {names}; wait until it ends, or abort it"
        raise port.LogError(message)

    async def _commit_empty(self, shard: int, slots: Iterable[Slot]) -> None:
        """Commit a transaction without records; the brokers write its end marker to these partitions.

        This makes the records of a partially committed step visible. A broker that shuts down may record a commit
        without writing the control records to all partitions of the transaction. In a partition without one, readers
        see neither the step's records nor later ones until the next transaction with the same transactional id ends
        there. So name all partitions that the step may have written to. It must be a commit: an abort would discard an
        acknowledged step.
        """
        producer = self._owned[shard].producer
        await producer.begin_transaction()
        clients.add_to_transaction(producer, [clients.partition(self._address, slot) for slot in slots])
        await producer.commit_transaction()

    async def _commit(self, shard: int, batch: Sequence[Record]) -> int:
        """Commit a step and return the offset of its first record."""
        owned = self._owned[shard]
        offsets = await appends.commit(owned.producer, self._address, batch)
        own_offsets = [
            offset for offset, record in zip(offsets, batch, strict=True) if record.topic == topics.DECISIONS
        ]
        # This owner did not write the records between the known end and this step.
        if own_offsets[0] > owned.end and await self._has_foreign_step(shard, own_offsets[0]):
            raise port.OwnershipLostError([shard])
        step = codec.event_of(batch[0])
        if step is not None:
            owned.links.take(records.stored(batch[0], own_offsets[0], 0), step)
        owned.end = own_offsets[-1] + 1 + _MARK
        return own_offsets[0]

    async def _has_foreign_step(self, shard: int, end: int) -> bool:
        """Whether a record from the known end up to ``end`` is a step that continues the shard's chain."""
        owned = self._owned[shard]
        while batch := await self._log.read_up_to(
            (topics.DECISIONS, shard), owned.end, end, port.READ_RECORDS
        ):
            for record in batch:
                owned.end = record.offset + 1
                taken = codec.event_of(record)
                if isinstance(taken, decisions.StepTaken) and owned.links.take(record, taken):
                    return True
        owned.end = end
        return False


def _inputs(shards: Iterable[int]) -> list[Slot]:
    """Return the input partitions that an owner of these shards follows."""
    return [(topic, 0) for topic in topics.FACT_TOPICS] + _own_inputs(shards)


def _own_inputs(shards: Iterable[int]) -> list[Slot]:
    return [(topic, shard) for shard in shards for topic in topics.OWN_TOPICS]


def _may_write(shard: int, slot: Slot) -> bool:
    """Whether the steps of a shard may write to a partition of the decisions or of another output topic."""
    return slot[0] != topics.DECISIONS or slot[1] == shard


def _decisions(shards: Iterable[int]) -> list[Slot]:
    return [(topics.DECISIONS, shard) for shard in shards]


async def check_clock(address: Address, clock_ms: Callable[[], int]) -> None:
    """Compare a clock with the time that the brokers stamp on a record appended to the snapshot topic.

    A worker whose clock is more than a second off owns nothing. A step's time is its owner's clock
    and never goes back: a clock that is ahead would advance the shard's time for good and fire timers early.
    Raises LogError if the clock is off or no broker answers.
    """
    producer = clients.producer(address)
    try:
        with clients.converted("the brokers did not report their time"):
            await producer.start()
            before_ms = clock_ms()
            metadata = await producer.send_and_wait(address.topic(SNAPSHOTS), b"", _CLOCK_KEY, 0)
            after_ms = clock_ms()
    finally:
        await clients.stop(producer)
    if metadata.timestamp_type != _LOG_APPEND_TIME or metadata.timestamp is None:
        return
    off_ms = max(before_ms - metadata.timestamp, metadata.timestamp - after_ms)
    if off_ms > CLOCK_OFF_MS_MAX:
        raise port.LogError(
            f"this machine's clock differs by {off_ms / 1000:.1f} s from the brokers'; synchronize it, for example"
            " by NTP, before you run a worker here"
        )
