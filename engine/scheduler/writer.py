"""Writes decisions to the API (an outbox): decisions that a crash or an outage left unwritten are written later."""

import asyncio
import time
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Final

import anyio
import msgspec
from msgspec import Struct

from engine import diagnostics
from engine.agent.api_errors import ApiError, FailedError, RefusedError, UnreachableError
from engine.agent.call_limits import Backoff, Gate
from engine.agent.discovery import Resource
from engine.agent.key_queue import KeyQueue
from engine.agent.kubeconfigs import KubeconfigError
from engine.agent.member_api import MemberApi
from engine.agent.reflector import History
from engine.observer.observed_bindings import ObservedBinding, read_binding
from engine.scheduler import writes
from engine.scheduler.decider import Decider, Key
from events.kube_objects import KubeObject
from events.observations import DecisionMade
from events.validation.known_kinds import WORK_GROUP

WORKERS: Final = 16
WRITES_PER_SECOND: Final = 200
"""Default limit of the writes to bindings; Karmada's own scheduler has 40."""

_EVENTS_MAX: Final = 20_000
"""Maximum number of written decisions whose Kubernetes Events wait.

Events of further decisions are dropped, since the log has the decisions.
"""

_EVENTS_PAUSE_S: Final = 0.05
"""Maximum time in seconds that an Event waits for the writes of bindings to end."""

_RESOURCES: Final = {
    kind: Resource(api_version=WORK_GROUP, kind=kind, plural=f"{kind.lower()}s", namespaced=namespaced)
    for kind, namespaced in (("ResourceBinding", True), ("ClusterResourceBinding", False))
}
_EVENT: Final = Resource(api_version="v1", kind="Event", plural="events", namespaced=True)
_log = diagnostics.logger(__name__)


class Counts(Struct):
    """Requests by outcome: patches of bindings, version conflicts, other refusals, and Events sent or dropped."""

    writes: int = 0
    conflicts: int = 0
    refused: int = 0
    events: int = 0
    events_dropped: int = 0


class _Attempt(Struct):
    """A decision whose writes failed, and when to try again."""

    decision: DecisionMade
    backoff: Backoff


class Pace:
    """Spreads calls: at most ``per_second`` over time, with bursts of at most the calls of half a second."""

    def __init__(self, per_second: float) -> None:
        self._interval_s = 1 / per_second
        self._next_s = 0.0

    async def wait(self) -> None:
        """Wait until the next call is due."""
        now_s = time.monotonic()
        self._next_s = max(self._next_s, now_s - 0.5) + self._interval_s
        if self._next_s > now_s:
            await asyncio.sleep(self._next_s - now_s)


