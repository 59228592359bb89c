"""The door: commands of people become events, and each gets its answer.

What is sent is read, checked and only then appended; of the documents of one call the good ones are applied and
the others reported, as kubectl does. A write carries the version of the object that it was computed from. When
somebody else was faster, it is computed again from what stands then, a few times. The answer comes when the views
show the write, so whoever asked reads it.
"""

from collections.abc import Callable, Sequence
from typing import Final

import anyio.to_thread
import msgspec
from msgspec import Struct

from engine.gateway import door_asks as asks
from engine.gateway import door_changes as changes
from engine.gateway import door_clusters as members
from engine.gateway import door_wishes as wishes
from engine.gateway import tracing
from engine.gateway.door_appending import SOURCE, Appended, Appending, Writing, partition_of
from engine.gateway.door_joining import Joining
from engine.gateway.door_results import LATE, NOT_FOUND, REFUSED, UNKNOWN, Problem, Result
from engine.gateway.door_views import Held, Views
from engine.kube.statuses import StatusError, in_terminating_namespace
from engine.log import port
from engine.objects import manifests
from engine.objects.manifest_limits import Limits
from events import clusters, keys, limits
from events import forms_kinds as kinds
from events.forms_schema import Fault
from events.tracing import Trace
from projections.clusters import Cluster

Json = dict[str, object]

CONTENT_BYTES_MAX: Final = 32 * 1024 * 1024
DOCUMENTS_MAX: Final = 10_000
_WRITES_MAX: Final = 512
"""Writes of one append: enough to share a sync, few enough to leave the log to others in between."""
_TRIES_MAX: Final = 5
GIVEN_NAMESPACES: Final = (
    "default",
    "karmada-cluster",
    "karmada-system",
    "kube-node-lease",
    "kube-public",
    "kube-system",
)
"""Namespaces that are always there."""

_LIMITS: Final = Limits(
    content_bytes_max=CONTENT_BYTES_MAX,
    documents_max=DOCUMENTS_MAX,
    depth_max=limits.DEPTH_MAX,
    repeated_bytes_max=limits.OBJECT_BYTES_MAX,
)

Answer = Result | wishes.Unfit | StatusError


class _Turn(Struct):
    """One ask on its way: its place among the answers, in which trace, and how often it was tried."""

    place: int
    ask: asks.Ask
    trace: Trace
    tries: int = 0


class _Change(Struct, frozen=True):
    """One of several changes that go in together, with where it comes from."""

    ask: changes.Change | changes.StatusChange | changes.Removal
    source: str
    trace: Trace


