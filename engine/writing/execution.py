"""Rounds of writes: read current state, decide, append, wait for the views, answer; late writes are retried.

Each round holds at most one operation per object, so operations on one object keep their order.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from engine import loop_share
from engine.kubeapi.errors.status_objects import StatusError, in_terminating_namespace
from engine.log import port
from engine.writing import object_changes
from engine.writing.appending import Appended, Appending, Writing
from engine.writing.mutations import Action, Mutated, Mutation, Problem, StoredState, Verdict, Written
from engine.writing.stored_objects import StoredObject, Views
from engine.writing.targets import Target
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

Answer = Written | Problem | StatusError


class Turn(NamedTuple):
    """One mutation in flight: its place among the answers, its trace, the request's size, the retries so far."""

    place: int
    mutation: Mutation
    trace: Trace
    body_bytes: int = 0
    tries: int = 0


class _Applied(NamedTuple):
    """A turn's mutation, applied to the object as stored with the sequence number ``number`` (0: no object).

    ``start`` is an offset of the object's partition: the state that was read includes all writes below it.
    """

    turn: Turn
    outcome: Mutated | Problem | StatusError
    number: int
    start: int


class _Append(NamedTuple):
    """Events to append, and the offset from which to search for other writes (see ``_Applied``)."""

    turn: Turn
    mutated: Mutated
    start: int


class WriteExecution:
    """Carry out mutations, round after round, until all have answers."""

    def __init__(self, log: port.NumberedLog, views: Views, appending: Appending) -> None:
        self._log = log
        self._views = views
        self._appending = appending

    async def carry_out(self, turns: Sequence[Turn], *, dry_run: bool, source: str) -> list[Answer]:
        """Retry until every turn has an answer; return the answers ordered by ``Turn.place``."""
        answers: dict[int, Answer] = {}
        waiting = list(turns)
        while waiting:
            answered, waiting = await self._round(waiting, dry_run=dry_run, source=source)
            answers |= answered
        return [answers[index] for index in sorted(answers)]

    async def _round(
        self, waiting: Sequence[Turn], *, dry_run: bool, source: str
    ) -> tuple[dict[int, Answer], list[Turn]]:
        """Carry out one round; return answers, and the turns that have none yet."""
        turns, later = _separate(waiting)
        number = self._log.last_number()
        applied = await self._applied(turns, number)
        if dry_run or not all(isinstance(each.outcome, Mutated) and each.outcome.events for each in applied):
            # A write computed from an old version is refused by the fold, so it is safe to decide from stale
            # views. Any other answer (not found, unchanged, refused, dry run) is final and must come from the
            # newest state.
            newest = await self._log.newest()
            if newest > number:
                applied = await self._applied(turns, newest)
        answers: dict[int, Answer] = {}
        writes: list[_Append] = []
        for turn, outcome, current, start in applied:
            if not isinstance(outcome, Mutated):
                answers[turn.place] = outcome
            elif not outcome.events:
                answers[turn.place] = Written(mutated=outcome, resource_version=current)
            elif dry_run:
                answers[turn.place] = Written(mutated=outcome)
            else:
                writes.append(_Append(turn, outcome, start))
        if not writes:
            return answers, later
        written, late = await self._write(writes, source)
        return answers | written, [*late, *later]

    async def _applied(self, turns: Sequence[Turn], number: int) -> list[_Applied]:
        """Apply each turn's mutation to views that have folded ``number``."""
        # Sample the ends before reading the objects: a later end could include a record that the objects do
        # not.
        ends = dict(self._log.ends())
        stored = await self._stored(turns, number=number)
        applied: list[_Applied] = []
        for turn in turns:
            target = turn.mutation.target
            current = stored.get(target.key)
            outcome = await loop_share.apart(_size(turn, current), _outcome, turn.mutation, stored)
            # The views may be ahead of the ends sampled before the look.
            start = max(ends.get(target.slot, 0), _version(current))
            applied.append(_Applied(turn, outcome, current.number if current is not None else 0, start))
        return applied

    async def _write(self, writes: Sequence[_Append], source: str) -> tuple[dict[int, Answer], list[Turn]]:
        """Append and wait for the views; return answers, and the late turns, to be tried again."""
        batch = [Writing(turn.mutation.target, mutated.events, turn.trace) for turn, mutated, _ in writes]
        try:
            appended = await self._appending.write(batch, source)
        except port.OutcomeUnknownError as error:
            # Never retry after an unknown outcome: the write may be stored, and a second one could undo a
            # later write.
            return {write.turn.place: Problem(Verdict.UNKNOWN, str(error)) for write in writes}, []
        # On Kafka the last record of a batch over several partitions need not have the highest number.
        newest = max(offsets.number for offsets in appended)
        stored = await self._stored([write.turn for write in writes], number=newest)
        answers: dict[int, Answer] = {}
        late: list[Turn] = []
        for (turn, mutated, start), offsets in zip(writes, appended, strict=True):
            target = turn.mutation.target
            current = stored.get(target.key)
            if await self._took_effect(target, mutated, current, offsets, start):
                is_newest = isinstance(current, StoredObject) and current.head.version == offsets.last + 1
                answers[turn.place] = Written(
                    mutated=mutated,
                    resource_version=offsets.number,
                    stored=current if isinstance(current, StoredObject) and is_newest else None,
                )
            elif turn.tries < _TRIES_MAX:
                late.append(turn._replace(tries=turn.tries + 1))
            else:
                reason = f"another client changed it in each of {_TRIES_MAX} attempts; try again"
                answers[turn.place] = Problem(Verdict.LATE, reason)
        return answers, late

    async def _took_effect(
        self,
        target: Target,
        mutated: Mutated,
        current: StoredState,
        offsets: Appended,
        start: int,
    ) -> bool:
        """Whether a write was accepted by the fold.

        It was if the object now has its version. Otherwise it may have been accepted and then overwritten, which
        follows from the partition's records: no other record of the object between the read (``start``) and the
        write, and one after it.
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

    async def _stored(self, turns: Sequence[Turn], *, number: int) -> dict[str, StoredState]:
        """Current state of the turns' objects and their namespaces, by key, from views that have folded ``number``."""
        await self._views.settle(number)
        targets = [turn.mutation.target for turn in turns]
        object_keys = {target.key for target in targets if target.route != "cluster"}
        object_keys |= {target.namespace_key for target in targets}
        states: dict[str, StoredState] = {}
        states.update(await self._views.objects(sorted(object_keys)))
        for target in targets:
            if target.route == "cluster":
                states[target.key] = await self._views.cluster(target.name)
        return states


