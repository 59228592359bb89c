"""Rounds of writes: read the current state, compute events, append them, wait for the views, and answer.

A write is *late* if another client changed the object first; it is retried. Each round holds at most one operation per
object, so operations on one object keep their order.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

from msgspec import Struct

from engine import loop_share
from engine.domain import namespaces
from engine.kubeapi.errors.status_objects import in_terminating_namespace, namespace_not_found
from engine.log import port
from engine.writing import object_changes, request_origins
from engine.writing.mutations import Action, Mutated, Mutation, Problem, StoredState, Target, Verdict, Written
from engine.writing.request_origins import Origin
from events import codec, keys, records, shapes, times, topics
from projections import clusters
from projections.objects import StoredObject
from projections.port import ProjectionError

_TRIES_MAX: Final = 5
_READ_RECORDS_MAX: Final = 1024

Answer = Written | Problem | Exception
"""The answer to one mutation, or the error with which it was refused or failed."""


class Attempt(NamedTuple):
    """One mutation that is being carried out, with the envelope source and the origin of its events.

    ``body_bytes`` is the size of its request. ``carry_out`` sets ``answer_index``, the index in the answers, and
    ``tries``, the retries so far.
    """

    mutation: Mutation
    source: str
    origin: Origin
    body_bytes: int = 0
    answer_index: int = 0
    tries: int = 0


class _Applied(NamedTuple):
    """The outcome of an attempt's mutation, and the version of the object from which it was computed.

    ``start`` is an offset in the object's partition; the version includes all writes to the object before this offset.
    """

    attempt: Attempt
    outcome: Mutated | Problem | Exception
    start: int


class _Append(NamedTuple):
    """Events to append, and the offset from which to search for other writes (see ``_Applied``)."""

    attempt: Attempt
    mutated: Mutated
    start: int


class Appended(Struct, frozen=True, kw_only=True):
    """Offsets of the first and last event of one write, and the sequence number of the last."""

    first: int
    last: int
    number: int


class ObjectEvents(Struct, frozen=True):
    """Events about one object to append together, their envelope source and their origin."""

    target: Target
    events: Sequence[shapes.Event]
    source: str
    origin: Origin


class Report(NamedTuple):
    """One reported event: its record key, the event, and the event id, which a retry repeats for deduplication."""

    key: str
    event: shapes.Event
    id: str


class CurrentObjects(Protocol):
    """The objects and clusters that writes are computed from."""

    async def settle(self, number: int) -> None:
        """Wait until the record with this sequence number has been folded."""
        ...

    async def objects(self, object_keys: Sequence[str]) -> dict[str, StoredObject]:
        """The stored objects among these keys; keys without an object are absent."""
        ...

    async def cluster(self, name: str) -> clusters.Cluster | None:
        """The cluster with this name; None if there is none."""
        ...


class Appending:
    """Wrap events in envelopes and append them."""

    def __init__(self, log: port.NumberedLog, clock_ms: Callable[[], int], new_id: Callable[[], str]) -> None:
        self._log = log
        self._clock_ms = clock_ms
        self._new_id = new_id

    async def write(self, batch: Sequence[ObjectEvents]) -> list[Appended]:
        """Append the events of several writes atomically. Raises the log's errors."""
        stored = iter(await self._log.append(self.records_of(batch)))
        appended: list[Appended] = []
        for item in batch:
            own = [next(stored) for _event in item.events]
            appended.append(Appended(first=own[0].offset, last=own[-1].offset, number=own[-1].number))
        return appended

    def records_of(self, batch: Sequence[ObjectEvents]) -> list[records.Record]:
        """Return the records of several writes, in order, without appending them."""
        time = times.to_text(self._clock_ms())
        return [
            self._record(event, item.target.key, item.source, time, item.origin)
            for item in batch
            for event in item.events
        ]

    async def report(self, batch: Sequence[Report], source: str) -> None:
        """Append reports atomically. Raises the log's errors."""
        if batch:
            time, origin = times.to_text(self._clock_ms()), request_origins.CURRENT.get()
            flat = [self._record(item.event, item.key, source, time, origin, item.id) for item in batch]
            await self._log.append(flat)

    async def untouched(self, target: Target, start: int, end: int) -> bool:
        """Whether the partition has no record of the object at offsets from ``start`` to ``end`` (exclusive)."""
        while start < end:
            page = await self._log.read(*target.slot, start, min(end - start, _READ_RECORDS_MAX))
            if any(record.key == target.key for record in page if record.offset < end):
                return False
            # No records up to the end: the remaining offsets belong to transaction markers or aborted
            # records.
            if not page:
                return True
            start = page[-1].offset + 1
        return True

    def _record(  # one argument for each part of an envelope
        self, event: shapes.Event, key: str, source: str, time: str, origin: Origin, event_id: str = ""
    ) -> records.Record:
        entry = event.event_type
        head = records.Envelope(
            id=event_id or self._new_id(),
            source=source,
            type=entry.type,
            subject=key,
            time=time,
            traceparent=origin.trace.parent,
            tracestate=origin.trace.state,
            authtype=origin.authtype,
            authid=origin.authid,
        )
        partition = keys.partition_of(key, topics.TOPICS[entry.topic].partitions)
        return codec.encode(event, head, partition=partition, key=key)