class Door:
    """Turns commands into events. ``clock_ms`` and ``new_id`` are the only sources of time and chance."""

    def __init__(
        self, log: port.NumberedLog, views: Views, clock_ms: Callable[[], int], new_id: Callable[[], str]
    ) -> None:
        self._log = log
        self._views = views
        self._appending = Appending(log, clock_ms, new_id)
        self._joining = Joining(self._change_all)

    async def apply(
        self,
        content: bytes,
        *,
        file: str = "",
        namespace: str = "default",
        validation: wishes.Validation = "strict",
        dry_run: bool = False,
        source: str = SOURCE,
    ) -> list[Result]:
        """Applies each object in YAML or JSON; objects without a namespace go to ``namespace``."""
        read = await anyio.to_thread.run_sync(_read, content, file, namespace, validation)
        found = [_apply(entry) if isinstance(entry, wishes.Wish) else entry for entry in read]
        return await self._carry_out(found, dry_run=dry_run, source=source)

    async def delete_content(
        self,
        content: bytes,
        *,
        file: str = "",
        namespace: str = "default",
        dry_run: bool = False,
        source: str = SOURCE,
    ) -> list[Result]:
        """Deletes each object that is named in YAML or JSON; only kinds and names are looked at."""
        read = await anyio.to_thread.run_sync(_read, content, file, namespace, "ignore")
        found: list[asks.Ask | wishes.Unfit] = []
        for entry in reversed(read):
            if isinstance(entry, wishes.Wish):
                found.extend(await self._deletions(entry.target))
            else:
                found.append(entry)
        return await self._carry_out(found, dry_run=dry_run, source=source)

    async def delete(self, target: wishes.Target, *, dry_run: bool = False, source: str = SOURCE) -> Result:
        """Deletes one object; a Namespace with all that is in it."""
        results = await self._carry_out(await self._deletions(target), dry_run=dry_run, source=source)
        return next((result for result in results if result.problems), results[-1])

    async def scale(self, target: wishes.Target, replicas: int, *, source: str = SOURCE) -> Result:
        """Sets the number of replicas."""
        paths: dict[tuple[str, str], str] = {}
        for raw in await self._views.interpreters():
            interpreter = msgspec.json.decode(raw, type=_Interpreter)
            paths[interpreter.spec.target.api_version, interpreter.spec.target.kind] = (
                interpreter.spec.replicas_path
            )
        return await self._one(asks.Scale(target=target, replicas=replicas, paths=paths), source)

    async def patch(
        self, target: wishes.Target, patch: Json, *, seen: int = 0, source: str = SOURCE
    ) -> Result:
        """Applies a merge patch, if ``seen`` (where it isn't 0) is still the newest resourceVersion."""
        if target.route == "cluster":
            return await self._one(members.PatchCluster(target=target, patch=patch, seen=seen), source)
        return await self._one(asks.Patch(target=target, patch=patch, seen=seen), source)

    async def label(
        self,
        target: wishes.Target,
        labels: dict[str, str | None],
        *,
        overwrite: bool = False,
        source: str = SOURCE,
    ) -> Result:
        """Sets labels, and takes away those that are None."""
        if target.route == "cluster":
            ask = members.LabelCluster(target=target, labels=labels, overwrite=overwrite)
            return await self._one(ask, source)
        return await self._one(asks.Label(target=target, labels=labels, overwrite=overwrite), source)

    async def taint(
        self,
        cluster: str,
        *,
        added: Sequence[clusters.Taint] = (),
        removed: Sequence[members.TaintKey] = (),
        source: str = SOURCE,
    ) -> Result:
        """Sets taints of a cluster, and takes others away."""
        ask = members.Retaint(target=cluster_target(cluster), added=tuple(added), removed=tuple(removed))
        return await self._one(ask, source)

    async def cordon(self, cluster: str, *, cordoned: bool, source: str = SOURCE) -> Result:
        """Makes a cluster unschedulable, or schedulable again."""
        target = cluster_target(cluster)
        if cordoned:
            ask = members.Retaint(target=target, added=(members.CORDON,), action="cordoned")
            return await self._one(ask, source)
        gone = members.TaintKey(key=members.CORDON.key, effect=members.CORDON.effect)
        found = await self._views.cluster(cluster)
        if found is not None and not any(taint.key == gone.key for taint in found.spec.taints):
            return members.cluster_done(target, "unchanged", found)
        return await self._one(members.Retaint(target=target, removed=(gone,), action="uncordoned"), source)

    async def change(
        self, ask: changes.Change | changes.StatusChange | changes.Removal, *, dry_run: bool, source: str
    ) -> Result:
        """Carries out what the Kubernetes API asks; raises StatusError where it is refused."""
        if not dry_run:
            return await self._joining.join(_Change(ask, source, tracing.current()))
        answers = await self._answers([_Turn(0, ask, tracing.current())], {}, dry_run=True, source=source)
        return _raised(answers[0])

    async def target(self, kind: str, namespace: str, name: str) -> wishes.Target | Result:
        """The object that words mean: a kind in any of its names; kinds of others by what stands."""
        found = kinds.find(kind)
        if found is not None and (reason := kinds.refused(found.api_version, found.kind)):
            return Result(resource=kind, name=name, problems=(Problem(verdict=REFUSED, reason=reason),))
        if found is None:
            word, _dot, group = kind.lower().partition(".")
            await self._views.settle(self._log.last_number())
            for api_version, other in await self._views.kinds():
                names = {other.lower(), f"{other.lower()}s", f"{other.lower()}es"}
                if word in names and group in {"", api_version.partition("/")[0]}:
                    return wishes.Target(api_version=api_version, kind=other, namespace=namespace, name=name)
            reason = f"nobody knows the kind {kind!r}"
            problem = Problem(
                verdict=NOT_FOUND, field="kind", reason=reason, remedy="write it as kubectl does"
            )
            return Result(resource=kind, name=name, problems=(problem,))
        place = namespace if found.namespaced else ""
        return wishes.Target(api_version=found.api_version, kind=found.kind, namespace=place, name=name)

    async def _deletions(self, target: wishes.Target) -> list[asks.Ask | wishes.Unfit]:
        """What deletes an object: a Namespace takes with it what is in it."""
        if target.route == "cluster":
            return [members.Leave(target=target)]
        found: list[asks.Ask | wishes.Unfit] = []
        if target.route == "namespace":
            await self._views.settle(self._log.last_number())
            for api_version, kind, name in await self._views.contained(target.name):
                inner = wishes.Target(api_version=api_version, kind=kind, namespace=target.name, name=name)
                found.append(asks.Delete(target=inner))
        return [*found, asks.Delete(target=target)]

    async def _one(self, ask: asks.Ask, source: str) -> Result:
        return (await self._carry_out([ask], dry_run=False, source=source))[0]

    async def _carry_out(
        self, found: Sequence[asks.Ask | wishes.Unfit], *, dry_run: bool, source: str
    ) -> list[Result]:
        """Carries out all asks, in order as far as they concern one object; answers in their order."""
        refused: dict[int, Answer] = {}
        waiting: list[_Turn] = []
        trace = tracing.current()
        for place, entry in enumerate(found):
            if isinstance(entry, wishes.Unfit):
                refused[place] = entry
            else:
                waiting.append(_Turn(place, entry, trace))
        answers = await self._answers(waiting, refused, dry_run=dry_run, source=source)
        unfit = [answer for answer in answers if isinstance(answer, wishes.Unfit)]
        if not dry_run:
            await self._appending.reject(unfit, source)
        return [_raised(answer) for answer in answers]

    async def _change_all(self, group: Sequence[_Change]) -> list[Result | Exception]:
        """Carries out changes that came together; a refusal of one is no business of the others."""
        found: dict[int, Answer] = {}
        for source in dict.fromkeys(each.source for each in group):
            waiting = [
                _Turn(place, each.ask, each.trace)
                for place, each in enumerate(group)
                if each.source == source
            ]
            answers = await self._answers(waiting, {}, dry_run=False, source=source)
            found |= {turn.place: answer for turn, answer in zip(waiting, answers, strict=True)}
        return [
            answer if isinstance(answer, StatusError) else _result(answer)
            for _, answer in sorted(found.items())
        ]

    async def _answers(
        self, waiting: list[_Turn], answers: dict[int, Answer], *, dry_run: bool, source: str
    ) -> list[Answer]:
        """Tries until all have their answers; gives those in the order of their places."""
        while waiting:
            waiting = await self._round(waiting, answers, dry_run=dry_run, source=source)
        return [answers[place] for place in sorted(answers)]

    async def _round(
        self, waiting: list[_Turn], answers: dict[int, Answer], *, dry_run: bool, source: str
    ) -> list[_Turn]:
        """Tries what can be tried together; gives what is still waiting."""
        turns, later = _separate(waiting)
        ends = dict(self._log.ends())
        standing = await self._look(turns, number=self._log.last_number())
        written: list[tuple[_Turn, asks.Write]] = []
        for turn in turns:
            try:
                decided = _decide(turn.ask, standing)
            except StatusError as error:
                decided = error
            if isinstance(decided, asks.Write) and not dry_run:
                written.append((turn, decided))
            elif isinstance(decided, asks.Write):
                answers[turn.place] = asks.done(
                    turn.ask.target, f"{decided.action} (dry run)", None, decided.warnings
                )
            else:
                answers[turn.place] = decided
        if written:
            later = [*await self._write(written, ends, answers, source), *later]
        return later

    async def _write(
        self,
        written: list[tuple[_Turn, asks.Write]],
        ends: port.Ends,
        answers: dict[int, Answer],
        source: str,
    ) -> list[_Turn]:
        """Appends, waits for the views, and answers; gives what came too late and is tried again."""
        batch = [Writing(turn.ask.target, write.events, turn.trace) for turn, write in written]
        try:
            appended = await self._appending.write(batch, source)
        except port.OutcomeUnknownError as error:
            for turn, _write in written:
                answers[turn.place] = _problem(turn.ask.target, UNKNOWN, str(error), "look, then repeat it")
            return []
        standing = await self._look([turn for turn, _ in written], number=appended[-1].number)
        late: list[_Turn] = []
        for (turn, write), place in zip(written, appended, strict=True):
            target = turn.ask.target
            now = standing.get(target.key)
            start = ends.get((target.topic, partition_of(target)), 0)
            if await self._took_effect(target, write, now, place, start):
                answers[turn.place] = _done(turn.ask, write, now, place)
            elif turn.tries < _TRIES_MAX:
                late.append(_Turn(turn.place, turn.ask, turn.trace, turn.tries + 1))
            else:
                reason = f"tried {_TRIES_MAX} times, and somebody else wrote it each time"
                answers[turn.place] = _problem(target, LATE, reason, "try again")
        return late

    async def _took_effect(
        self, target: wishes.Target, write: asks.Write, now: asks.Standing, place: Appended, start: int
    ) -> bool:
        """Whether a write was taken: its version stands, or stood until somebody else wrote after it.

        ``start`` is the end of the partition when the object was looked at.
        """
        if _version(now) == place.last + 1 or (write.is_report and now is not None):
            return True
        if not await self._appending.untouched(target, start, place.first):
            return False
        if write.action == "deleted" and now is None:
            return True
        end = self._log.ends().get((target.topic, partition_of(target)), 0)
        return not await self._appending.untouched(target, place.last + 1, end)

    async def _look(self, turns: Sequence[_Turn], *, number: int) -> dict[str, asks.Standing]:
        """What stands now, of all that the turns are about, their namespaces included."""
        await self._views.settle(number)
        wanted = {turn.ask.target.key for turn in turns if turn.ask.target.route != "cluster"}
        wanted |= {_namespace_key(turn.ask.target) for turn in turns}
        found: dict[str, asks.Standing] = {}
        found.update(await self._views.objects(sorted(wanted)))
        for turn in turns:
            if turn.ask.target.route == "cluster":
                found[turn.ask.target.key] = await self._views.cluster(turn.ask.target.name)
        return found


