"""Replay the recorded steps of shards. Recovery applies the recorded decisions, verification computes them again.

Shards are replayed together. Their steps are ordered by the facts that each step had seen, so that the facts are
folded only once for all shards.
"""

import operator
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from engine import loop_share
from engine.deciders import shard_fold
from engine.deciders.facts import Facts
from engine.log import port
from engine.reconcilers import paused_shards, recovery, snapshots
from events import topics
from events.records import StoredRecord

_AHEAD: Final = 64
"""Records per read. A step takes one or two from a partition, and a read costs as much as ten records."""

_HELD_BYTES_MAX: Final = 512 * 1024
"""If the records of a batch exceed this size in bytes, ``ReadAhead`` stops reading their partition ahead."""


class ReplayedStep(Struct, frozen=True):
    """A recorded step, and its shard's state with the step's inputs folded in but its decisions not yet applied.

    ``second`` is the shard's second fold, with the same inputs; None unless the replay is ``doubled``.
    """

    fold: shard_fold.ShardFold
    facts: Facts
    recorded: recovery.RecordedStep
    second: shard_fold.ShardFold | None = None


class _Replayed(Struct):
    """A shard that is replayed.

    ``steps`` reads its recorded steps; ``step`` is the next one, None after the last. ``fact_ends`` are the ends of
    the facts that ``step`` had seen, in the order of the fact topics. ``offset`` follows the last replayed step.
    """

    fold: shard_fold.ShardFold
    steps: AsyncIterator[recovery.RecordedStep]
    offset: int
    step: recovery.RecordedStep | None = None
    second: shard_fold.ShardFold | None = None
    fact_ends: tuple[int, ...] = ()

    @property
    def folds(self) -> list[shard_fold.ShardFold]:
        return [self.fold] if self.second is None else [self.fold, self.second]


class _Group(Struct):
    """Shards that share one ``Facts`` object."""

    facts: Facts
    shards: list[_Replayed]


class Replay:
    """Replays shards from the beginning of the log, or from a snapshot.

    A shard with unreadable records is left out; any other LogError ends the replay. With ``doubled`` each shard
    has a second fold, which begins with an empty state. Without ``outputs`` the outputs of steps are not read. Steps
    with sequence numbers above ``last`` are not replayed, and inputs that only such steps had seen are not folded.
    """

    def __init__(
        self,
        log: port.Partitions,
        shards: Sequence[int],
        snapshot: snapshots.Snapshot | None = None,
        *,
        doubled: bool = False,
        outputs: bool = True,
        last: int | None = None,
    ) -> None:
        self.unreadable: dict[int, port.LogError] = {}
        """Errors of the shards whose steps or inputs could not be read; their replay ended there."""
        self._log = ReadAhead(log)
        self._snapshot = snapshot
        self._outputs = outputs
        self._doubled = doubled
        self._last = last
        self._groups = [
            _Group(Facts() if snapshot is None else snapshot.facts, [self._open(shard) for shard in shards])
        ]

    def _open(self, shard: int) -> _Replayed:
        second = recovery.new_fold(shard) if self._doubled else None
        fold, offset = (
            (recovery.new_fold(shard), 0) if self._snapshot is None else self._snapshot.shard(shard)
        )
        return _Replayed(fold, self._steps_after(fold, offset), offset, second=second)

    def _steps_after(self, fold: shard_fold.ShardFold, offset: int) -> AsyncGenerator[recovery.RecordedStep]:
        shard_chain = snapshots.chain_of(fold.state)
        return recovery.steps(self._log, fold.state.shard, shard_chain, offset, outputs=self._outputs)

    def continue_in(self, log: port.Partitions) -> None:
        """Let ``steps`` continue with a log that has grown since the iteration ended."""
        self._log = ReadAhead(log)
        for group in self._groups:
            for shard in group.shards:
                shard.steps = self._steps_after(shard.fold, shard.offset)

    @property
    def shards(self) -> dict[int, tuple[shard_fold.ShardFold, Facts]]:
        """The fold of each readable shard, with the facts of its group, all of which the fold has seen."""
        return {
            shard.fold.state.shard: (shard.fold, group.facts)
            for group in self._groups
            for shard in group.shards
        }

    def leave_out(self, shard: int) -> None:
        """End the replay of a shard."""
        for group in self._groups:
            group.shards = [replayed for replayed in group.shards if replayed.fold.state.shard != shard]

    def copy_to_second(self, shard: int) -> None:
        """Replace a shard's second fold by a copy of its first one; call it directly after the first took a step."""
        for group in self._groups:
            for replayed in group.shards:
                if replayed.fold.state.shard == shard:
                    replayed.second = snapshots.copied(replayed.fold)

    async def steps(self) -> AsyncIterator[ReplayedStep]:
        """Yield each step with its inputs folded; apply or compute the step before you continue the iteration."""
        for group in self._groups:
            for shard in tuple(group.shards):
                await self._advance(shard)
            if self._snapshot is not None and any(shard.step for shard in group.shards):
                # A copy: steps change the facts, and the same snapshot may be replayed again.
                group.facts = group.facts.copy()
                self._snapshot = None
        # A group that splits appends the new group to the list, so this loop reaches the new group as well.
        for group in self._groups:
            while earliest := self._earliest(group):
                shard, step = earliest
                if await self._take_inputs(group, shard, step):
                    yield ReplayedStep(shard.fold, group.facts, step, shard.second)
                    shard.offset = step.record.offset + 1
                    await self._advance(shard)

    def _earliest(self, group: _Group) -> tuple[_Replayed, recovery.RecordedStep] | None:
        """Return the shard whose next step had seen the fewest facts, and the step; None if no step is left.

        If several steps had seen the same facts, take the one with the lowest sequence number: verification reads the
        log in this order and keeps in memory what the replay has not taken yet.

        Of two workers, one may have seen more facts of one topic, the other more of another topic. Then one order of
        facts cannot serve both: shards whose steps had seen fewer facts of some topic continue in a new group.
        """
        waiting = [(shard.fact_ends, shard.step.record.number, shard) for shard in group.shards if shard.step]
        if not waiting:
            return None
        least, _, earliest = min(waiting, key=_ORDER)
        apart = [
            shard
            for ends, _, shard in waiting
            if ends != least and any(end < other for end, other in zip(ends, least, strict=True))
        ]
        if apart:
            group.shards = [shard for shard in group.shards if shard not in apart]
            self._groups.append(_Group(group.facts.copy(), apart))
        return None if earliest.step is None else (earliest, earliest.step)

    async def _advance(self, shard: _Replayed) -> None:
        try:
            step = await anext(shard.steps, None)
            if step is not None and self._last is not None and step.record.number > self._last:
                step = None
            if step is not None:
                shard.fact_ends = _fact_ends(step)
            shard.step = step
        except paused_shards.UNREADABLE as error:
            self._fail(shard, error)

    async def _take_inputs(self, group: _Group, shard: _Replayed, step: recovery.RecordedStep) -> bool:
        """Fold the inputs of a step in the order of ``Worker._turn``; return whether they are readable."""
        ends = step.taken.ends
        try:
            for topic in topics.FACT_TOPICS:
                if group.facts.ends[topic] < ends.get(topic, 0):
                    folds = [fold for replayed in group.shards for fold in replayed.folds]
                    await recovery.follow_facts(self._log, folds, group.facts, topic, ends[topic])
            for topic in topics.OWN_TOPICS:
                for fold in shard.folds:
                    if fold.ends[topic] < ends.get(topic, 0):
                        await recovery.take_own(self._log, fold, topic, ends[topic])
        except paused_shards.UNREADABLE as error:
            self._fail(shard, error)
            return False
        return True

    def _fail(self, shard: _Replayed, error: port.LogError) -> None:
        self.unreadable[shard.fold.state.shard] = error
        self.leave_out(shard.fold.state.shard)


