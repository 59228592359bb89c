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
from engine.writing.stored_objects import Held, Views
from events import keys
from events.tracing import Trace

_WRITES_MAX: Final = 512
"""Writes per append: enough to share a disk sync, few enough to let other writers of the log in between."""
_TRIES_MAX: Final = 5
GIVEN_NAMESPACES: Final = (
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
        """Retry until every turn has an answer; return the answers ordered by ``Turn.place``."""
        while waiting:
            waiting = await self._round(waiting, answers, dry_run=dry_run, source=source)
        return [answers[place] for place in sorted(answers)]

    async def _round(
        self, waiting: list[Turn], answers: dict[int, Answer], *, dry_run: bool, source: str
    ) -> list[Turn]:
        """Carry out one round; return the turns that still have no answer."""
        turns, later = _separate(waiting)
        number = self._log.last_number()
        found, starts = await self._decided(turns, number)
        if dry_run or not all(isinstance(each, asks.Write) for each in found):
            # A write computed from an old version is refused by the fold, so it is safe to decide from stale
            # views. Any other answer (not found, unchanged, refused, dry run) is final and must come from the
            # newest state.
            newest = await self._log.newest()
            if newest > number:
                found, starts = await self._decided(turns, newest)
        written: list[tuple[Turn, asks.Write]] = []
        for turn, decided in zip(turns, found, strict=True):
            if isinstance(decided, asks.Write) and not dry_run:
                written.append((turn, decided))
            elif isinstance(decided, asks.Write):
                answers[turn.index] = Result(action=f"{decided.action} (dry run)")
            else:
                answers[turn.index] = decided
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
        standing = await self._stored(turns, number=number)
        starts: dict[str, int] = {}
        for turn in turns:
            target = turn.operation.target
            # The views may be ahead of the ends sampled before the look.
            end = ends.get((target.topic, partition_of(target)), 0)
            starts[target.key] = max(end, _version(standing.get(target.key)))
        return [
            await loop_share.apart(_size(turn.operation, standing), _decide, turn.operation, standing)
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
        newest = max(place.number for place in appended)
        standing = await self._stored([turn for turn, _ in written], number=newest)
        late: list[Turn] = []
        for (turn, write), place in zip(written, appended, strict=True):
            target = turn.operation.target
            now = standing.get(target.key)
            if await self._took_effect(target, write, now, place, starts[target.key]):
                answers[turn.index] = _done(turn.operation, write, now, place)
            elif turn.tries < _TRIES_MAX:
                late.append(Turn(turn.index, turn.operation, turn.trace, turn.tries + 1))
            else:
                reason = f"tried {_TRIES_MAX} times, and somebody else wrote it each time"
                answers[turn.index] = _problem(LATE, reason)
        return late

    async def _took_effect(
        self, target: wishes.Target, write: asks.Write, now: asks.StoredState, place: Appended, start: int
    ) -> bool:
        """Whether a write was accepted by the fold.

        It was if the object now has its version. Otherwise it may have been accepted and then overwritten,
        which follows from the partition's records: no other record of the object between the look (``start``)
        and the write, and one after it.
        """
        if _version(now) == place.last + 1 or (write.is_report and now is not None):
            return True
        if not await self._appending.untouched(target, start, place.first):
            return False
        if write.action == "deleted" and now is None:
            return True
        # The views run in a process of their own and may have folded a later record of the object that this
        # process does not know yet, for example the deletion of a rebalancer that expires at once.
        await self._log.newest()
        end = self._log.ends().get((target.topic, partition_of(target)), 0)
        return not await self._appending.untouched(target, place.last + 1, end)

    async def _stored(self, turns: Sequence[Turn], *, number: int) -> dict[str, asks.StoredState]:
        """Current state of the turns' objects and their namespaces, by key, from views that have folded ``number``."""
        await self._views.settle(number)
        wanted = {turn.operation.target.key for turn in turns if turn.operation.target.route != "cluster"}
        wanted |= {_namespace_key(turn.operation.target) for turn in turns}
        found: dict[str, asks.StoredState] = {}
        found.update(await self._views.objects(sorted(wanted)))
        for turn in turns:
            if turn.operation.target.route == "cluster":
                found[turn.operation.target.key] = await self._views.cluster(turn.operation.target.name)
        return found


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


def _size(ask: asks.Operation, standing: dict[str, asks.StoredState]) -> int:
    held = standing.get(ask.target.key)
    held_bytes = len(held.manifest) if isinstance(held, Held) else 0
    return max(held_bytes, getattr(ask, "body_bytes", 0))


def _decide(ask: asks.Operation, standing: dict[str, asks.StoredState]) -> asks.Write | Answer:
    try:
        return _decide_admitted(ask, standing)
    except StatusError as error:
        return error


def _decide_admitted(ask: asks.Operation, standing: dict[str, asks.StoredState]) -> asks.Write | Answer:
    """Decide one operation, after checking that a new object's namespace exists and is not terminating."""
    target = ask.target
    if isinstance(ask, changes.Change) and target.key not in standing:
        namespace = target.namespace
        if namespace not in {"", *GIVEN_NAMESPACES} and _namespace_key(target) not in standing:
            details: dict[str, object] = {"name": namespace, "kind": "namespaces"}
            raise StatusError(404, "NotFound", f'namespaces "{namespace}" not found', details)
        held = standing.get(_namespace_key(target)) if namespace else None
        if isinstance(held, Held) and ask.resource is not None and changes.is_ending(held):
            raise in_terminating_namespace(ask.resource, target.name, namespace)
    return ask.decide(standing.get(target.key))


def _namespace_key(target: wishes.Target) -> str:
    return keys.object_key("Namespace", "", target.namespace)


def _version(standing: asks.StoredState) -> int:
    return standing.head.version if standing is not None else 0


def _done(ask: asks.Operation, write: asks.Write, now: asks.StoredState, place: Appended) -> Result:
    if isinstance(ask, changes.Change):
        ask.held = now if isinstance(now, Held) and now.head.version == place.last + 1 else None
    return Result(action=write.action, resource_version=place.number)


def _problem(verdict: str, reason: str) -> Result:
    return Result(problem=Problem(verdict=verdict, reason=reason))