class _Reads(Struct, frozen=True, rename="camel"):
    """What an interpreter is for."""

    api_version: str
    kind: str


class _InterpreterSpec(Struct, frozen=True, rename="camel"):
    """Where an interpreter finds the replicas."""

    target: _Reads
    replicas_path: str


class _Interpreter(Struct, frozen=True):
    """A ReplicaInterpreter, as far as scaling reads it."""

    spec: _InterpreterSpec


def cluster_target(name: str) -> wishes.Target:
    """The target that a cluster's name means."""
    return wishes.Target(api_version=kinds.CLUSTER_GROUP, kind="Cluster", namespace="", name=name)


def _read(
    content: bytes, file: str, namespace: str, validation: wishes.Validation
) -> list[wishes.Wish | wishes.Unfit]:
    return [
        wishes.unreadable(entry)
        if isinstance(entry, manifests.Fault)
        else wishes.read(entry, namespace=namespace, validation=validation)
        for entry in manifests.read(content, file=file, limits=_LIMITS)
    ]


def _apply(wish: wishes.Wish) -> asks.Ask:
    return members.ApplyCluster(wish=wish) if wish.target.route == "cluster" else asks.Apply(wish=wish)


def _separate(waiting: list[_Turn]) -> tuple[list[_Turn], list[_Turn]]:
    """The first turn of each object, and the turns that wait for one of those; an object waits for its namespace."""
    turns: list[_Turn] = []
    later: list[_Turn] = []
    busy: set[str] = set()
    for turn in waiting:
        target = turn.ask.target
        if target.key in busy or _namespace_key(target) in busy or len(turns) >= _WRITES_MAX:
            later.append(turn)
        else:
            turns.append(turn)
        busy.add(target.key)
    return turns, later


