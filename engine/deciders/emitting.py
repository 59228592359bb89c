"""Collecting what a step gives.

Each decision is applied to the state in the moment it is emitted, so the next decider of the same step sees it.
"""

from typing import Final

from msgspec import Struct

from engine.deciders import evolve
from engine.deciders.state import Cause, ShardState
from engine.placement.decisions import Decision
from engine.placement.requests import Request
from events import ids, keys, shapes, times

_NO_CAUSE: Final = Cause()


class Output(Struct, frozen=True, gc=False):
    """A record to be: its data, the key that it stands under, and why it came about."""

    data: shapes.Event
    partition: int
    key: str
    subject: str
    cause: Cause = _NO_CAUSE


class Emitter:
    """The outputs of one step of a shard, in order.

    ``term``, ``step`` and ``time_ms`` are those of the step, ``source`` and ``time`` what its envelopes say of them.
    ``explained`` is a key whose decision is to be explained; ``explanations`` are what came of that.
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

    def because(self, cause: Cause) -> None:
        """What is emitted from now on has this cause."""
        self._cause = cause

    def decide(self, data: shapes.Event, subject: str) -> None:
        """Emits a decision of this shard and applies it."""
        self.outputs.append(Output(data, self.shard.shard, self._decisions_key, subject, self._cause))
        evolve.evolve(self.shard, data, self.term, self.step)

    def send(self, data: shapes.Event, key: str, subject: str) -> None:
        """Emits a link, a work or an input of the shard's own; ``key`` is the receiver's."""
        self.outputs.append(Output(data, keys.shard_of(key), key, subject, self._cause))

    def fact(self, data: shapes.Event, key: str) -> None:
        """Emits an input of the facts that every shard shares."""
        self.outputs.append(Output(data, 0, key, key, self._cause))

    def reject(self, data: shapes.Event, topic: str, cause: Cause) -> None:
        """Emits the rejection of an input of ``topic``."""
        self.outputs.append(Output(data, 0, topic, "", cause))
