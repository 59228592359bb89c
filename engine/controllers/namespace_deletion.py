"""Deletion of namespaces: mark the namespace as terminating, delete its contents, and remove it when it is empty.

As in Kubernetes, the contents stay for a grace period after the mark; meanwhile clients can still write them or end a
protection. Objects with finalizers are only marked and keep the namespace until their last finalizer is removed.
Objects that are protected against deletion keep it until their protection ends. A terminating namespace accepts no new
objects. The namespace is removed with its last object. A deletion that a stop interrupts continues at the next start.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from engine import diagnostics
from engine.controllers import batches
from engine.domain import marks, namespaces
from engine.kubeapi.errors.status_objects import StatusError
from engine.log.port import LogError
from engine.writing.mutations import Action, Problem, Target, Verdict, Written
from engine.writing.object_changes import Preconditions, Removal
from engine.writing.read_side import ReadSide
from engine.writing.write_api import CLIENT_SOURCE, WritePath
from events import shapes
from events.kube_objects import KubeObject
from projections import object_tables, objects
from projections.port import ProjectionError, Rows

GRACE_MS: Final = 2_000
"""Milliseconds from marking a namespace as terminating to deleting its contents; Kubernetes waits five seconds."""

_PAUSE_S: Final = 0.2
_SEARCH_S: Final = 30.0
"""Seconds between searches for marked namespaces whose deletion can continue.

