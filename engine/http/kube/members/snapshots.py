"""Numbered snapshots of the objects of members, since members have no log.

A watch reports the differences between two snapshots.
"""

import abc
import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

import msgspec

from engine import loop_share
from engine.http.kube.control_plane import Listed
from engine.kubeapi.schema.resources import Resource
from events.kube_objects import KubeObject

_STATES_KEPT: Final = 128
"""Number of different states per kind from which a watch can be resumed."""

Name: TypeAlias = tuple[str, ...]
"""Namespace and name of an object, and its cluster if the snapshot has objects of several clusters."""


Entry: TypeAlias = tuple[int, KubeObject]
"""An object with the number of its last change, which is its resourceVersion."""


class Snapshot(msgspec.Struct, frozen=True):
    """A kind's objects by name."""

    items: dict[Name, Entry]


class SnapshotPlane(abc.ABC):
    """Reads of objects; each read takes a snapshot of all objects of the kind."""

    def __init__(self, began_ms: int) -> None:
        # Begin above all numbers of earlier processes, because their clients resume watches and write with these
        # numbers. The time in microseconds is above them, unless 1,000 objects changed per millisecond.
        self._last_number = began_ms * 1_000
        self._last: dict[str, Snapshot] = {}
        self._newest: dict[str, tuple[int, float]] = {}
        """By kind, the number of the newest snapshot and when it was begun, in seconds of the event loop's clock."""

        self._states: dict[str, deque[tuple[int, Snapshot]]] = {}
        """The last distinct states of each kind, each with the number of the first snapshot that had this state."""

        # Take one snapshot at a time, because each snapshot is compared with the previous one.
        self._turn = asyncio.Lock()

    @abc.abstractmethod
    async def _objects(self, resource: Resource) -> Iterable[KubeObject]:
        """Return all objects of a kind, without resourceVersion."""

    def _key(self, value: KubeObject) -> Name:
        return value.key

    async def newest(self) -> int:
        """The highest resourceVersion that this API has returned."""
        return self._last_number

    async def get(
        self, resource: Resource, namespace: str, name: str, *, is_fresh: bool = True
    ) -> KubeObject | None:
        """One object; None if there is none."""
        del is_fresh  # members run in this process, so every read is fresh
        _number, look = await self.snapshot(resource)
        entry = look.items.get((namespace, name))
        return None if entry is None else entry[1]

    async def listed(
        self,
        resource: Resource,
        namespace: str,
        fits: Callable[[KubeObject], bool],
        *,
        limit: int = 0,
        after: str = "",
        brief: bool = False,
        is_fresh: bool = True,
    ) -> Listed:
        """A page of the objects that fit; raises ValueError if ``after`` is not a continue token."""
        del brief, is_fresh  # all data are in memory
        number, look = await self.snapshot(resource)
        names = [name for name in sorted(look.items) if not namespace or name[0] == namespace]
        if after:
            behind = msgspec.json.decode(after, type=Name)
            names = [name for name in names if name > behind]
        items: list[KubeObject] = []
        mark: Name = ()
        share = loop_share.LoopShare()
        for position, name in enumerate(names):
            await share.pause()
            value = look.items[name][1]
            if not fits(value):
                continue
            if limit and len(items) == limit:
                left = 0 if after else len(names) - position
                return Listed(items, msgspec.json.encode(mark).decode(), number, left)
            items.append(value)
            mark = name
        return Listed(items, "", number)

    async def snapshot(self, resource: Resource) -> tuple[int, Snapshot]:
        """Take a snapshot of a kind; return its number, which is new, and the snapshot."""
        async with self._turn:
            return await self._taken(resource)

    async def shared(self, resource: Resource, seen: int, seconds: float) -> tuple[int, Snapshot]:
        """Return the newest snapshot if its number is above ``seen`` and its age below ``seconds``; else a new one.

        Watches of one kind share snapshots, because the cost of a snapshot grows with the number of objects.
        """
        async with self._turn:
            kind = _kind_of(resource)
            number, taken_s = self._newest.get(kind, (0, 0.0))
            if number > seen and asyncio.get_running_loop().time() < taken_s + seconds:
                return number, self._last[kind]
            return await self._taken(resource)

    async def _taken(self, resource: Resource) -> tuple[int, Snapshot]:
        began_s = asyncio.get_running_loop().time()
        values = await self._objects(resource)
        share = loop_share.LoopShare()
        number = self._last_number
        kind = _kind_of(resource)
        before = self._last.get(kind, Snapshot({}))
        items: dict[Name, Entry] = {}
        for value in values:
            await share.pause()
            name = self._key(value)
            old = before.items.get(name)
            if old is None or old[1].without_metadata("resourceVersion") != value:
                # Number each change: a watch that ended between two changes can then be resumed with the second change.
                number += 1
                items[name] = (number, value.with_metadata({"resourceVersion": str(number)}))
            else:
                # Keep the old object instead of the equal new one, so that snapshots share unchanged objects in memory.
                items[name] = old
        # All deletions share one number, above those of the changes. A snapshot without changes also gets a new number.
        if number == self._last_number or len(before.items.keys() - items.keys()) > 0:
            number += 1
        self._last_number = number
        self._newest[kind] = (number, began_s)
        states = self._states.setdefault(kind, deque(maxlen=_STATES_KEPT))
        # Store only states that differ: watches take a snapshot of each kind several times a second, and a client may
        # resume its watch of a kind that rarely changes after minutes.
        if not states or items != before.items:
            self._last[kind] = Snapshot(items)
            states.append((number, self._last[kind]))
        return number, self._last[kind]

    def snapshot_at(self, resource: Resource, number: int) -> Snapshot | None:
        """The objects of a kind as they were when ``number`` was the newest number; None if no longer stored."""
        if number > self._last_number:
            return None
        later = Snapshot({})
        for first, look in reversed(self._states.get(_kind_of(resource), ())):
            if first <= number:
                changed = {name: entry for name, entry in later.items.items() if first < entry[0] <= number}
                return Snapshot({**look.items, **changed}) if changed else look
            later = look
        return None

    def states_after(self, resource: Resource, number: int) -> list[tuple[int, Snapshot]]:
        """Return the stored states with higher numbers than ``number``, oldest first."""
        states = self._states.get(_kind_of(resource), ())
        return [state for state in states if state[0] > number]

    def last_number(self) -> int:
        """The highest resourceVersion that this API has returned."""
        return self._last_number


def _kind_of(resource: Resource) -> str:
    """Return the key under which the states of a kind are kept."""
    return f"{resource.qualified} {resource.version}"
