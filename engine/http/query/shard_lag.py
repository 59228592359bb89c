"""Lag of the shards: the end offsets of their inputs minus the offsets up to which their last steps have read."""

from collections.abc import Mapping

from engine.http.query import response_types
from engine.log import port
from events import times, topics
from projections.steps import ShardSteps


def lag(log: port.NumberedLog, folded: int, steps: Mapping[int, ShardSteps]) -> response_types.Lag:
    """Lag of the views and of all shards; a shard that has neither inputs nor steps is left out."""
    last, ends = log.last_number(), log.ends()
    shards = [_shard(shard, steps.get(shard), ends) for shard in range(topics.SHARDS)]
    return response_types.Lag(
        last_number=last,
        folded=folded,
        behind=max(last - folded, 0),
        shards=[shard for shard in shards if shard.step or shard.inputs],
    )


def _shard(shard: int, steps: ShardSteps | None, ends: port.Ends) -> response_types.ShardLag:
    taken = steps.ends if steps else {}
    partitions = [(topic, 0) for topic in topics.FACT_TOPICS] + [
        (topic, shard) for topic in topics.OWN_TOPICS
    ]
    inputs = [
        response_types.InputLag(
            topic=topic,
            partition=partition,
            end=ends[topic, partition],
            taken=taken.get(topic, 0),
            waiting=max(ends[topic, partition] - taken.get(topic, 0), 0),
        )
        for topic, partition in partitions
        if ends.get((topic, partition), 0)
    ]
    chain = steps.chain if steps else None
    return response_types.ShardLag(
        shard=shard,
        step=chain.number if chain else 0,
        term=chain.term if chain else 0,
        time=times.to_text(steps.time_ms) if steps else "",
        ignored=chain.ignored if chain else 0,
        inputs=inputs,
    )