class WriteExecution:
    """Carry out mutations, round after round, until all have answers."""

    def __init__(self, log: port.NumberedLog, current: CurrentObjects, appending: Appending) -> None:
        self._log = log
        self._current = current
        self._appending = appending

    async def carry_out(self, attempts: Sequence[Attempt], *, dry_run: bool = False) -> list[Answer]:
        """Retry until every attempt has an answer; return the answers in the order of the attempts."""
        answers: dict[int, Answer] = {}
        waiting = [attempt._replace(answer_index=index) for index, attempt in enumerate(attempts)]
        while waiting:
            try:
                answered, waiting = await self._round(waiting, dry_run=dry_run)
            except Exception as error:  # noqa: BLE001  # earlier rounds keep their answers
                answered, waiting = dict.fromkeys((attempt.answer_index for attempt in waiting), error), []
            answers |= answered
        return [answers[index] for index in sorted(answers)]

    async def computed(self, mutation: Mutation, source: str, body_bytes: int) -> Written | Problem:
        """Compute a mutation without appending its events; raises StatusError if it is refused."""
        attempt = Attempt(mutation, source, request_origins.CURRENT.get(), body_bytes)
        (answer,) = await self.carry_out([attempt], dry_run=True)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def check(self, mutation: Mutation) -> Problem | None:
        """Return the problem that prevents a mutation, None if there is none; raises StatusError if it is refused."""
        answer = await self.computed(mutation, "", 0)
        return answer if isinstance(answer, Problem) else None

    async def _round(
        self, waiting: Sequence[Attempt], *, dry_run: bool
    ) -> tuple[dict[int, Answer], list[Attempt]]:
        """Carry out one round; return answers, and the attempts that have none yet."""
        attempts, later = _separate(waiting)
        number = self._log.last_number()
        applied = await self._applied(attempts, number)
        if dry_run or not all(
            isinstance(change.outcome, Mutated) and change.outcome.events for change in applied
        ):
            # A write computed from an old version is refused by the fold, so it is safe to decide from stale
            # views. Any other answer (not found, unchanged, refused, dry run) is final and must come from the
            # newest state.
            newest = await self._log.newest()
            if newest > number:
                applied = await self._applied(attempts, newest)
        answers: dict[int, Answer] = {}
        writes: list[_Append] = []
        for attempt, outcome, start in applied:
            if not isinstance(outcome, Mutated):
                answers[attempt.answer_index] = outcome
            elif dry_run or not outcome.events:
                answers[attempt.answer_index] = Written(mutated=outcome)
            else:
                writes.append(_Append(attempt, outcome, start))
        if not writes:
            return answers, later
        written, late = await self._write(writes)
        return answers | written, [*late, *later]

    async def _applied(self, attempts: Sequence[Attempt], number: int) -> list[_Applied]:
        """Apply each attempt's mutation to its object, as read from views that have folded ``number``."""
        # Sample the ends before reading the objects: a later end could include a record that the objects do
        # not.
        ends = dict(self._log.ends())
        stored = await self._stored(attempts, number=number)
        applied: list[_Applied] = []
        for attempt in attempts:
            target = attempt.mutation.target
            current = stored.get(target.key)
            stored_bytes = len(current.manifest) if isinstance(current, StoredObject) else 0
            size = max(stored_bytes, attempt.body_bytes)
            outcome = await loop_share.in_thread_if_large(size, _outcome, attempt.mutation, stored)
            # The views may include records after ``ends``. If such a record wrote the object as it was read, search
            # for other writes from that record on.
            start = max(ends.get(target.slot, 0), _version(current))
            applied.append(_Applied(attempt, outcome, start))
        return applied

    async def _write(self, writes: Sequence[_Append]) -> tuple[dict[int, Answer], list[Attempt]]:
        """Append the events; return the answers, and the attempts to try again because another client wrote first."""
        batch = [
            ObjectEvents(attempt.mutation.target, mutated.events, attempt.source, attempt.origin)
            for attempt, mutated, _ in writes
        ]
        try:
            appended = await self._appending.write(batch)
        except port.OutcomeUnknownError as error:
            # Never retry after an unknown outcome: the write may be stored, and a second one could undo a
            # later write.
            return _unknown(writes, str(error)), []
        try:
            return await self._outcomes(writes, appended)
        except (port.LogError, ProjectionError) as error:
            # Do not raise the error: clients would conclude that nothing was written, and would repeat the write.
            return _unknown(writes, f"the change is recorded, but its outcome is not known: {error}"), []

    async def _outcomes(
        self, writes: Sequence[_Append], appended: Sequence[Appended]
    ) -> tuple[dict[int, Answer], list[Attempt]]:
        """Wait for the views; return the answers, and the attempts to try again because another client wrote first."""
        # On Kafka the last record of a batch over several partitions need not have the highest number.
        newest = max(offsets.number for offsets in appended)
        stored = await self._stored([write.attempt for write in writes], number=newest)
        answers: dict[int, Answer] = {}
        late: list[Attempt] = []
        for (attempt, mutated, start), offsets in zip(writes, appended, strict=True):
            target = attempt.mutation.target
            current = stored.get(target.key)
            if await self._took_effect(target, mutated, current, offsets, start):
                is_newest = isinstance(current, StoredObject) and current.head.version == offsets.last + 1
                answers[attempt.answer_index] = Written(
                    mutated=mutated,
                    resource_version=offsets.number,
                    stored=current if isinstance(current, StoredObject) and is_newest else None,
                )
            elif attempt.tries + 1 < _TRIES_MAX:
                late.append(attempt._replace(tries=attempt.tries + 1))
            else:
                reason = f"another client changed the object in each of {_TRIES_MAX} attempts; try again"
                answers[attempt.answer_index] = Problem(Verdict.LATE, reason)
        return answers, late

    async def _took_effect(
        self,
        target: Target,
        mutated: Mutated,
        current: StoredState,
        offsets: Appended,
        start: int,
    ) -> bool:
        """Return whether the fold accepted a write.

        The fold accepted the write if the object has the version of the write. If not, another client may have
        overwritten an accepted write. In that case the partition has no record of the object between the read
        (``start``) and the write, but has one after the write.
        """
        if _version(current) == offsets.last + 1 or (mutated.is_report and current is not None):
            return True
        if not await self._appending.untouched(target, start, offsets.first):
            return False
        if mutated.action == Action.DELETED and current is None:
            return True
        # The views run in a process of their own and may have folded a later record of the object that this
        # process does not know yet, for example the deletion of a rebalancer that expires at once.
        await self._log.newest()
        end = self._log.ends().get(target.slot, 0)
        return not await self._appending.untouched(target, offsets.last + 1, end)

    async def _stored(self, attempts: Sequence[Attempt], *, number: int) -> dict[str, StoredState]:
        """Current objects of the attempts and their namespaces, by key, from views that have folded ``number``."""
        await self._current.settle(number)
        targets = [attempt.mutation.target for attempt in attempts]
        object_keys = {target.key for target in targets if target.route != "cluster"}
        object_keys |= {target.namespace_key for target in targets}
        states: dict[str, StoredState] = {}
        states.update(await self._current.objects(sorted(object_keys)))
        for target in targets:
            if target.route == "cluster":
                states[target.key] = await self._current.cluster(target.name)
        return states


