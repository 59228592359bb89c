"""Rounds of writes: read current state, decide, append, wait for the views, answer; late writes go round again.

Each round holds at most one operation per object, so operations on one object keep their order.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from engine import loop_share
from engine.kubeapi.errors.status_objects import StatusError, in_terminating_namespace
from engine.log import port
from engine.writing import object_changes as changes
from engine.writing import operations as asks
from engine.writing import targets as wishes
from engine.writing.appending import Appended, Appending, Writing, partition_of
from engine.writing.results import LATE, UNKNOWN, Problem, Result
from engine.writing.stored_objects import StoredObject, Views
from events import keys
from events.tracing import Trace

_WRITES_MAX: Final = 512
"""Writes per append: enough to share a disk sync, few enough to let other writers of the log in between."""
_TRIES_MAX: Final = 5
BUILT_IN_NAMESPACES: Final = (
    "default",
    "karmada-cluster",
    "karmada-system",
    "kube-node-lease",
    "kube-public",
    "kube-system",
)
"""Namespaces that always exist, without having been created."""

Answer = Result | StatusError


class Turn(Struct):
    """One operation in flight: its index among the answers, its trace, and the number of retries so far."""

    index: int
    operation: asks.Operation
    trace: Trace
    tries: int = 0


class WriteExecution:
    """Carry out operations, round after round, until all have answers."""

    def __init__(self, log: port.NumberedLog, views: Views, appending: Appending) -> None:
        self._log = log
        self._views = views
        self._appending = appending

    async def carry_out(
        self, waiting: list[Turn], answers: dict[int, Answer], *, dry_run: bool, source: str
    ) -> list[Answer]:
        """Retry until every turn has an answer; return the answers ordered by ``Turn.index``."""
        while waiting:
            waiting = await self._round(waiting, answers, dry_run=dry_run, source=source)
        return [answers[index] for index in sorted(answers)]

    async def _round(
        self, waiting: list[Turn], answers: dict[int, Answer], *, dry_run: bool, source: str
    ) -> list[Turn]:
        """Carry out one round; return the turns that still have no answer."""
        turns, later = _separate(waiting)
        number = self._log.last_number()
        decisions, starts = await self._decided(turns, number)
        if dry_run or not all(isinstance(each, asks.Write) for each in decisions):
            # A write computed from an old version is refused by the fold, so it is safe to decide from stale
            # views. Any other answer (not found, unchanged, refused, dry run) is final and must come from the
            # newest state.
            newest = await self._log.newest()
            if newest > number:
                decisions, starts = await self._decided(turns, newest)
        written: list[tuple[Turn, asks.Write]] = []
        for turn, decision in zip(turns, decisions, strict=True):
            if isinstance(decision, asks.Write) and not dry_run:
                written.append((turn, decision))
            elif isinstance(decision, asks.Write):
                answers[turn.index] = Result(action=f"{decision.action} (dry run)")
            else:
                answers[turn.index] = decision
        if written:
            later = [*await self._write(written, starts, answers, source), *later]
        return later

    async def _decided(
        self, turns: Sequence[Turn], number: int
    ) -> tuple[list[asks.Write | Answer], dict[str, int]]:
        """Decide each turn on views that have folded ``number``.

        Also returns, per object key, an offset of its partition: the state that was looked at includes all
        writes below it. ``_took_effect`` searches for other writes from there.
        """
        # Sample the ends before reading the objects: a later end could include a record that they do not.
        ends = dict(self._log.ends())
        stored = await self._stored(turns, number=number)
        starts: dict[str, int] = {}
        for turn in turns:
            target = turn.operation.target
            # The views may be ahead of the ends sampled before the look.
            end = ends.get((target.topic, partition_of(target)), 0)
            starts[target.key] = max(end, _version(stored.get(target.key)))
        return [
            await loop_share.apart(_size(turn.operation, stored), _decide, turn.operation, stored)
            for turn in turns
        ], starts

    async def _write(
        self,
        written: list[tuple[Turn, asks.Write]],
        starts: dict[str, int],
        answers: dict[int, Answer],
        source: str,
    ) -> list[Turn]:
        """Append, wait for the views, and set the answers; return the late turns, to be tried again."""
        batch = [Writing(turn.operation.target, write.events, turn.trace) for turn, write in written]
        try:
            appended = await self._appending.write(batch, source)
        except port.OutcomeUnknownError as error:
            # Never retry after an unknown outcome: the write may be stored, and a second one could undo a
            # later write.
            for turn, _write in written:
                answers[turn.index] = _problem(UNKNOWN, str(error))
            return []
        # On Kafka the last record of a batch over several partitions need not have the highest number.
        newest = max(offsets.number for offsets in appended)
        stored = await self._stored([turn for turn, _ in written], number=newest)
        late: list[Turn] = []
        for (turn, write), offsets in zip(written, appended, strict=True):
            target = turn.operation.target
            current = stored.get(target.key)
            if await self._took_effect(target, write, current, offsets, starts[target.key]):
                answers[turn.index] = _done(turn.operation, write, current, offsets)
            elif turn.tries < _TRIES_MAX:
                late.append(Turn(turn.index, turn.operation, turn.trace, turn.tries + 1))
            else:
                reason = f"another client changed it in each of {_TRIES_MAX} attempts; try again"
                answers[turn.index] = _problem(LATE, reason)
        return late

    async def _took_effect(
        self,
        target: wishes.Target,
        write: asks.Write,
        current: asks.StoredState,
        offsets: Appended,
        start: int,
    ) -> bool:
        """Whether a write was accepted by the fold.

        It was if the object now has its version. Otherwise it may have been accepted and then overwritten,
        which follows from the partition's records: no other record of the object between the look (``start``)
        and the write, and one after it.
        """
        if _version(current) == offsets.last + 1 or (write.is_report and current is not None):
            return True
        if not await self._appending.untouched(target, start, offsets.first):
            return False
        if write.action == "deleted" and current is None:
            return True
        # The views run in a process of their own and may have folded a later record of the object that this
        # process does not know yet, for example the deletion of a rebalancer that expires at once.
        await self._log.newest()
        end = self._log.ends().get((target.topic, partition_of(target)), 0)
        return not await self._appending.untouched(target, offsets.last + 1, end)

    async def _stored(self, turns: Sequence[Turn], *, number: int) -> dict[str, asks.StoredState]:
        """Current state of the turns' objects and their namespaces, by key, from views that have folded ``number``."""
        await self._views.settle(number)
        object_keys = {
            turn.operation.target.key for turn in turns if turn.operation.target.route != "cluster"
        }
        object_keys |= {_namespace_key(turn.operation.target) for turn in turns}
        states: dict[str, asks.StoredState] = {}
        states.update(await self._views.objects(sorted(object_keys)))
        for turn in turns:
            if turn.operation.target.route == "cluster":
                states[turn.operation.target.key] = await self._views.cluster(turn.operation.target.name)
        return states


