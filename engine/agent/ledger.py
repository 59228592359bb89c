"""State of a cluster's bindings in memory, written to the checkpoint soon after each change.

Code that changes an entry calls ``put`` or ``touch``. Changed entries are written in one transaction with the
position of the feed.
"""

from collections.abc import Iterator

import anyio
import anyio.to_thread

from engine.agent import checkpoint, messages, reconciliation
from engine.agent.reconciliation import Entry

Identity = tuple[str, str, str, str]
"""Group, kind, namespace and name of an object."""


class Ledger:
    """The entries of one cluster, by binding key."""

    def __init__(self, kept: checkpoint.Checkpoint, cluster: str) -> None:
        self._kept = kept
        self._cluster = cluster
        self._entries: dict[str, Entry] = {}
        self._keys: dict[Identity, str] = {}
        self._dirty: dict[str, None] = {}
        self._more = anyio.Event()
        self._is_moved = False
        self._holds = 0
        """Number of tasks that called ``hold_position`` and run: unless it is 0, the checkpoint gets no position."""

        self.position: int | None = None

    async def load(self) -> None:
        """Read the checkpoint."""
        self.position, self._entries = await anyio.to_thread.run_sync(self._kept.load, self._cluster)
        for key, entry in self._entries.items():
            self._index(key, entry)

    def get(self, key: str) -> Entry | None:
        return self._entries.get(key)

    def at(self, identity: Identity) -> str | None:
        """Return the key of the binding that an object belongs to; None for other objects."""
        return self._keys.get(identity)

    def names(self) -> list[str]:
        """All keys."""
        return list(self._entries)

    def entries(self) -> Iterator[tuple[str, Entry]]:
        return iter(self._entries.items())

    def take(self, work: messages.Work, *, is_listed: bool = False) -> bool:
        """Merge a work into its binding's entry as ``reconciliation.take`` does; return False if nothing changes."""
        entry = reconciliation.take(self._entries.get(work.key), work, is_listed=is_listed)
        if entry is None:
            return False
        self.put(work.key, entry)
        return True

    def put(self, key: str, entry: Entry) -> None:
        """Store an entry, new or changed."""
        self._entries[key] = entry
        self._index(key, entry)
        self.touch(key)

    def touch(self, key: str) -> None:
        """Mark an entry as changed, so that it is written to the checkpoint."""
        self._dirty[key] = None
        self._more.set()

    def removed(self, key: str, entry: Entry) -> None:
        """Record that a binding's object no longer exists."""
        if entry.ref is not None:
            self._keys.pop(entry.ref.identity, None)
        # Drop the index entry first: ``reconciliation.removed`` clears ``entry.ref``, the key of the index.
        reconciliation.removed(entry)
        self.touch(key)

    def forget(self, key: str) -> None:
        """Drop a binding whose removal has been reported."""
        self._entries.pop(key, None)
        self.touch(key)

    def move(self, position: int) -> None:
        """Set the position up to which works have been read."""
        self.position = position
        self._is_moved = True
        self._more.set()

    def hold_position(self) -> None:
        """Store no position until ``release_position``, so that a restart before that lists all works again."""
        self._holds += 1
        self._is_moved = True
        self._more.set()

    def release_position(self) -> None:
        """Store the position again, unless another task has called ``hold_position`` too."""
        self._holds -= 1
        self._is_moved = True
        self._more.set()

    async def run(self) -> None:
        """Write changes to the checkpoint, forever."""
        while True:
            await self._more.wait()
            self._more = anyio.Event()
            await self.save()

    async def save(self) -> None:
        """Write changes to the checkpoint."""
        if not self._dirty and not self._is_moved:
            return
        # Swap before the await, so that changes made during the write are kept for the next one.
        changed, self._dirty = self._dirty, {}
        self._is_moved = False
        bodies = {
            key: checkpoint.encoded(entry) if (entry := self._entries.get(key)) else None for key in changed
        }
        position = None if self._holds else self.position
        try:
            await anyio.to_thread.run_sync(self._kept.save, self._cluster, position, bodies)
        except BaseException:
            # The next save may store a later position. Unless it has these entries too, a restart would lose them.
            self._dirty = changed | self._dirty
            self._is_moved = True
            raise

    async def end(self) -> None:
        """Delete the cluster's position and entries from the checkpoint."""
        await anyio.to_thread.run_sync(self._kept.forget, self._cluster)

    def _index(self, key: str, entry: Entry) -> None:
        if entry.ref is not None:
            self._keys[entry.ref.identity] = key