def raised(answer: Answer) -> Written | Problem:
    """Return the answer; raise a refusal."""
    if isinstance(answer, StatusError):
        raise answer
    return answer


def _separate(waiting: Sequence[Turn]) -> tuple[list[Turn], list[Turn]]:
    """Split off the turns to carry out now: the first of each object.

    A turn also waits for an earlier turn on its namespace. The order of turns on one object never changes.
    """
    turns: list[Turn] = []
    later: list[Turn] = []
    busy: set[str] = set()
    for turn in waiting:
        target = turn.mutation.target
        if target.key in busy or target.namespace_key in busy or len(turns) >= _WRITES_MAX:
            later.append(turn)
        else:
            turns.append(turn)
        # Also for turns put off: a later turn on the same object must not overtake them.
        busy.add(target.key)
    return turns, later


def _size(turn: Turn, current: StoredState) -> int:
    stored_bytes = len(current.manifest) if isinstance(current, StoredObject) else 0
    return max(stored_bytes, turn.body_bytes)


def _outcome(mutation: Mutation, stored: dict[str, StoredState]) -> Mutated | Problem | StatusError:
    try:
        _check_namespace(mutation, stored)
        return mutation.apply(stored.get(mutation.target.key))
    except StatusError as error:
        return error


def _check_namespace(mutation: Mutation, stored: dict[str, StoredState]) -> None:
    """Raise StatusError if an object would be created in a namespace that does not exist or is terminating."""
    target = mutation.target
    if not isinstance(mutation, object_changes.Change) or target.key in stored or not target.namespace:
        return
    namespace = stored.get(target.namespace_key)
    if namespace is None and target.namespace not in BUILT_IN_NAMESPACES:
        details: dict[str, object] = {"name": target.namespace, "kind": "namespaces"}
        raise StatusError(404, "NotFound", f'namespaces "{target.namespace}" not found', details)
    if (
        isinstance(namespace, StoredObject)
        and mutation.resource is not None
        and object_changes.is_ending(namespace)
    ):
        raise in_terminating_namespace(mutation.resource, target.name, target.namespace)


def _version(stored: StoredState) -> int:
    return stored.head.version if stored is not None else 0