def _separate(waiting: list[Turn]) -> tuple[list[Turn], list[Turn]]:
    """Split off the turns to carry out now: the first of each object.

    A turn also waits for an earlier turn on its namespace. The order of turns on one object never changes.
    """
    turns: list[Turn] = []
    later: list[Turn] = []
    busy: set[str] = set()
    for turn in waiting:
        target = turn.operation.target
        if target.key in busy or _namespace_key(target) in busy or len(turns) >= _WRITES_MAX:
            later.append(turn)
        else:
            turns.append(turn)
        # Also for turns put off: a later turn on the same object must not overtake them.
        busy.add(target.key)
    return turns, later


def _size(operation: asks.Operation, stored: dict[str, asks.StoredState]) -> int:
    current = stored.get(operation.target.key)
    stored_bytes = len(current.manifest) if isinstance(current, StoredObject) else 0
    return max(stored_bytes, getattr(operation, "body_bytes", 0))


def _decide(operation: asks.Operation, stored: dict[str, asks.StoredState]) -> asks.Write | Answer:
    try:
        return _decide_admitted(operation, stored)
    except StatusError as error:
        return error


def _decide_admitted(operation: asks.Operation, stored: dict[str, asks.StoredState]) -> asks.Write | Answer:
    """Decide one operation, after checking that a new object's namespace exists and is not terminating."""
    target = operation.target
    if isinstance(operation, changes.Change) and target.key not in stored:
        namespace = target.namespace
        if namespace not in {"", *BUILT_IN_NAMESPACES} and _namespace_key(target) not in stored:
            details: dict[str, object] = {"name": namespace, "kind": "namespaces"}
            raise StatusError(404, "NotFound", f'namespaces "{namespace}" not found', details)
        stored_namespace = stored.get(_namespace_key(target)) if namespace else None
        if (
            isinstance(stored_namespace, StoredObject)
            and operation.resource is not None
            and changes.is_ending(stored_namespace)
        ):
            raise in_terminating_namespace(operation.resource, target.name, namespace)
    return operation.decide(stored.get(target.key))


def _namespace_key(target: wishes.Target) -> str:
    return keys.object_key("Namespace", "", target.namespace)


def _version(stored: asks.StoredState) -> int:
    return stored.head.version if stored is not None else 0


def _done(
    operation: asks.Operation, write: asks.Write, current: asks.StoredState, offsets: Appended
) -> Result:
    if isinstance(operation, changes.Change):
        operation.stored = (
            current
            if isinstance(current, StoredObject) and current.head.version == offsets.last + 1
            else None
        )
    return Result(action=write.action, resource_version=offsets.number)


def _problem(verdict: str, reason: str) -> Result:
    return Result(problem=Problem(verdict=verdict, reason=reason))
