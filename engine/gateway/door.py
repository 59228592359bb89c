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
from engine.gateway.door_appending import SOURCE, Appending, Report
from engine.gateway.door_joining import Joining
from engine.gateway.door_results import NOT_FOUND, REFUSED, Problem, Result
from engine.gateway.door_rounds import Answer, Rounds, Turn
from engine.gateway.door_views import Views
from engine.kube.default_tolerations import TolerationSeconds
from engine.kube.statuses import StatusError
from engine.log import port
from engine.objects import manifests
from engine.objects.manifest_limits import Limits
from events import clusters, limits
from events import forms_kinds as kinds
from events.forms_schema import Fault
from events.tracing import Trace

Json = dict[str, object]

CONTENT_BYTES_MAX: Final = 32 * 1024 * 1024
DOCUMENTS_MAX: Final = 10_000
_LIMITS: Final = Limits(
    content_bytes_max=CONTENT_BYTES_MAX,
    documents_max=DOCUMENTS_MAX,
    depth_max=limits.DEPTH_MAX,
    repeated_bytes_max=limits.OBJECT_BYTES_MAX,
)


class _Change(Struct, frozen=True):
    """One of several changes that go in together, with where it comes from."""

    ask: changes.Change | changes.StatusChange | changes.Removal | asks.AllowDeletion
    source: str
    trace: Trace


class Door:
    """Turns commands into events. ``clock_ms`` and ``new_id`` are the only sources of time and chance.

    ``tolerated`` is for how long policies tolerate clusters that fail, where they don't say.
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
        self._rounds = Rounds(log, views, self._appending)
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
        found = [self._apply(entry) if isinstance(entry, wishes.Wish) else entry for entry in read]
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

    async def delete(
        self, target: wishes.Target, *, force: bool = False, dry_run: bool = False, source: str = SOURCE
    ) -> Result:
        """Deletes one object; a Namespace with all that is in it. With ``force`` a cluster leaves at once."""
        if force and target.route != "cluster":
            return asks.refused(target, [Fault("force", "is for clusters only", "leave it out")])
        deletions = [members.Leave(target=target, force=True)] if force else await self._deletions(target)
        results = await self._carry_out(deletions, dry_run=dry_run, source=source)
        return next((result for result in results if result.problems), results[-1])

    async def scale(self, target: wishes.Target, replicas: int, *, source: str = SOURCE) -> Result:
        """Sets the number of replicas."""
        paths: dict[tuple[str, str], str] = {}
        for raw in await self._views.interpreters():
            interpreter = msgspec.json.decode(raw, type=_Interpreter)
            kind = interpreter.spec.target.api_version, interpreter.spec.target.kind
            if interpreter.spec.replicas_path:
                paths[kind] = interpreter.spec.replicas_path
        return await self._one(asks.Scale(target=target, replicas=replicas, paths=paths), source)

    async def patch(
        self, target: wishes.Target, patch: Json, *, seen: int = 0, source: str = SOURCE
    ) -> Result:
        """Applies a merge patch, if ``seen`` (where it isn't 0) is still the newest resourceVersion."""
        if target.route == "cluster":
            return await self._one(members.PatchCluster(target=target, patch=patch, seen=seen), source)
        ask = asks.Patch(target=target, patch=patch, seen=seen, tolerated=self.tolerated)
        return await self._one(ask, source)

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
        self,
        ask: changes.Change | changes.StatusChange | changes.Removal | asks.AllowDeletion,
        *,
        dry_run: bool,
        source: str,
    ) -> Result:
        """Carries out what the Kubernetes API asks; raises StatusError where it is refused."""
        if not dry_run:
            return await self._joining.join(_Change(ask, source, tracing.current()))
        answers = await self._rounds.carry_out(
            [Turn(0, ask, tracing.current())], {}, dry_run=True, source=source
        )
        return _raised(answers[0])

    async def report(self, batch: Sequence[Report], source: str) -> None:
        """Appends what an agent says; nobody waits for the views. Raises LogError."""
        await self._appending.report(batch, source)

    async def target(self, kind: str, namespace: str, name: str) -> wishes.Target | Result:
        """The object that words mean: a kind in any of its names; kinds of others by what stands."""
        found = kinds.find(kind)
        if found is not None and (reason := kinds.refused(found.api_version, found.kind)):
            return Result(resource=kind, name=name, problems=(Problem(verdict=REFUSED, reason=reason),))
        if found is None:
            word, _dot, group = kind.lower().partition(".")
            await self._views.settle(await self._log.newest())
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
            await self._views.settle(await self._log.newest())
            for api_version, kind, name in await self._views.contained(target.name):
                inner = wishes.Target(api_version=api_version, kind=kind, namespace=target.name, name=name)
                found.append(asks.Delete(target=inner))
        return [*found, asks.Delete(target=target)]

    def _apply(self, wish: wishes.Wish) -> asks.Ask:
        if wish.target.route == "cluster":
            return members.ApplyCluster(wish=wish)
        return asks.Apply(wish=wish, tolerated=self.tolerated)

    async def _one(self, ask: asks.Ask, source: str) -> Result:
        return (await self._carry_out([ask], dry_run=False, source=source))[0]

    async def _carry_out(
        self, found: Sequence[asks.Ask | wishes.Unfit], *, dry_run: bool, source: str
    ) -> list[Result]:
        """Carries out all asks, in order as far as they concern one object; answers in their order."""
        refused: dict[int, Answer] = {}
        waiting: list[Turn] = []
        trace = tracing.current()
        for place, entry in enumerate(found):
            if isinstance(entry, wishes.Unfit):
                refused[place] = entry
            else:
                waiting.append(Turn(place, entry, trace))
        answers = await self._rounds.carry_out(waiting, refused, dry_run=dry_run, source=source)
        unfit = [answer for answer in answers if isinstance(answer, wishes.Unfit)]
        if not dry_run:
            await self._appending.reject(unfit, source)
        return [_raised(answer) for answer in answers]

    async def _change_all(self, group: Sequence[_Change]) -> list[Result | Exception]:
        """Carries out changes that came together; a refusal of one is no business of the others."""
        found: dict[int, Answer] = {}
        for source in dict.fromkeys(each.source for each in group):
            waiting = [
                Turn(place, each.ask, each.trace) for place, each in enumerate(group) if each.source == source
            ]
            answers = await self._rounds.carry_out(waiting, {}, dry_run=False, source=source)
            found |= {turn.place: answer for turn, answer in zip(waiting, answers, strict=True)}
        return [
            answer if isinstance(answer, StatusError) else _result(answer)
            for _, answer in sorted(found.items())
        ]


class _Reads(Struct, frozen=True, rename="camel"):
    """What an interpreter is for."""

    api_version: str
    kind: str


class _InterpreterSpec(Struct, frozen=True, rename="camel"):
    """Where an interpreter finds the replicas."""

    target: _Reads
    replicas_path: str = ""


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