def _decide(ask: asks.Ask, standing: dict[str, asks.Standing]) -> asks.Write | Answer:
    target = ask.target
    if isinstance(ask, asks.Apply) and target.namespace not in {"", *GIVEN_NAMESPACES}:
        namespace = _namespace_key(target)
        if namespace not in standing:
            remedy = f"create the Namespace {target.namespace} first"
            fault = Fault("metadata.namespace", f'namespace "{target.namespace}" not found', remedy)
            return wishes.unfit(ask.wish.source, [fault], target)
    if isinstance(ask, changes.Change) and target.key not in standing:
        namespace = target.namespace
        if namespace not in {"", *GIVEN_NAMESPACES} and _namespace_key(target) not in standing:
            details: Json = {"name": namespace, "kind": "namespaces"}
            raise StatusError(404, "NotFound", f'namespaces "{namespace}" not found', details)
        held = standing.get(_namespace_key(target)) if namespace else None
        if isinstance(held, Held) and ask.resource is not None and changes.is_ending(held):
            raise in_terminating_namespace(ask.resource, target.name, namespace)
    if isinstance(ask, asks.Delete) and target.route == "namespace" and target.name in GIVEN_NAMESPACES:
        return _problem(target, REFUSED, "this namespace is always there", "")
    return ask.decide(standing.get(target.key))


