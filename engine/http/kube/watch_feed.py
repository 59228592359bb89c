"""Distribution of changes to watches: the views are read once for all watches, in log order.

A batch has the current state of each object, so several changes of one object become one event. Numbers are sequence
numbers of the log. A slow watch does not delay others: if its queue overflows, it is ended, and its client resumes
from the last bookmark.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Final, NamedTuple

from engine import diagnostics
from engine.http.kube import bootstrap_objects
from engine.http.kube.control_plane import ControlPlane
from engine.http.kube.rate_limits import Limits
from engine.kubeapi.conversion import versions
from engine.kubeapi.schema.resources import Resource, control_plane
from engine.log.port import AFTER_FAILURE_S, LogError
from engine.writing.read_side import ReadSide
from events.kube_objects import KubeObject
from projections import changes, object_tables
from projections.changes import Change
from projections.port import ProjectionError, Rows

_PAUSE_SECONDS_MIN: Final = 0.0005
_PAUSE_SECONDS_MAX: Final = 0.005
"""Longest pause between two reads, in seconds; pauses turn many small batches of a busy log into few large ones.

Within its limits a pause is as long as the read before it, so that watches of a quiet log see little delay.
"""

_CHANGE_TYPES: Final = {changes.ADDED: "ADDED", changes.MODIFIED: "MODIFIED", changes.DELETED: "DELETED"}
_log = diagnostics.logger("gateway.kube")


Key = tuple[str, str, str]
"""Group, version and plural of a kind."""


class ObjectChange:
    """A change of one object, and the rendered object; ``lines`` caches encoded lines for watches of the same form."""

    __slots__ = ("change_type", "key", "lines", "number", "value")

    def __init__(
        self, number: int, change_type: str, key: object_tables.ObjectKey, value: KubeObject
    ) -> None:
        self.number = number
        self.change_type = change_type
        self.key = key
        self.value = value
        self.lines: dict[object, bytes] = {}


class Batch(NamedTuple):
    """Changes of one kind up to a number.

    ``unreported`` are objects that existed at that number, but whose creation is missing in ``changes``. They changed
    again later, and their state at that number can no longer be read. The next event of each must be ADDED.
    """

    changes: list[ObjectChange]
    unreported: frozenset[object_tables.ObjectKey]


class Subscriber:
    """The queue of one watch; ``position`` is the number up to which changes have been queued.

    ``_unreported`` are existing objects that this watch has not seen: their creation was left out because they changed
    again later. The next change of each is reported as ADDED; a deletion is not reported.
    """

    def __init__(self, resource: Resource, position: int, limits: Limits) -> None:
        self.resource = resource
        self._limits = limits
        self._waits_since = 0.0
        self.kind = object_tables.Kind(resource.api_version, resource.kind)
        self.position = position
        self.floor = 0
        """The sequence number after which the watch needs changes; the feed may not have read up to it yet."""
        self.is_cut = False
        self.more = asyncio.Event()
        self._queue: deque[ObjectChange] = deque()
        self._unreported: set[object_tables.ObjectKey] = set()

    @property
    def start(self) -> int:
        """The number after which the next changes are read.

        Each subscriber has its own position: if a read of the feed fails, some subscribers have already received their
        changes and must not receive them twice.
        """
        return max(self.position, self.floor)

    def restart(self, since: int) -> int:
        """Drop the queued changes; from now on, queue only changes after ``since``.

        Return the number after which the queue will contain all changes. If the feed has already read past ``since``,
        this number is larger than ``since``, and the caller must read the changes in between itself.
        """
        self._queue.clear()
        self._unreported.clear()
        # Keep ``more`` set for a watch that was cut; otherwise it would end only after the next bookmark.
        if not self.is_cut:
            self.more.clear()
        self.floor = since
        return self.start

    def mark_unreported(self, keys: set[object_tables.ObjectKey]) -> None:
        """Mark objects that were created before the first queued change, but not reported.

        Changes the queue: if the first change of such an object is MODIFIED, it becomes ADDED.
        """
        unseen = set(keys)
        self._queue = deque(_with_additions(self._queue, unseen))
        self._unreported |= unseen

    def enqueue(self, batch: "Batch", position: int) -> None:
        """Queue a batch of changes up to ``position``; end the watch if its queue is too long or waits too long."""
        now = asyncio.get_running_loop().time()
        is_late = bool(self._queue) and now - self._waits_since > self._limits.queue_seconds
        if not self._queue:
            self._waits_since = now
        # Do this before adding the batch's unreported objects: the batch may contain the deletion of an
        # earlier object of the same name, which must not be taken for the first report of the new one.
        self._queue.extend(_with_additions(batch.changes, self._unreported))
        self._unreported |= batch.unreported
        self.position = position
        if is_late or len(self._queue) > self._limits.queue:
            self.cut()
        elif self._queue:
            self.more.set()

    def cut(self) -> None:
        """End the watch; its client resumes from the last bookmark."""
        self._queue.clear()
        self.is_cut = True
        self.more.set()

    def take(self) -> list[ObjectChange]:
        """Remove and return all queued changes."""
        self.more.clear()
        taken = list(self._queue)
        self._queue.clear()
        return taken


class Feed:
    """Read changes for all subscribers; runs only while there are subscribers."""

    def __init__(self, reads: ReadSide, plane: ControlPlane, limits: Limits) -> None:
        self._limits = limits
        self._reads = reads
        self._plane = plane
        self._subscribers: set[Subscriber] = set()
        self._position = 0
        self._task: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None

    def subscribe(self, resource: Resource) -> Subscriber:
        """Subscribe to the changes of a kind after the current position."""
        # The feed does not read without subscribers, so its old position may be far behind: begin at the end.
        if not self._subscribers:
            self._position = self._reads.views.folded
        subscriber = Subscriber(resource, self._position, self._limits)
        self._subscribers.add(subscriber)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        if self._ending is None:
            self._ending = asyncio.create_task(self._end())
        return subscriber

    def leave(self, subscriber: Subscriber) -> None:
        """Unsubscribe; the last one to leave stops the reads."""
        self._subscribers.discard(subscriber)
        if not self._subscribers and self._task is not None:
            self._task.cancel()
            self._task = None
        if not self._subscribers and self._ending is not None:
            self._ending.cancel()
            self._ending = None

    async def _end(self) -> None:
        """Wake all subscribers when the process stops, so that their watches end with a bookmark."""
        await self._reads.stopping.wait()
        for subscriber in self._subscribers:
            subscriber.more.set()

    async def backlog(self, resource: Resource, after: int, end: int) -> Batch:
        """Changes of a kind after number ``after`` up to ``end`` (inclusive), with the current state of each object."""
        kind = object_tables.Kind(resource.api_version, resource.kind)

        def read_changes(rows: Rows) -> Batch:
            by_kind = {name: changes.between(rows, after, end, name) for name in _followed(kind)}
            return _changes_of(rows, resource, by_kind, self._plane, end)

        return await self._plane.reads.peek(read_changes)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            began_s = loop.time()
            try:
                await self._reads.views.wait_folded(self._position + 1)
                began_s = loop.time()
                await self._turn()
            except (LogError, ProjectionError) as error:
                _log.warning("watch feed stalled", error=str(error))
                await asyncio.sleep(AFTER_FAILURE_S)
            except Exception:  # noqa: BLE001  # a defect at one change must not end the feed silently
                # Skip the change, or the feed would fail forever. Then only watches that resume before the change
                # fail.
                _log.exception("watch feed failed; watches end")
                for subscriber in self._subscribers:
                    subscriber.cut()
                self._position = self._reads.views.folded
                await asyncio.sleep(AFTER_FAILURE_S)
            took_s = loop.time() - began_s
            await asyncio.sleep(min(max(took_s, _PAUSE_SECONDS_MIN), _PAUSE_SECONDS_MAX))

    async def _turn(self) -> None:
        end = 0
        waiting = self._open()
        while waiting:
            # Serve all subscribers up to the same ``end``, where the next turn begins; otherwise those that
            # join meanwhile would miss changes. Read from each subscriber's own ``start``: a read
            # from an earlier number could merge a change with a creation that the watch has already reported,
            # and report the change as ADDED.
            start = min(subscriber.start for subscriber in waiting)
            served = {subscriber for subscriber in waiting if subscriber.start == start}
            resources = {_key(subscriber.resource): subscriber.resource for subscriber in served}
            end, batches = await self._plane.reads.peek(
                partial(_batch, plane=self._plane, after=start, end=end, resources=resources)
            )
            for subscriber in served & self._subscribers:
                # A subscriber that restarted meanwhile is served in the next round.
                if subscriber.start == start:
                    subscriber.enqueue(batches[_key(subscriber.resource)], end)
            waiting = {subscriber for subscriber in self._open() if subscriber.position < end}
        self._position = max(self._position, end or self._reads.views.folded)

    def _open(self) -> set[Subscriber]:
        """The subscribers whose watches have not ended.

        A watch that was cut stays subscribed until its client has read the end. Do not read from its old position: a
        change there that the server fails to render would end all other watches too.
        """
        return {subscriber for subscriber in self._subscribers if not subscriber.is_cut}


def _key(resource: Resource) -> Key:
    return resource.group, resource.version, resource.plural


def _batch(
    rows: Rows, plane: ControlPlane, after: int, end: int, resources: Mapping[Key, Resource]
) -> tuple[int, dict[Key, Batch]]:
    """Return the number up to which changes were read, and the changes after ``after``, by kind.

    Changes are read up to ``end``. If ``end`` is 0, they are read up to the last number that the views have folded.
    """
    end = end or changes.checkpoint(rows)
    by_kind: dict[str, list[Change]] = {}
    for change in changes.between(rows, after, end):
        by_kind.setdefault(change.kind, []).append(change)
    batches: dict[Key, Batch] = {}
    for key, resource in resources.items():
        followed = _followed(object_tables.Kind(resource.api_version, resource.kind))
        changes_of_kinds = {kind: by_kind[kind] for kind in followed if kind in by_kind}
        batches[key] = _changes_of(rows, resource, changes_of_kinds, plane, end)
    return end, batches


def _with_additions(
    updates: Iterable[ObjectChange], unreported: set[object_tables.ObjectKey]
) -> Iterator[ObjectChange]:
    """Report the first change of each object in ``unreported`` as ADDED, and remove the object from ``unreported``.

    If that change is a deletion, nothing is reported.
    """
    for update in updates:
        if update.key not in unreported:
            yield update
            continue
        unreported.discard(update.key)
        if update.change_type != _CHANGE_TYPES[changes.DELETED]:
            yield ObjectChange(update.number, _CHANGE_TYPES[changes.ADDED], update.key, update.value)


def _followed(kind: object_tables.Kind) -> tuple[str, ...]:
    """The names of a kind and of its source kinds (``SOURCES``), whose changes create or delete bootstrap objects."""
    return (kind.of_change, *(source.of_change for source in bootstrap_objects.SOURCES.get(kind, ())))


def _changes_of(
    rows: Rows, resource: Resource, by_kind: Mapping[str, list[Change]], plane: ControlPlane, end: int
) -> Batch:
    """Return the changes of a kind up to ``end``, in log order, including those of its bootstrap objects.

    Each object has one change, or several if it was deleted and created again.
    """
    kind = object_tables.Kind(resource.api_version, resource.kind)
    batch = _of_kind(rows, resource, by_kind.get(kind.of_change, []), plane, end)
    unreported = set(batch.unreported)
    if kind != bootstrap_objects.NAMESPACE and not plane.bootstrap.has(kind):
        return batch
    for source in bootstrap_objects.SOURCES.get(kind, ()):
        served = control_plane().of_kind(*source)
        # Skip modifications of the source: they do not change the objects that are created and deleted with it.
        changed = by_kind.get(source.of_change, ())
        merged = _merged(change for change in changed if change.verb != changes.MODIFIED)
        if served is None or not merged:
            continue
        current = object_tables.by_keys(rows, source, merged)
        for key, history in merged.items():
            for change, state in _states(rows, served, history, current.get(key)):
                if state is not None:
                    shown = plane.bootstrap.derived(kind, state)
                    shown = shown.with_metadata({"resourceVersion": str(change.number)})
                    batch.changes.append(ObjectChange(change.number, _CHANGE_TYPES[change.verb], key, shown))
                elif change.verb == changes.ADDED:
                    unreported.add(key)
    batch.changes.sort(key=lambda change: (change.number, change.key))
    return Batch(batch.changes, frozenset(unreported))


def _of_kind(
    rows: Rows, resource: Resource, changed: Iterable[Change], plane: ControlPlane, end: int
) -> Batch:
    kind = object_tables.Kind(resource.api_version, resource.kind)
    merged = _merged(changed)
    current = object_tables.by_keys(rows, kind, merged)
    reported: list[ObjectChange] = []
    unreported: set[object_tables.ObjectKey] = set()
    for key, history in merged.items():
        object_changes = list(_object_changes(rows, resource, key, history, current.get(key), plane))
        # An object that changed again after ``end`` is reported later with that change: its current state
        # must not appear under an older number.
        up_to = [change for change in object_changes if change.number <= end]
        reported += up_to
        last_type = up_to[-1].change_type if up_to else ""
        if history[-1].verb == changes.ADDED and last_type != _CHANGE_TYPES[changes.ADDED]:
            unreported.add(key)
    reported.sort(key=lambda change: (change.number, change.key))
    return Batch(reported, frozenset(unreported))


def _merged(changed: Iterable[Change]) -> dict[object_tables.ObjectKey, list[Change]]:
    """Merge the changes of each object to one, or to several if it was deleted and created again."""
    merged: dict[object_tables.ObjectKey, list[Change]] = {}
    for change in changed:
        before = merged.setdefault((change.key_id, change.member), [])
        if before and before[-1].verb != changes.DELETED and change.verb == changes.MODIFIED:
            before[-1] = change._replace(verb=before[-1].verb)
        else:
            before.append(change)
    return merged


def _object_changes(
    rows: Rows,
    resource: Resource,
    key: object_tables.ObjectKey,
    history: list[Change],
    current: KubeObject | None,
    plane: ControlPlane,
) -> Iterable[ObjectChange]:
    for change, value in _states(rows, resource, history, current):
        if value is None:
            continue
        number, state = change.number, value
        if change.verb != changes.DELETED and value is not current:
            # ``value`` has the resourceVersion of the later deletion; a watch resumed from it would miss the deletion.
            state = value.with_metadata({"resourceVersion": str(number)})
        elif change.verb != changes.DELETED:
            number = max(number, int(value.resource_version))
        yield ObjectChange(number, _CHANGE_TYPES[change.verb], key, plane.rendered(resource, state))


def _states(
    rows: Rows, resource: Resource, history: list[Change], current: KubeObject | None
) -> Iterator[tuple[Change, KubeObject | None]]:
    """Yield each change with the object after it (for a deletion, its last state); None if that is unknown."""
    for index, change in enumerate(history):
        if change.verb == changes.DELETED:
            yield change, _last(rows, resource, change)
        elif index + 1 < len(history):
            # The object was deleted after this change; the deletion record has its last state.
            yield change, _last(rows, resource, history[index + 1])
        else:
            yield change, current


def _last(rows: Rows, resource: Resource, change: Change) -> KubeObject | None:
    if change.body is None:
        return None
    value = object_tables.last(rows, object_tables.Kind(resource.api_version, resource.kind), change.body)
    return versions.to_served(resource, value.with_fields({"apiVersion": resource.api_version}))