def _unknown(writes: Sequence[_Append], reason: str) -> dict[int, Answer]:
    return {write.attempt.answer_index: Problem(Verdict.UNKNOWN, reason) for write in writes}


def _separate(waiting: Sequence[Attempt]) -> tuple[list[Attempt], list[Attempt]]:
    """Divide attempts into those to carry out now and those to carry out later.

    The first attempt on each object is carried out now, unless an earlier attempt is on its namespace. The order of
    attempts on one object never changes.
    """
    attempts: list[Attempt] = []
    later: list[Attempt] = []
    busy: set[str] = set()
    for attempt in waiting:
        target = attempt.mutation.target
        if target.key in busy or target.namespace_key in busy:
            later.append(attempt)
        else:
            attempts.append(attempt)
        # Mark the object of a waiting attempt too: a later attempt on the same object must not overtake it.
        busy.add(target.key)
    return attempts, later


def _outcome(mutation: Mutation, stored: dict[str, StoredState]) -> Mutated | Problem | Exception:
    try:
        _check_namespace(mutation, stored)
        return mutation.apply(stored.get(mutation.target.key))
    except Exception as error:  # noqa: BLE001  # a defect fails its own mutation, not others of the round
        return error


def _check_namespace(mutation: Mutation, stored: dict[str, StoredState]) -> None:
    """Raise StatusError if an object would be created in a namespace that does not exist or is terminating."""
    target = mutation.target
    if not isinstance(mutation, object_changes.Change) or target.key in stored or not target.namespace:
        return
    namespace = stored.get(target.namespace_key)
    if namespace is None and target.namespace not in namespaces.BUILT_IN:
        raise namespace_not_found(target.namespace)
    if (
        isinstance(namespace, StoredObject)
        and mutation.resource is not None
        and object_changes.is_ending(namespace)
    ):
        raise in_terminating_namespace(mutation.resource, target.name, target.namespace)


def _version(stored: StoredState) -> int:
    return stored.head.version if stored is not None else 0