def _namespace_key(target: wishes.Target) -> str:
    return keys.object_key("Namespace", "", target.namespace)


def _version(standing: asks.Standing) -> int:
    return standing.head.version if standing is not None else 0


def _done(ask: asks.Ask, write: asks.Write, now: asks.Standing, place: Appended) -> Result:
    target = ask.target
    if isinstance(ask, changes.Change):
        ask.held = now if isinstance(now, Held) and now.head.version == place.last + 1 else None
        return asks.named(target, write.action, place.number, write.warnings)
    if write.action == "deleted":
        answer = asks.done(target, write.action, None, write.warnings)
        return msgspec.structs.replace(answer, resource_version=place.number)
    if isinstance(now, Cluster):
        return members.cluster_done(target, write.action, now, write.warnings)
    held = now if isinstance(now, Held) else None
    return asks.done(target, write.action, held, write.warnings)


def _raised(answer: Answer) -> Result:
    """The answer; raises the refusal that it is."""
    if isinstance(answer, StatusError):
        raise answer
    return _result(answer)


def _result(answer: Result | wishes.Unfit) -> Result:
    if isinstance(answer, Result):
        return answer
    target = answer.target
    return Result(
        resource=target.resource if target else "",
        namespace=target.namespace if target else "",
        name=target.name if target else "",
        problems=answer.problems,
    )


def _problem(target: wishes.Target, verdict: str, reason: str, remedy: str) -> Result:
    return Result(
        resource=target.resource,
        namespace=target.namespace,
        name=target.name,
        problems=(Problem(verdict=verdict, reason=reason, remedy=remedy),),
    )
