"""The scheduler: follows the observed objects in the log, appends its decisions, and writes what was appended.

A decision is appended to the log before any part of it is written to the API, so after a crash the log contains
the remaining writes.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Final

import anyio
import msgspec

from engine import diagnostics
from engine.kubeapi.values import quantity
from engine.log import port
from engine.observer import observation
from engine.placement import fleet
from engine.scheduler.decider import Decider
from engine.scheduler.election import Election
from engine.scheduler.writer import Writer
from events import codec, observations, topics
from events.records import Record, StoredRecord

_READ: Final = 500
_DECISIONS_MAX: Final = 100
"""Maximum number of decisions before other tasks get the event loop."""

_IDLE_S: Final = 0.5
_log = diagnostics.logger(__name__)


class Scheduler:
    """Decides while this process leads (``election``), once ``observed`` is set.

    ``observed`` is set once all existing clusters and bindings are in the log. ``source`` is the source of the observed
    events.
    """

    def __init__(
        self,
        log: port.NumberedLog,
        decider: Decider,
        writer: Writer,
        election: Election,
        *,
        observed: asyncio.Event,
        source: str,
        clock_ms: Callable[[], int],
    ) -> None:
        self._log = log
        self._decider = decider
        self._writer = writer
        self._election = election
        self._observed = observed
        self._source = source
        self._clock_ms = clock_ms
        self._start = 0
        self._term = 0
        self._changed = asyncio.Event()
        self.decisions = 0
        """The number of decisions that this process has made."""

    async def run(self) -> None:
        """Schedule until cancelled; raises port.LogError if the log fails."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._election.run(self._changed.set))
            tasks.create_task(self._writer.run())
            tasks.create_task(self._watch())
            await self._observed.wait()
            while True:
                await self._fold()
                if self._election.leads():
                    await self._lead()
                await self._wait()

    async def _lead(self) -> None:
        """Write the pending decisions, then decide on due bindings; at the beginning of a leadership all are due."""
        # The writer drops its keys when the lease lapses, even if it is renewed at once, so queue them in
        # each term.
        if self._term != self._election.term:
            self._term = self._election.term
            self._decider.begin()
            self._writer.put(self._decider.all_pending())
        while self._decider.has_due or self._is_retry_due():
            made = self._decider.decide(self._clock_ms(), _elapsed_ms(), _DECISIONS_MAX)
            if made:
                await self._log.append([self._record(decision) for decision in made])
                self.decisions += len(made)
                await self._fold()
                self._writer.put((write.kind, write.namespace, write.name) for write in made)
            await asyncio.sleep(0)

    def _is_retry_due(self) -> bool:
        due_ms = self._decider.due_ms()
        return due_ms is not None and due_ms <= _elapsed_ms()

    async def _fold(self) -> None:
        """Fold the log up to its end."""
        while batch := await self._log.read(topics.OBSERVATIONS, 0, self._start, _READ):
            self._fold_batch(batch)
            self._start = batch[-1].offset + 1
            await asyncio.sleep(0)

    def _fold_batch(self, batch: Sequence[StoredRecord]) -> None:
        for record in batch:
            decoded = codec.decode(record)
            if not isinstance(decoded, codec.Decoded) or decoded.envelope.source != self._source:
                continue
            if isinstance(decoded.data, observations.ControlPlaneRestored):
                # Restoring a backup may have undone writes that were not observed yet. Begin a new term, which queues
                # all pending decisions again.
                self._term = 0
            try:
                self._decider.take(decoded.data)
            except (msgspec.MsgspecError, quantity.QuantityError, fleet.FleetFullError) as error:
                _log.warning("object skipped", key=record.key, error=str(error))

    async def _watch(self) -> None:
        """Set ``_changed`` whenever the log grows."""
        while True:
            await self._log.wait(self._log.last_number())
            self._changed.set()

    async def _wait(self) -> None:
        """Wait for records, a change of the leadership, or a retry."""
        due_ms = self._decider.due_ms()
        limit_s = _IDLE_S if due_ms is None else min(_IDLE_S, max(due_ms - _elapsed_ms(), 0) / 1_000)
        # Not ``asyncio.wait_for``, which before Python 3.12 may lose a cancellation.
        with anyio.move_on_after(limit_s):
            await self._changed.wait()
        self._changed.clear()

    def _record(self, decision: observations.DecisionMade) -> Record:
        now_ms = self._clock_ms()
        return observation.record(decision, f"{decision.version}-decided-{now_ms}", self._source, now_ms)


def _elapsed_ms() -> int:
    return int(time.monotonic() * 1_000)
