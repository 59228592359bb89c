"""The write API: turn changes of objects into events, append them, and answer each one.

Each event names the version of the object that it was computed from. If another client wrote in between, the
change is computed again from the newest version, a few times. A write is answered once the views have folded
it, so the client can read it back.
"""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from msgspec import Struct

from engine.karmada.default_tolerations import TolerationSeconds
from engine.log import port
from engine.writing import tracing
from engine.writing.appending import Appending, Report, Writing
from engine.writing.batching import WriteBatching
from engine.writing.execution import Answer, Turn, WriteExecution, raised
from engine.writing.mutations import Mutation, Problem, Written
from engine.writing.planned_writes import PlannedWrites
from engine.writing.stored_objects import Views
from engine.writing.targets import Target
from events import shapes
from events.records import Record
from events.tracing import Trace
from events.validation import known_kinds as kinds

CLIENT_SOURCE: Final = "/reballast/api"
"""Source, in the envelope, of what clients of the Kubernetes API write."""

SERVER_SOURCE: Final = "/reballast/server"
"""Source of what a server writes about itself: its keys, and the addresses of simulated members."""


class _Queued(Struct, frozen=True):
    """A mutation that waits for its group, with the envelope source, the trace and the size of its request."""

    mutation: Mutation
    source: str
    trace: Trace
    body_bytes: int


class Writes(Protocol):
    """The write API as the Kubernetes API uses it, for real writes and for planned ones."""

    tolerated: TolerationSeconds

    async def change(
        self, mutation: Mutation, *, source: str, dry_run: bool = False, body_bytes: int = 0
    ) -> Written | Problem:
        """Carry out one mutation; raises StatusError if it is refused."""
        ...


class WriteApi:
    """Turn changes of objects into events. ``clock_ms`` and ``new_id`` are the only sources of time and randomness.

    ``tolerated`` is the default toleration of failing clusters for policies that set none.
    """

    def __init__(
        self,
        log: port.NumberedLog,
        views: Views,
        clock_ms: Callable[[], int],
        new_id: Callable[[], str],
        *,
        tolerated: TolerationSeconds | None = None,
    ) -> None:
        self.tolerated = tolerated or TolerationSeconds()
        self._log = log
        self._views = views
        self._appending = Appending(log, clock_ms, new_id)
        self._execution = WriteExecution(log, views, self._appending)
        self._batching = WriteBatching(self._change_all)

    async def change(
        self, mutation: Mutation, *, source: str, dry_run: bool = False, body_bytes: int = 0
    ) -> Written | Problem:
        """Carry out one mutation; one of a large body (``body_bytes``) is computed in a thread of its own.

        Raises StatusError if it is refused, and the log's errors if the append fails.
        """
        if not dry_run:
            return await self._batching.submit(_Queued(mutation, source, tracing.current(), body_bytes))
        turn = Turn(0, mutation, tracing.current(), body_bytes)
        return raised((await self._execution.carry_out([turn], dry_run=True, source=source))[0])

    def planned(self, views: Views | None = None) -> PlannedWrites:
        """Return the write API of a plan, which computes changes and appends nothing; ``views`` are earlier ones."""
        return PlannedWrites(self._log, views or self._views, self._appending, self.tolerated)

    def records_of(self, target: Target, events: Sequence[shapes.Event], source: str) -> list[Record]:
        """Return the records that would write events about an object, without appending them."""
        return self._appending.records_of([Writing(target, events, tracing.current())], source)

    async def report(self, batch: Sequence[Report], source: str) -> None:
        """Append events reported by an agent, without waiting for the views. Raises LogError."""
        await self._appending.report(batch, source)

    async def _change_all(self, group: Sequence[_Queued]) -> list[Written | Problem | Exception]:
        """Carry out grouped mutations; each gets its own answer, and one refusal does not affect the others."""
        answers: dict[int, Answer] = {}
        # One append has one envelope source, so mutations are grouped by it.
        for source in dict.fromkeys(queued.source for queued in group):
            turns = [
                Turn(index, queued.mutation, queued.trace, queued.body_bytes)
                for index, queued in enumerate(group)
                if queued.source == source
            ]
            carried_out = await self._execution.carry_out(turns, dry_run=False, source=source)
            answers |= {turn.place: answer for turn, answer in zip(turns, carried_out, strict=True)}
        return [answer for _, answer in sorted(answers.items())]


def cluster_target(name: str) -> Target:
    return Target(api_version=kinds.CLUSTER_GROUP, kind="Cluster", namespace="", name=name)