Another server or a producer may have ended a protection, or a slow write may have added an object.
"""

_AFTER_FAILURE_MS: Final = 1_000
_NAMESPACE: Final = object_tables.Kind(*namespaces.KIND)
_FAILURES: Final = (LogError, ProjectionError, StatusError)

_log: Final = diagnostics.logger("gateway.kube")


class Namespaces:
    """Delete namespaces with their contents.

    Before a namespace is removed, ``on_gone`` deletes the objects that clients of simulated members created in it, and
    ``remove_events`` its Events, if clients may write any. With a grace period of 0, as in plans, ``end`` deletes the
    contents at once; else ``run`` deletes them later.
    """

    def __init__(
        self,
        write_api: WritePath,
        reads: ReadSide,
        clock_ms: Callable[[], int],
        on_gone: Callable[[str], Awaitable[None]],
        grace_ms: int = GRACE_MS,
        remove_events: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        self._write_api = write_api
        self._reads = reads
        self._clock_ms = clock_ms
        self._on_gone = on_gone
        self._remove_events = remove_events
        self._grace_ms = grace_ms
        self._due_s: dict[str, float] = {}
        """Time at which the contents of a marked namespace are deleted, in seconds of the event loop, by namespace.

        Not of the clock, which may be corrected by any time.
        """

        self._held: set[str] = set()
        """Terminating namespaces in which this process found protected objects."""

    async def end(
        self, target: Target, preconditions: Preconditions | None
    ) -> tuple[Written | Problem, bool]:
        """Mark a namespace for deletion; its contents are deleted after the grace period.

        Return the answer of the write API, and whether the namespace is already deleted.
        """
        answer = await self._remove(target, preconditions)
        if isinstance(answer, Problem):
            return answer, False
        if self._grace_ms:
            self._due_s.setdefault(target.name, _from_now(self._grace_ms))
            return answer, False
        await self._clear(target.name)
        return answer, await self.finish(target.name)

    async def run(self, stopping: asyncio.Event) -> None:
        """Delete the contents of marked namespaces after their grace period, until the process stops."""
        loop, next_search_s, grace_ms = asyncio.get_running_loop(), 0.0, 0
        while not stopping.is_set():
            if loop.time() >= next_search_s and await self._search(grace_ms):
                next_search_s, grace_ms = loop.time() + _SEARCH_S, self._grace_ms
            now_s = loop.time()
            for name in [name for name, due_s in self._due_s.items() if due_s <= now_s]:
                del self._due_s[name]
                await self._delete_contents(name)
            await asyncio.sleep(_PAUSE_S)

    async def _search(self, grace_ms: int) -> bool:
        """Let ``run`` continue the deletion of all marked namespaces after ``grace_ms``.

        Return False if the views could not be read.
        """
        try:
            marked = await self._reads.read(_marked)
        except (LogError, ProjectionError) as error:
            _log.warning("deletions of namespaces stalled", error=str(error))
            return False
        for name in marked:
            self._due_s.setdefault(name, _from_now(grace_ms))
        return True

    async def finish(self, name: str) -> bool:
        """Remove a namespace if it is marked and empty; return whether it is deleted.

        After a failure, ``run`` tries again.
        """
        try:
            return await self._finish(name)
        except _FAILURES as error:
            self._retry_later(name, str(error))
            return False

    async def _delete_contents(self, name: str) -> None:
        """Delete the contents of a marked namespace, and the namespace if it is then empty."""
        try:
            await self._clear(name)
            await self._finish(name)
        except _FAILURES as error:
            self._retry_later(name, str(error))

    def _retry_later(self, name: str, reason: str) -> None:
        """Log why the deletion of a namespace failed, and let ``run`` continue it after a pause."""
        _log.warning("deletion of a namespace stalled", namespace=name, reason=reason)
        self._due_s[name] = _from_now(_AFTER_FAILURE_MS)

    async def _finish(self, name: str) -> bool:
        namespace, contents = await self._reads.read(lambda rows: _read(rows, name))
        if namespace is None:
            return True
        if not namespace.is_ending or marks.finalizers(namespace) or contents:
            return False
        labels = namespace.labels
        # Delete in members before removing the namespace: if this fails, only an existing namespace causes another
        # attempt.
        if namespaces.is_propagated(name, {label: str(text) for label, text in labels.items()}):
            await self._on_gone(name)
        if self._remove_events is not None:
            await self._remove_events(name)
        target = Target(api_version="v1", kind="Namespace", namespace="", name=name)
        answer = await self._remove(target, is_final=True)
        if isinstance(answer, Problem):
            if answer.verdict != Verdict.NOT_FOUND:
                self._retry_later(name, answer.reason)
            return answer.verdict == Verdict.NOT_FOUND
        return answer.mutated.action == Action.DELETED

    async def _remove(
        self,
        target: Target,
        preconditions: Preconditions | None = None,
        *,
        is_final: bool = False,
    ) -> Written | Problem:
        removal = Removal(
            target=target,
            now_ms=self._clock_ms(),
            preconditions=preconditions,
            is_final=is_final,
        )
        return await self._write_api.change(removal, source=CLIENT_SOURCE)

    async def resume(self, name: str) -> None:
        """Continue the deletion of a namespace after a write to one of its objects, which may end a protection."""
        if name in self._held:
            await self._delete_contents(name)

    async def _clear(self, name: str) -> None:
        # In one read: the marked namespace may have been deleted meanwhile, and another one of this name created.
        namespace, contents = await self._reads.read(lambda rows: _read(rows, name))
        is_marked = namespace is not None and namespace.is_ending
        targets = [
            Target(api_version=ref.api_version, kind=ref.kind, namespace=name, name=ref.name)
            for ref in (contents if is_marked else ())
        ]
        refused = await batches.gather(self._delete, targets)
        protected = [target for target, is_refused in zip(targets, refused, strict=True) if is_refused]
        if not protected:
            self._held.discard(name)
        elif name not in self._held:
            self._held.add(name)
            first = f"{protected[0].kind} {protected[0].name}"
            _log.warning(
                "protected objects keep a namespace", namespace=name, objects=len(protected), first=first
            )

    async def _delete(self, target: Target) -> bool:
        """Delete an object of a namespace; return whether the deletion was refused because the object is protected."""
        try:
            answer = await self._remove(target)
        except StatusError as error:
            if error.reason != "Forbidden":
                raise
            return True
        if isinstance(answer, Problem) and answer.verdict != Verdict.NOT_FOUND:
            self._retry_later(target.namespace, answer.reason)
        return False


def _from_now(ms: int) -> float:
    """Return the time after some milliseconds, in seconds of the event loop."""
    return asyncio.get_running_loop().time() + ms / 1000


def _read(rows: Rows, name: str) -> tuple[KubeObject | None, list[shapes.WorkloadRef]]:
    """Return a namespace, None if it does not exist, and references to the objects in it."""
    return object_tables.get(rows, _NAMESPACE, "", name), objects.in_namespace(rows, name)


def _marked(rows: Rows) -> list[str]:
    """Return the names of the namespaces that are marked for deletion."""
    stored = objects.manifests(rows, *_NAMESPACE)
    return [item.name for item in stored if KubeObject.from_json(item.manifest).is_ending]
