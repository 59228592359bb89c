"""The write API: turn changes of objects into events, append them, and answer each one.

Each event names the version of the object from which it was computed. If another client wrote in between, the
change is computed again from the newest version, a limited number of times. A write is answered once the views
have folded it, so the client can read it back.

Writes are batched in groups, which share one read of the current state, one append and one wait for the views.
Batching adds no delay: if fewer than ``GROUPS_MAX`` groups are running, a new one starts at once. Writes that
arrive while ``GROUPS_MAX`` groups are running form the next group.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Generic, Protocol, TypeVar, cast

import anyio
import anyio.to_thread
from msgspec import Struct

from engine.karmada.default_tolerations import TolerationSeconds
from engine.kubeapi.errors import status_objects
from engine.log import port
from engine.writing import request_origins
from engine.writing.execution import (
    Appending,
    Attempt,
    CurrentObjects,
    ObjectEvents,
    Report,
    WriteExecution,
)
from engine.writing.mutations import Mutation, Problem, Target, Verdict, Written
from engine.writing.planned_writes import PlannedWrites
from events import shapes
from events.records import Record
from events.validation import known_kinds as kinds
from projections import clusters, objects
from projections.objects import StoredObject
from projections.port import Views

CLIENT_SOURCE: Final = "/reballast/api"
"""Envelope source of the events that clients of the Kubernetes API write."""

SERVER_SOURCE: Final = "/reballast/server"
"""Envelope source of the events that a server writes about itself: its keys, the addresses of simulated members."""


_Request = TypeVar("_Request")
_Answer = TypeVar("_Answer")

GROUPS_MAX: Final = 2
"""Maximum number of groups of writes at once: one is computed while the other waits for the log and the views."""

GROUP_REQUESTS_MAX: Final = 256
"""Maximum number of requests in a group: enough to share a disk sync, few enough that others wait briefly."""

_TRIES_MAX: Final = 5

_AT_ONCE_MAX: Final = 64
"""Maximum number of objects that are read on the event loop (in less than a millisecond), not in a thread."""


class _Waiting(Struct, Generic[_Request, _Answer]):
    request: _Request
    answer: asyncio.Future[_Answer]


class WriteBatching(Generic[_Request, _Answer]):
    """Batch requests into groups; ``carry_out`` returns one value or one error for each request, in order."""

    def __init__(
        self, carry_out: Callable[[Sequence[_Request]], Awaitable[Sequence[_Answer | Exception]]]
    ) -> None:
        self._carry_out = carry_out
        self._waiting: list[_Waiting[_Request, _Answer]] = []
        self._running: set[asyncio.Task[None]] = set()

    async def submit(self, request: _Request) -> _Answer:
        """Queue a request and return its answer; raises the error of the request or of its whole group."""
        answer: asyncio.Future[_Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(request, answer))
        if len(self._running) < GROUPS_MAX:
            task = asyncio.create_task(self._run())
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        return await answer

    async def _run(self) -> None:
        # Yield once, so that callers of the same event-loop turn join this group.
        await asyncio.sleep(0)
        try:
            await self._run_groups()
        finally:
            # Deregister here, not in the done callback: a caller may queue again before that callback runs,
            # and would see this task as running although it takes no more requests.
            self._running.discard(cast("asyncio.Task[None]", asyncio.current_task()))

    async def _run_groups(self) -> None:
        while self._waiting:
            group, self._waiting = self._waiting[:GROUP_REQUESTS_MAX], self._waiting[GROUP_REQUESTS_MAX:]
            try:
                answers = await self._carry_out([waiting.request for waiting in group])
            except Exception as error:  # noqa: BLE001  # an error of the group fails all its members
                answers = [error] * len(group)
            for waiting, answer in zip(group, answers, strict=True):
                # The future is cancelled if its caller gave up waiting.
                if waiting.answer.done():
                    continue
                if isinstance(answer, Exception):
                    waiting.answer.set_exception(answer)
                else:
                    waiting.answer.set_result(answer)


class WritePath(Protocol):
    """Carries out changes of objects: ``WriteApi`` writes them, ``PlannedWrites`` only collects them."""

    tolerated: TolerationSeconds

    async def change(
        self, mutation: Mutation, *, source: str, dry_run: bool = False, body_bytes: int = 0
    ) -> Written | Problem:
        """Carry out one mutation; raises StatusError if it is refused."""
        ...

    async def check(self, mutation: Mutation) -> Problem | None:
        """Return the problem that prevents a mutation, None if there is none; raises StatusError if it is refused."""
        ...


class WriteApi:
    """Turn changes of objects into events. ``clock_ms`` and ``new_id`` are the only sources of time and randomness.

    ``tolerated``: for how many seconds policies tolerate failing clusters by default.
    """

    def __init__(
        self,
        log: port.NumberedLog,
        current: CurrentObjects,
        clock_ms: Callable[[], int],
        new_id: Callable[[], str],
        *,
        tolerated: TolerationSeconds | None = None,
    ) -> None:
        self.tolerated = tolerated or TolerationSeconds()
        self._log = log
        self._current = current
        self._appending = Appending(log, clock_ms, new_id)
        self._execution = WriteExecution(log, current, self._appending)
        self._batching = WriteBatching(self._execution.carry_out)

    async def change(
        self, mutation: Mutation, *, source: str, dry_run: bool = False, body_bytes: int = 0
    ) -> Written | Problem:
        """Carry out one mutation. It is computed in a thread if the request body is large (``body_bytes``).

        Raises StatusError if the mutation is refused, and the log's errors if the append fails.
        """
        if dry_run:
            return await self._execution.computed(mutation, source, body_bytes)
        return await self._batching.submit(
            Attempt(mutation, source, request_origins.CURRENT.get(), body_bytes)
        )

    async def check(self, mutation: Mutation) -> Problem | None:
        """Return the problem that prevents a mutation, None if there is none; raises StatusError if it is refused."""
        return await self._execution.check(mutation)

    async def change_known(self, mutation: Mutation) -> Written:
        """Carry out a mutation; while its outcome is unknown, repeat it, up to ``_TRIES_MAX`` times in all.

        Use it only for mutations that do no harm when repeated.

        Raises the errors of ``change``, and StatusError (503) if the mutation is not carried out.
        """
        answer = await self.change(mutation, source=SERVER_SOURCE)
        for _ in range(_TRIES_MAX - 1):
            if not isinstance(answer, Problem) or answer.verdict != Verdict.UNKNOWN:
                break
            await anyio.sleep(port.AFTER_FAILURE_S)
            answer = await self.change(mutation, source=SERVER_SOURCE)
        if isinstance(answer, Problem):
            raise status_objects.unavailable(answer.reason)
        return answer

    def planned(self, current: CurrentObjects | None = None) -> PlannedWrites:
        """Return the write path of a plan, which appends nothing; it reads ``current``, by default as this API does."""
        return PlannedWrites(self._log, current or self._current, self._appending, self.tolerated)

    def records_of(self, target: Target, events: Sequence[shapes.Event], source: str) -> list[Record]:
        """Return the records of events about an object, without appending them."""
        origin = request_origins.CURRENT.get()
        return self._appending.records_of([ObjectEvents(target, events, source, origin)])

    async def report(self, batch: Sequence[Report], source: str) -> None:
        """Append events reported by an agent, without waiting for the views. Raises LogError."""
        await self._appending.report(batch, source)


def cluster_target(name: str) -> Target:
    return Target(api_version=kinds.CLUSTER_GROUP, kind="Cluster", namespace="", name=name)


class ProjectedObjects:
    """``CurrentObjects`` in the tables of the projections.

    Up to ``_AT_ONCE_MAX`` objects are read on the event loop, because a thread switch would take longer than the
    query. More objects are read in a worker thread, so that the event loop stays responsive.
    """

    def __init__(self, views: Views) -> None:
        self._views = views

    async def settle(self, number: int) -> None:
        if self._views.folded < number:
            await self._views.wait_folded(number)

    async def objects(self, object_keys: Sequence[str]) -> dict[str, StoredObject]:
        if len(object_keys) <= _AT_ONCE_MAX:
            return objects.by_keys(self._views.store, object_keys)
        return await anyio.to_thread.run_sync(objects.by_keys, self._views.store, tuple(object_keys))

    async def cluster(self, name: str) -> clusters.Cluster | None:
        return clusters.stored(self._views.store, name)
