"""All that an agent knows of its cluster's bindings, in memory, and in the checkpoint soon after.

Whoever changes an entry says so; what changed is written together, with the position that was read up to then.
"""

from collections.abc import Iterator

import anyio
import anyio.to_thread

from engine.agent import checkpoint, core, wire
from engine.agent.core import Entry
from events.shapes import WorkloadRef

Place = tuple[str, str, str, str]
"""Group, kind, namespace and name of an object."""


class Ledger:
    """The entries of one cluster, by key."""

    def __init__(self, kept: checkpoint.Checkpoint, cluster: str) -> None:
        self._kept = kept
        self._cluster = cluster
        self._entries: dict[str, Entry] = {}
        self._keys: dict[Place, str] = {}
        self._dirty: dict[str, None] = {}
        self._more = anyio.Event()
        self._is_moved = False
        self.position: int | None = None

    async def load(self) -> None:
        """Reads what was kept."""
        self.position, self._entries = await anyio.to_thread.run_sync(self._kept.load, self._cluster)
        for key, entry in self._entries.items():
            self._index(key, entry)

    def get(self, key: str) -> Entry | None:
        """What is known of a binding."""
        return self._entries.get(key)

    def at(self, place: Place) -> str | None:
        """The key of the binding that an object belongs to."""
        return self._keys.get(place)

    def names(self) -> list[str]:
        """All keys."""
        return list(self._entries)

    def entries(self) -> Iterator[tuple[str, Entry]]:
        """All entries."""
        return iter(self._entries.items())

    def take(self, work: wire.Work) -> bool:
        """Takes a work in; False where it is no news."""
        entry = core.take(self._entries.get(work.key), work)
        if entry is None:
            return False
        self.put(work.key, entry)
        return True

    def put(self, key: str, entry: Entry) -> None:
        """Keeps an entry, new or changed."""
        self._entries[key] = entry
        self._index(key, entry)
        self.touch(key)

    def touch(self, key: str) -> None:
        """Says that an entry changed in what is kept of it."""
        self._dirty[key] = None
        self._more.set()

    def removed(self, key: str, entry: Entry) -> None:
        """Nothing of a binding is there any more."""
        if entry.ref is not None:
            self._keys.pop(place_of(entry.ref), None)
        core.removed(entry)
        self.touch(key)

    def forget(self, key: str) -> None:
        """Forgets a binding of which nothing is there any more."""
        self._entries.pop(key, None)
        self.touch(key)

    def move(self, position: int) -> None:
        """Says up to where the works were taken in."""
        self.position = position
        self._is_moved = True
        self._more.set()

    async def run(self) -> None:
        """Writes what changes, for ever."""
        while True:
            await self._more.wait()
            self._more = anyio.Event()
            await self.save()

    async def save(self) -> None:
        """Writes what changed."""
        if not self._dirty and not self._is_moved:
            return
        changed, self._dirty = self._dirty, {}
        self._is_moved = False
        bodies = {
            key: checkpoint.encoded(entry) if (entry := self._entries.get(key)) else None for key in changed
        }
        await anyio.to_thread.run_sync(self._kept.save, self._cluster, self.position, bodies)

    async def end(self) -> None:
        """Forgets the cluster."""
        await anyio.to_thread.run_sync(self._kept.forget, self._cluster)

    def _index(self, key: str, entry: Entry) -> None:
        if entry.ref is not None:
            self._keys[place_of(entry.ref)] = key


def place_of(ref: WorkloadRef) -> Place:
    """Where an object is, in whichever version of its group."""
    return ref.api_version.rpartition("/")[0], ref.kind, ref.namespace, ref.name
