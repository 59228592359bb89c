"""Changes on their way to those who watch: read once for all, in the order of the log, and handed to each in turn.

Objects are shown as they stand when a batch is read, so one that changed several times meanwhile is told once. Nobody
waits for a slow watcher: whose queue is full is cut off, and goes on from its last bookmark.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

import msgspec
import structlog

from engine.gateway.kube import given
from engine.gateway.kube.control import ControlPlane
from engine.gateway.kube.limits import Limits
from engine.gateway.services import Services
from engine.kube import versions
from engine.kube.resources import Resource, control_plane
from engine.kube.schemas import Json
from engine.log.port import LogError
from projections import changes, query, shelves
from projections.changes import Change
from projections.port import ProjectionError, Rows

_PAUSE_SECONDS_MIN: Final = 0.0005
_PAUSE_SECONDS_MAX: Final = 0.005
"""Between two looks, so that many small batches of a busy log are told as a few large ones: as long as the look took,
so that looks never take more than half of the time, and who watches a calm log hardly waits."""

_AFTER_FAILURE_S: Final = 1.0
_WORDS: Final = {changes.ADDED: "ADDED", changes.MODIFIED: "MODIFIED", changes.DELETED: "DELETED"}
_log = structlog.get_logger("gateway.kube")


Key = tuple[str, str, str]
"""Group, version and plural of a kind."""


class Happening:
    """A change of one object, with what is shown of it; ``lines`` keeps it as it was written for others."""

    __slots__ = ("lines", "number", "place", "value", "word")

    def __init__(self, number: int, word: str, place: shelves.Place, value: Json) -> None:
        self.number = number
        self.word = word
        self.place = place
        self.value = value
        self.lines: dict[object, bytes] = {}


class Subscriber:
    """One who follows a kind; ``position`` is the number up to which everything was told before."""

    def __init__(self, resource: Resource, position: int, limits: Limits) -> None:
        self.resource = resource
        self._limits = limits
        self._waits_since = 0.0
        self.kind = shelves.Kind(resource.api_version, resource.kind)
        self.position = position
        self.is_cut = False
        self.more = asyncio.Event()
        self._queue: deque[Happening] = deque()

    def give(self, happenings: Iterable[Happening], position: int) -> None:
        """Puts what happened into the queue, or cuts off a subscriber that takes too little, or too late."""
        now = asyncio.get_running_loop().time()
        is_late = bool(self._queue) and now - self._waits_since > self._limits.queue_seconds
        if not self._queue:
            self._waits_since = now
        self._queue.extend(happenings)
        self.position = position
        if is_late or len(self._queue) > self._limits.queue:
            self._queue.clear()
            self.is_cut = True
        if self._queue or self.is_cut:
            self.more.set()

    def take(self) -> list[Happening]:
        """All that waits."""
        self.more.clear()
        found = list(self._queue)
        self._queue.clear()
        return found


class Feed:
    """Follows the views for all subscribers, as long as there are any."""

    def __init__(self, services: Services, plane: ControlPlane, limits: Limits) -> None:
        self._limits = limits
        self._services = services
        self._plane = plane
        self._subscribers: set[Subscriber] = set()
        self._position = 0
        self._task: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None

    @property
    def count(self) -> int:
        """How many follow."""
        return len(self._subscribers)

    def subscribe(self, resource: Resource) -> Subscriber:
        """Follows a kind from now on."""
        if not self._subscribers:
            self._position = self._services.views.folded
        subscriber = Subscriber(resource, self._position, self._limits)
        self._subscribers.add(subscriber)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        if self._ending is None:
            self._ending = asyncio.create_task(self._end())
        return subscriber

    def leave(self, subscriber: Subscriber) -> None:
        """Follows no more."""
        self._subscribers.discard(subscriber)
        if not self._subscribers and self._task is not None:
            self._task.cancel()
            self._task = None
        if not self._subscribers and self._ending is not None:
            self._ending.cancel()
            self._ending = None

    async def _end(self) -> None:
        """Wakes everybody when the process is to stop."""
        await self._services.stopping.wait()
        for each in self._subscribers:
            each.more.set()

    async def backlog(self, resource: Resource, after: int, end: int) -> list[Happening]:
        """What happened to a kind behind a number, up to and with another, as it stands now."""
        kind = shelves.Kind(resource.api_version, resource.kind)

        def ask(rows: Rows) -> list[Happening]:
            found = {name: changes.between(rows, after, end, name) for name in _followed(kind)}
            # What changed again later is told later.
            return [each for each in _happenings(rows, resource, found, self._plane) if each.number <= end]

        return await self._plane.peek(ask)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            began_s = loop.time()
            try:
                await self._services.views.wait_folded(self._position + 1)
                began_s = loop.time()
                await self._turn()
            except (LogError, ProjectionError) as error:
                _log.warning("the feed waits", error=str(error))
                await asyncio.sleep(_AFTER_FAILURE_S)
            took_s = loop.time() - began_s
            await asyncio.sleep(min(max(took_s, _PAUSE_SECONDS_MIN), _PAUSE_SECONDS_MAX))

    async def _turn(self) -> None:
        after, end = self._position, 0
        waiting = set(self._subscribers)
        while waiting:
            # Who came while others were told is told next, up to the same number.
            resources = {_key(each.resource): each.resource for each in waiting}
            end, found = await self._plane.peek(
                partial(_batch, plane=self._plane, after=after, end=end, resources=resources)
            )
            for subscriber in waiting & self._subscribers:
                subscriber.give(found[_key(subscriber.resource)], end)
            waiting = {each for each in self._subscribers if each.position < end}
        self._position = max(self._position, end)


def _key(resource: Resource) -> Key:
    return resource.group, resource.version, resource.plural


def _batch(
    rows: Rows, plane: ControlPlane, after: int, end: int, resources: Mapping[Key, Resource]
) -> tuple[int, dict[Key, list[Happening]]]:
    """What happened behind a number to each kind, and up to which number; ``end`` 0 is the newest."""
    end = end or query.checkpoint(rows)
    found: dict[str, list[Change]] = {}
    for change in changes.between(rows, after, end):
        found.setdefault(change.kind, []).append(change)
    told: dict[Key, list[Happening]] = {}
    for key, resource in resources.items():
        told[key] = _happenings(rows, resource, found, plane)
    return end, told


def _followed(kind: shelves.Kind) -> tuple[str, ...]:
    """Changes of which kinds are changes of this one: with a namespace come and go those that it holds."""
    if kind in given.OF_NAMESPACES:
        return (kind.of_change, given.NAMESPACE.of_change)
    return (kind.of_change,)


def _happenings(
    rows: Rows, resource: Resource, found: Mapping[str, list[Change]], plane: ControlPlane
) -> list[Happening]:
    """What changes amount to, one by object, and two where one went and another came; in the order of numbers."""
    kind = shelves.Kind(resource.api_version, resource.kind)
    happened = _of_kind(rows, resource, found.get(kind.of_change, []), plane)
    if not plane.given.has(kind):
        return happened
    namespaces = control_plane().of_kind(*given.NAMESPACE)
    if namespaces is None:
        return happened
    for each in _of_kind(rows, namespaces, found.get(given.NAMESPACE.of_change, []), plane):
        if each.word != _WORDS[changes.MODIFIED]:
            value = plane.given.of_namespace(kind, each.value)
            happened.append(Happening(each.number, each.word, each.place, value))
    return sorted(happened, key=lambda each: (each.number, each.place))


def _of_kind(rows: Rows, resource: Resource, found: Iterable[Change], plane: ControlPlane) -> list[Happening]:
    kind = shelves.Kind(resource.api_version, resource.kind)
    told: dict[shelves.Place, list[Change]] = {}
    for change in found:
        place = (change.key_id, change.member)
        before = told.setdefault(place, [])
        if before and before[-1].verb != changes.DELETED and change.verb == changes.MODIFIED:
            before[-1] = change._replace(verb=before[-1].verb)
        else:
            before.append(change)
    standing = shelves.by_places(rows, kind, told)
    happened: list[Happening] = []
    for place, each in told.items():
        happened.extend(_told(resource, place, each, standing.get(place), plane))
    happened.sort(key=lambda each: (each.number, each.place))
    return happened


def _told(
    resource: Resource, place: shelves.Place, found: list[Change], standing: Json | None, plane: ControlPlane
) -> Iterable[Happening]:
    for index, change in enumerate(found):
        if change.verb == changes.DELETED:
            value = _last(resource, change)
        elif index + 1 < len(found):
            # It is gone by now; what was last shown of it stands with its removal.
            value = _last(resource, found[index + 1])
        else:
            value = standing
        if value is not None:
            number = change.number
            if change.verb != changes.DELETED and value is standing:
                metadata = msgspec.convert(value["metadata"], dict[str, object])
                number = max(number, int(str(metadata["resourceVersion"])))
                value = plane.shown(resource, value)
            yield Happening(number, _WORDS[change.verb], place, value)


def _last(resource: Resource, change: Change) -> Json | None:
    if change.body is None:
        return None
    found = msgspec.json.decode(change.body, type=dict[str, object])
    return versions.shown(resource, {**found, "apiVersion": resource.api_version})
