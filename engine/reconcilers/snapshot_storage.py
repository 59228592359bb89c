"""Storage of snapshots, as opaque bytes by number."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from engine import private_files


class SnapshotStore(Protocol):
    """Storage of snapshots; a newer snapshot has a higher number.

    Methods block, so call them in a thread. They raise OSError if the storage cannot be read or written.
    """

    def numbers(self) -> list[int]:
        """Return the numbers of all stored snapshots, newest first."""
        ...

    def read(self, number: int) -> bytes:
        """Return the content of one snapshot."""
        ...

    def write(self, number: int, parts: Sequence[bytes]) -> None:
        """Store a snapshot atomically: readers see all of it or nothing."""
        ...

    def drop(self, number: int) -> None:
        """Delete a snapshot; do nothing if it does not exist."""
        ...


class SnapshotStorage(Protocol):
    """Provides the snapshot storage of each shard; ``is_shared`` if one snapshot has all shards of a process."""

    is_shared: bool

    def of(self, shards: Sequence[int]) -> Sequence[tuple[SnapshotStore, list[int]]]:
        """Return the storages of these shards, each paired with the shards that it stores."""
        ...


class SingleSnapshotStorage:
    """``SnapshotStorage`` for a process that stores all its shards in one snapshot."""

    def __init__(self, store: SnapshotStore) -> None:
        self._store = store
        self.is_shared = True

    def of(self, shards: Sequence[int]) -> Sequence[tuple[SnapshotStore, list[int]]]:
        return [(self._store, list(shards))]


class SnapshotFiles:
    """Snapshots as files of a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def numbers(self) -> list[int]:
        names = (path.stem.removeprefix("snapshot-") for path in self._directory.glob("snapshot-*.bin"))
        return sorted((int(name) for name in names if name.isdecimal()), reverse=True)

    def read(self, number: int) -> bytes:
        return self._path(number).read_bytes()

    def write(self, number: int, parts: Sequence[bytes]) -> None:
        """Write without syncing; a power failure may damage the file, which ``snapshots`` detects by the digest."""
        # A fixed name, so a crash leaves at most one such file behind.
        path = self._directory / "snapshot.bin.tmp"
        with private_files.open_empty(path) as file:
            file.writelines(parts)
        path.rename(self._path(number))

    def drop(self, number: int) -> None:
        self._path(number).unlink(missing_ok=True)

    def _path(self, number: int) -> Path:
        return self._directory / f"snapshot-{number}.bin"
