"""Records of steps, of their outputs and of other systems, without a log."""

from collections.abc import Mapping

from events import codec, decisions, ids, records
from events.records import Record

TERM = 1


def step(shard: int, number: int, ends: Mapping[str, int] | None = None) -> Record:
    """Return a step of a shard that covered its inputs up to these ends."""
    taken = decisions.StepTaken(
        shard=shard, number=number, term=TERM, time_ms=number, release="1", ends=dict(ends or {})
    )
    return codec.encode(taken, head(shard, number, 0), partition=shard, key=str(shard))


def output(topic: str, partition: int, shard: int, number: int, index: int = 1) -> Record:
    """Return an output of a step in another topic."""
    return records.record(topic, partition, "key", records.to_headers(head(shard, number, index)), b"{}")


def foreign_input(topic: str, partition: int) -> Record:
    """Return an input from another system."""
    return records.record(topic, partition, "key", {"ce_id": "x", "ce_source": "/shop"}, b"{}")


def head(shard: int, number: int, index: int) -> records.Envelope:
    output_id = ids.output_id(shard, TERM, number, index)
    return records.Envelope(id=output_id, source=f"{ids.SHARD_SOURCE}{shard}", type="x")
