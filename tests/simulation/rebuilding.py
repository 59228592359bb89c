"""Checker of recovery: shards that are rebuilt from the log equal the live ones."""

import msgspec

from engine.log import port
from engine.reconcilers import recovery, replay, worker
from events import topics


async def check(log: port.NumberedLog, live: worker.Worker) -> list[str]:
    """Invariant 2: shards rebuilt from the log equal the live ones, whether together or one alone."""
    shards = [fold.state.shard for fold in live.folds]
    if not shards:
        return []
    # The longest shard alone: its facts are then folded in the largest portions.
    longest = max(live.folds, key=lambda fold: fold.state.number).state.shard
    return [
        *await _differing(live, await replay.rebuild(log, shards), log),
        *await _differing(live, await replay.rebuild(log, [longest]), log),
    ]


async def _differing(live: worker.Worker, replayed: replay.Replay, log: port.NumberedLog) -> list[str]:
    shards = replayed.shards
    for _, facts in shards.values():
        for topic in topics.FACT_TOPICS:
            # Facts that affect no binding are folded without a step.
            folds = [fold for fold, shared in shards.values() if shared is facts]
            await recovery.follow_facts(log, folds, facts, topic, live.facts.ends[topic])
    return [
        f"2: shard {fold.state.shard}: {name} differ"
        for fold in live.folds
        if (rebuilt := shards.get(fold.state.shard))
        for name in fold.state.__struct_fields__
        if _plain(getattr(rebuilt[0].state, name)) != _plain(getattr(fold.state, name))
    ]


def _plain(value: object) -> bytes:
    """Canonical bytes of a state: independent of insertion order, keys of all types as text."""
    return msgspec.json.encode(msgspec.json.decode(msgspec.json.encode(value)), order="deterministic")
