"""Read a shard's recorded steps, the facts and the shard's own inputs from the log, and fold the inputs."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Final

from msgspec import Struct

from engine import loop_share
from engine.deciders import fact_changes, shard_fold
from engine.deciders.facts import Facts
from engine.deciders.state import ShardState
from engine.log import port
from engine.reconcilers import paused_shards
from events import chain, codec, decisions, shapes, topics
from events.records import StoredRecord
from events.validation import verdicts

OWN_INPUTS_MAX: Final = 500
"""Maximum number of inputs per topic that a shard takes in one turn."""

REPORTS_MAX_WHILE_WAITING: Final = 50
"""Maximum number of member reports that a shard takes in one turn while keys wait to be decided."""

_NO_LIMIT: Final = 2**63


class RecordedStep(Struct, frozen=True):
    """A step in the chain of its shard: its ``record``, and its decisions as records (``outputs``) and as ``data``."""

    record: StoredRecord
    taken: decisions.StepTaken
    outputs: list[StoredRecord]
    data: list[shapes.Event]


def new_fold(shard: int) -> shard_fold.ShardFold:
    """Return the fold of a shard at the beginning of the log."""
    inputs = [verdicts.PartitionState(topic, shard) for topic in topics.OWN_TOPICS]
    ends: dict[str, int] = dict.fromkeys((*topics.FACT_TOPICS, *topics.OWN_TOPICS), 0)
    return shard_fold.ShardFold(ShardState(shard), ends, inputs)


async def steps(
    log: port.Partitions,
    shard: int,
    shard_chain: chain.Chain | None = None,
    start: int = 0,
    *,
    outputs: bool = True,
) -> AsyncGenerator[RecordedStep]:
    """Yield the steps in the chain of a shard, in order, after the last step of ``shard_chain`` (default: all).

    ``start`` is an offset after that last step; the remaining outputs of that step are skipped. If ``outputs`` is
    False, the steps are yielded without outputs.
    """
    shard_chain = shard_chain or chain.Chain(shard)
    current: RecordedStep | None = None
    while batch := await log.read(topics.DECISIONS, shard, start, port.READ_RECORDS):
        start = batch[-1].offset + 1
        for record in batch:
            if not (outputs or chain.may_be_step(record)):
                continue
            data = codec.event_of(record)
            if data is None or not shard_chain.take(record, data):
                continue
            if isinstance(data, decisions.StepTaken):
                # The outputs of a step follow it, so a step is complete only at the next one or at the end.
                if current is not None:
                    yield current
                current = RecordedStep(record, data, [], [])
            elif outputs and current is not None:
                current.outputs.append(record)
                current.data.append(data)
        # A read of a log in memory never yields to the event loop, so let other tasks run between batches.
        await asyncio.sleep(0)
    if current is not None:
        yield current


async def follow_facts(
    log: port.Partitions,
    shards: list[shard_fold.ShardFold],
    facts: Facts,
    topic: str,
    end: int,
    most: int = _NO_LIMIT,
) -> None:
    """Fold at most ``most`` facts of a topic, up to an end, and pass the changes of the facts to each shard."""
    share = loop_share.LoopShare()
    while facts.ends[topic] < end and most > 0:
        batch = await _read_up_to(log, topic, 0, facts.ends[topic], end, most)
        most -= len(batch)
        changes: list[fact_changes.Changed] = []
        for record in batch:
            changes += await loop_share.in_thread_if_large(len(record.value), facts.take, record)
            if share.is_used:
                await share.yield_loop()
        folded = fact_changes.folded(batch, changes)
        for shard in shards:
            for _ in shard.follow(folded):
                if share.is_used:
                    await share.yield_loop()


async def take_own(
    log: port.Partitions, fold: shard_fold.ShardFold, topic: str, end: int, most: int = _NO_LIMIT
) -> None:
    """Fold at most ``most`` own inputs of a shard from a topic, up to an end."""
    share = loop_share.LoopShare()
    while fold.ends[topic] < end and most > 0:
        batch = await _read_up_to(log, topic, fold.state.shard, fold.ends[topic], end, most)
        most -= len(batch)
        for record in batch:
            # Await only for large records: an await costs as much as taking a small one.
            if len(record.value) > loop_share.LARGE_BYTES:
                await loop_share.in_thread_if_large(len(record.value), fold.take, record)
            else:
                fold.take(record)
            if share.is_used:
                await share.yield_loop()


async def take_inputs(log: port.Partitions, fold: shard_fold.ShardFold, ends: port.Ends) -> None:
    """Fold the own inputs of a shard up to these ends, but no more of a topic than one turn takes."""
    for topic in topics.OWN_TOPICS:
        most = REPORTS_MAX_WHILE_WAITING if topic == topics.HEALTH and fold.state.waiting else OWN_INPUTS_MAX
        await take_own(log, fold, topic, ends.get((topic, fold.state.shard), 0), most)


async def align_facts(
    log: port.Partitions, aligned: Sequence[tuple[shard_fold.ShardFold, Facts]]
) -> tuple[list[tuple[shard_fold.ShardFold, Facts]], dict[int, port.LogError]]:
    """Fold the facts of all shards up to the same end.

    Return the shards whose facts are readable, and the errors of the others.
    """
    ends = {
        topic: max((facts_of_shard.ends[topic] for _, facts_of_shard in aligned), default=0)
        for topic in topics.FACT_TOPICS
    }
    readable: list[tuple[shard_fold.ShardFold, Facts]] = []
    unreadable: dict[int, port.LogError] = {}
    for facts in {id(facts_of_shard): facts_of_shard for _, facts_of_shard in aligned}.values():
        sharing = [fold for fold, other in aligned if other is facts]
        try:
            for topic, end in ends.items():
                await follow_facts(log, sharing, facts, topic, end)
        except paused_shards.UNREADABLE as error:
            unreadable |= {fold.state.shard: error for fold in sharing}
        else:
            readable += [(fold, facts) for fold in sharing]
    return readable, unreadable


async def _read_up_to(
    log: port.Partitions, topic: str, partition: int, start: int, end: int, most: int
) -> list[StoredRecord]:
    batch = await log.read(topic, partition, start, min(port.READ_RECORDS, end - start, most))
    # Offsets may have gaps, so a batch of ``end - start`` records can reach beyond the end.
    while batch and batch[-1].offset >= end:
        batch.pop()
    if not batch:
        message = f"{topic}/{partition} ends before offset {end}, to which a step refers: records are missing"
        raise port.LogCorruptedError(message)
    return batch