_ORDER: Final = operator.itemgetter(0, 1)


def _fact_ends(step: recovery.RecordedStep) -> tuple[int, ...]:
    """Return the ends of the facts that a step had seen, in the order of the fact topics."""
    return tuple(step.taken.ends.get(topic, 0) for topic in topics.FACT_TOPICS)


async def rebuild(log: port.Log, shards: Sequence[int], snapshot: snapshots.Snapshot | None = None) -> Replay:
    """Return a replay that has applied all recorded steps of the shards; with a snapshot, only those after it.

    If no step follows the snapshot, the replay uses the facts of the snapshot themselves, not a copy.
    """
    replay = Replay(log, shards, snapshot)
    await apply(replay)
    return replay


async def rebuild_all(
    log: port.Log, shards: Sequence[int], newest: Mapping[int, snapshots.Snapshot]
) -> list[Replay]:
    """Rebuild shards, those with the same snapshot in one replay; ``newest`` has the snapshot of each shard."""
    by_snapshot: dict[int, list[int]] = {}
    for shard in shards:
        by_snapshot.setdefault(id(newest.get(shard)), []).append(shard)
    return [await rebuild(log, sharing, newest.get(sharing[0])) for sharing in by_snapshot.values()]


async def apply(replay: Replay) -> None:
    """Apply the recorded decisions of all remaining steps of a replay."""
    share = loop_share.LoopShare()
    async for step in replay.steps():
        step.fold.replay(step.facts, step.recorded.taken, step.recorded.record.value, step.recorded.data)
        await share.pause()


class ReadAhead:
    """Reads each partition of a log in order; records read beyond the limit are kept for the next read."""

    def __init__(self, log: port.Partitions) -> None:
        self._log = log
        self._held: dict[tuple[str, int], list[StoredRecord]] = {}
        self._large: set[tuple[str, int]] = set()

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        """Return the same records as ``port.Partitions.read``, from memory if they have been read ahead."""
        slot = topic, partition
        ahead = self._held.get(slot)
        # Offsets may have gaps: use the held records only if the one at this index has the offset ``start``.
        if ahead and 0 <= (index := start - ahead[0].offset) < len(ahead) and ahead[index].offset == start:
            return ahead[index : index + limit]
        if limit >= _AHEAD or slot in self._large:
            return await self._log.read(topic, partition, start, limit)
        try:
            batch = await self._log.read(topic, partition, start, _AHEAD)
        except port.LogCorruptedError:
            # A record in the batch is damaged, perhaps after the requested ones: read only these.
            return await self._log.read(topic, partition, start, limit)
        if sum(len(record.value) for record in batch) > _HELD_BYTES_MAX:
            self._large.add(slot)
            self._held.pop(slot, None)
        else:
            self._held[slot] = batch
        return batch[:limit]