class Writer:
    """Writes the pending decisions of a decider while ``leads`` is true.

    Adds the versions in responses to ``history``. If the API later has a lower version, it was restored from a backup.
    """

    def __init__(
        self,
        api: MemberApi,
        decider: Decider,
        leads: Callable[[], bool],
        history: History,
        component: str,
        per_second: float,
    ) -> None:
        self._api = api
        self._decider = decider
        self._leads = leads
        self._history = history
        self._component = component
        self._pace = Pace(per_second)
        self._gate = Gate(lambda: None)
        self._queue = KeyQueue[Key]()
        self._failed: dict[Key, _Attempt] = {}
        self._busy: set[Key] = set()
        self._events: asyncio.Queue[tuple[ObservedBinding, DecisionMade]] = asyncio.Queue(_EVENTS_MAX)
        self._idle = asyncio.Event()
        self.counts = Counts()

    def put(self, keys: Iterable[Key]) -> None:
        """Begin to write the pending decisions on some bindings."""
        for key in keys:
            if key not in self._busy:
                self._busy.add(key)
                self._idle.clear()
                self._queue.put(key)

    async def run(self) -> None:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(WORKERS):
                tasks.create_task(self._work())
            tasks.create_task(self._send_events())

    async def _work(self) -> None:
        while True:
            key = await self._queue.take()
            self._busy.add(key)
            self._idle.clear()
            try:
                await self._write_pending(key)
            finally:
                self._busy.discard(key)
                self._queue.done(key)
                if not self._busy:
                    self._idle.set()

    async def _write_pending(self, key: Key) -> None:
        """Write the pending decision on a binding, and those that replace it meanwhile.

        After a failure the binding is queued again, so that a binding whose writes keep failing occupies no worker.
        """
        failed = self._failed.pop(key, None)
        if self._decider.pending(key) is not None:
            self._decider.retry(key)
            if self._decider.pending(key) is None:
                # ``retry`` has dropped the decision; the scheduler makes a new one.
                return
        decision, backoff = (None, Backoff()) if failed is None else (failed.decision, failed.backoff)
        newest: ObservedBinding | None = None
        observed: ObservedBinding | None = None
        done: DecisionMade | None = None
        while self._leads():
            # When the last write is observed, the decision is no longer pending; keep it here, because its Events
            # follow.
            decision, before = self._decider.pending(key) or decision, observed
            observed = self._decider.binding(key)
            if decision is None or decision is done or observed is None:
                return
            # A version that was observed before the last response is outdated, even if its number is higher: the API
            # may have been restored from a backup.
            if newest is None or (observed is not before and newest.version < observed.version):
                newest = observed
            try:
                if failed is not None:
                    # The write may have been carried out although its response was lost.
                    newest, failed = await self._read(key), None
                write = writes.next_write(newest, decision)
                if write is not None:
                    newest = await self._send(key, newest, write)
                    continue
            except (KubeconfigError, ApiError) as error:
                if not (isinstance(error, RefusedError) and error.code == HTTPStatus.NOT_FOUND):
                    self._retry_later(key, _Attempt(decision, backoff), error)
                    return
                # The binding is gone. ``put`` skips busy keys, so this loop writes the decision on a later binding of
                # this name.
                newest, failed = None, None
            else:
                if writes.is_shown(newest, decision):
                    self._put_events(newest, decision)
            done = decision

    def _retry_later(self, key: Key, attempt: _Attempt, error: Exception) -> None:
        _log.warning("binding not written; retrying", binding="/".join(key), error=str(error))
        self._failed[key] = attempt
        if isinstance(error, RefusedError | FailedError):
            self._decider.refuse(key)
        self._queue.put_later(key, attempt.backoff.next_delay_s())

    async def _send(self, key: Key, newest: ObservedBinding, write: writes.Write) -> ObservedBinding:
        """Send a write based on ``newest``; return the written version, or in a conflict the API's current version."""
        await self._pace.wait()
        if not self._leads():
            raise UnreachableError("this scheduler no longer holds the lease")
        kind, namespace, name = key
        resource = _RESOURCES[kind]

        async def patch() -> bytes:
            return await self._api.patch(resource, namespace, name, write.body, write.subresource)

        try:
            answered = await self._gate.call(patch)
        except RefusedError as error:
            if error.code != HTTPStatus.CONFLICT:
                self.counts.refused += error.code != HTTPStatus.NOT_FOUND
                raise
            self.counts.conflicts += 1
            current = await self._read(key)
            if current.metadata.resource_version == newest.metadata.resource_version:
                # An admission webhook has refused the write; the same write would be refused again.
                raise
            return current
        self.counts.writes += 1
        written = _parsed(answered)
        self._history.add_version(written.metadata.resource_version, resource)
        return written

    async def _read(self, key: Key) -> ObservedBinding:
        """Return the newest version of the binding from the API; raises a RefusedError (404) if it is gone."""
        kind, namespace, name = key
        value = await self._gate.call(lambda: self._api.get(_RESOURCES[kind], namespace, name))
        if value is None:
            raise RefusedError(HTTPStatus.NOT_FOUND, "NotFound", f"{kind} {name} is gone")
        return _parsed(msgspec.json.encode(value.document))

    def _put_events(self, binding: ObservedBinding, decision: DecisionMade) -> None:
        if not (decision.places or writes.moves_time(decision) or decision.status != writes.TRUE):
            return
        if self._events.full():
            self.counts.events_dropped += 1
        else:
            self._events.put_nowait((binding, decision))

    async def _send_events(self) -> None:
        """Create Events, each once; they have lower priority than the writes of bindings."""
        while True:
            binding, decision = await self._events.get()
            for event in writes.events_of(binding, decision, self._component):
                with anyio.move_on_after(_EVENTS_PAUSE_S):
                    await self._idle.wait()
                await self._send_event(event)

    async def _send_event(self, event: KubeObject) -> None:
        try:
            await self._gate.call(lambda: self._api.create(_EVENT, event))
            self.counts.events += 1
        except RefusedError as error:
            if error.code != HTTPStatus.CONFLICT:
                _log.warning("Kubernetes event not written", error=str(error))
        except (KubeconfigError, ApiError) as error:
            _log.warning("Kubernetes event not written", error=str(error))


def _parsed(answered: bytes) -> ObservedBinding:
    """Decode the binding in a response of the API; raises UnreachableError if it is malformed."""
    try:
        return read_binding(answered)
    except msgspec.MsgspecError as error:
        raise UnreachableError(f"unexpected response from the API: {error}") from None
