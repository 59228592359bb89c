"""The outputs of a step: deciders yield them, the collector applies them and makes records of them.

Deciders are generators of events. Each decision is applied to the state before its decider continues, so this and the
next deciders of the step see it.
"""

from collections.abc import Generator
from typing import Final, TypeAlias, TypeVar

from msgspec import Struct

from engine.deciders import apply_decisions
from engine.deciders.facts import Facts
from engine.deciders.placement_cache import Placements
from engine.deciders.state import Cause, ShardState
from engine.placement.decisions import Decision
from engine.placement.requests import Request
from events import codec, ids, keys, rejections, shapes, times, topics
from events.records import Envelope, Record
from events.tracing import NO_TRACE
from events.validation import verdicts

_NO_CAUSE: Final = Cause()
_RECORDS_MAX: Final = 32
"""Records encoded between two yields."""

_BYTES_MAX: Final = 256 * 1024
"""Bytes encoded between two yields, apart from those of the last record."""


class View(Struct, frozen=True):
    """All that a decider may read: the state of its shard, the facts, and the number and time of the step.

    Deciders of the key ``explained`` also yield the scheduling passes to be explained.
    """

    shard: ShardState
    facts: Facts
    placements: Placements
    term: int
    step: int
    time_ms: int
    explained: str = ""

    def next_number(self, last: int | None) -> int:
        """Return the number of a binding's next claim on a quota or group; ``last`` is that of its last claim or None.

        The number is at least that of the step, so that a binding that is deleted and created again repeats no number.
        """
        return self.step if last is None else max(self.step, last + 1)


class SchedulingPass(Struct, frozen=True):
    """A scheduling pass that is to be explained."""

    request: Request
    decision: Decision


Emitted: TypeAlias = shapes.Event | SchedulingPass | Cause | None
"""One output: an event, a scheduling pass, the cause of the next events, or None to let other tasks run.

The type of an event determines its topic: a decision of this shard, a link, a work, a fact, or a write to a spec.
"""

_Result = TypeVar("_Result")
Outputs: TypeAlias = Generator[Emitted, None, _Result]
"""The outputs of a decider, in order; ``_Result`` is what it returns to the decider that called it."""


class Output(Struct, frozen=True, gc=False):
    """A record to be written: its data, partition, record key and CloudEvents subject, and its cause."""

    data: shapes.Event
    partition: int
    key: str
    subject: str
    cause: Cause = _NO_CAUSE


class Collector:
    """The records of one step of a shard, in order, and the scheduling passes to be explained."""

    def __init__(self, view: View) -> None:
        self.outputs: list[Output] = []
        self.passes: list[SchedulingPass] = []
        self._view = view
        self._shard = view.shard.shard
        self._source = f"{ids.SHARD_SOURCE}{self._shard}"
        self._time = times.to_text(view.time_ms)
        self._cause = _NO_CAUSE
        self._decisions_key = str(self._shard)

    def take(self, emitted: shapes.Event | SchedulingPass | Cause) -> None:
        """Add what a decider yields; apply it to the state if it is a decision of this shard."""
        match emitted:
            case Cause():
                self._cause = emitted
            case SchedulingPass():
                self.passes.append(emitted)
            case _:
                self._add(emitted)

    def take_all(self, outputs: Outputs[None]) -> Generator[None, None, None]:
        """Take all that a decider yields, in order; yields where the decider lets other tasks run."""
        for emitted in outputs:
            if emitted is None:
                yield
            else:
                self.take(emitted)

    def _add(self, data: shapes.Event) -> None:
        topic = topics.TOPICS[data.event_type.topic]
        if topic.name == topics.DECISIONS:
            partition, key = self._shard, self._decisions_key
        else:
            key = data.record_key
            partition = keys.shard_of(key) if topic.sharded else 0
        self.outputs.append(Output(data, partition, key, data.subject, self._cause))
        if topic.name == topics.DECISIONS:
            apply_decisions.apply(self._view.shard, data, self._view.term, self._view.step)

    def reject(self, refusal: verdicts.Refused) -> None:
        """Emit the rejection of an input."""
        record, envelope = refusal.record, refusal.envelope
        rejected = rejections.InputRejected(
            verdict=refusal.verdict,
            reason=refusal.reason,
            field=refusal.field,
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
            key=record.key,
            source=envelope.source if envelope else "",
            event_id=envelope.id if envelope else "",
        )
        cause = Cause(str(record.position), trace=envelope.trace if envelope else NO_TRACE)
        self.outputs.append(Output(rejected, 0, record.topic, "", cause))

    def encode_in_portions(self) -> Generator[None, None, list[Record]]:
        """Return the records of all outputs; yields after a number of records or of bytes."""
        records: list[Record] = []
        encoded = encoded_bytes = 0
        for index, output in enumerate(self.outputs, 1):
            record = self.record(output, index)
            records.append(record)
            encoded, encoded_bytes = encoded + 1, encoded_bytes + len(record.value)
            if encoded == _RECORDS_MAX or encoded_bytes >= _BYTES_MAX:
                encoded = encoded_bytes = 0
                yield
        return records

    def record(self, output: Output, index: int) -> Record:
        """Return the record of the ``index``-th output of the step; 0 is the step itself."""
        envelope = Envelope(
            id=ids.output_id(self._shard, self._view.term, self._view.step, index),
            source=self._source,
            type="",
            subject=output.subject,
            time=self._time,
            traceparent=output.cause.trace.parent,
            tracestate=output.cause.trace.state,
            correlationid=output.cause.story,
            causationid=output.cause.position,
        )
        return codec.encode(output.data, envelope, partition=output.partition, key=output.key)
