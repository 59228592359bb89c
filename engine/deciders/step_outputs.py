"""Collect the outputs of a step.

Each decision is applied to the state when it is emitted, so the next decider of the same step sees it.
"""

from collections.abc import Generator
from typing import Final

from msgspec import Struct

from engine.deciders import apply_decisions
from engine.deciders.state import Cause, ShardState
from engine.placement.decisions import Decision
from engine.placement.requests import Request
from events import codec, ids, keys, rejections, shapes, times
from events.records import Envelope, Record
from events.tracing import NO_TRACE
from events.validation import verdicts

_NO_CAUSE: Final = Cause()
_RECORDS_MAX: Final = 32
"""Records encoded between two yields."""

_BYTES_MAX: Final = 256 * 1024
"""Bytes encoded between two yields, apart from those of the last record."""


class Output(Struct, frozen=True, gc=False):
    """A record to be written: its data, partition, record key and CloudEvents subject, and its cause."""

    data: shapes.Event
    partition: int
    key: str
    subject: str
    cause: Cause = _NO_CAUSE


class Emitter:
    """The outputs of one step of a shard, in order.

    ``term``, ``step`` and ``time_ms`` are those of the step; ``source`` and ``time`` go into the envelopes.
    If the key ``explained`` is scheduled, its request and decision are added to ``explanations``.
    """

    def __init__(self, shard: ShardState, term: int, step: int, time_ms: int, explained: str = "") -> None:
        self.shard = shard
        self.term = term
        self.step = step
        self.time_ms = time_ms
        self.source = f"{ids.SHARD_SOURCE}{shard.shard}"
        self.time = times.to_text(time_ms)
        self.outputs: list[Output] = []
        self.explained = explained
        self.explanations: list[tuple[Request, Decision]] = []
        self._cause = _NO_CAUSE
        self._decisions_key = str(shard.shard)

    def set_cause(self, cause: Cause) -> None:
        """Set the input that causes everything emitted from now on."""
        self._cause = cause

    def next_number(self, last: int | None) -> int:
        """Return the number of a binding's next claim on a quota or group; ``last`` is that of its last claim or None.

        The number is at least that of the step, so that a binding that is deleted and created again repeats no number.
        """
        return self.step if last is None else max(self.step, last + 1)

    def decide(self, data: shapes.Event) -> None:
        """Emit a decision of this shard and apply it to the state."""
        self._put(data, self.shard.shard, self._decisions_key)
        apply_decisions.apply(self.shard, data, self.term, self.step)

    def send(self, data: shapes.Event) -> None:
        """Emit a link, a work or a rebalancer's deletion, into the partition of its record key."""
        key = data.record_key
        self._put(data, keys.shard_of(key), key)

    def fact(self, data: shapes.Event) -> None:
        """Emit a fact, an input that every shard reads."""
        self._put(data, 0, data.record_key)

    def _put(self, data: shapes.Event, partition: int, key: str) -> None:
        self.outputs.append(Output(data, partition, key, data.subject, self._cause))

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
            id=ids.output_id(self.shard.shard, self.term, self.step, index),
            source=self.source,
            type="",
            subject=output.subject,
            time=self.time,
            traceparent=output.cause.trace.parent,
            tracestate=output.cause.trace.state,
            correlationid=output.cause.story,
            causationid=output.cause.position,
        )
        return codec.encode(output.data, envelope, partition=output.partition, key=output.key)
