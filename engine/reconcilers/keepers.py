"""Where snapshots are kept: by number, as bytes of which nothing is known here."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from engine import private_files


class Keeper(Protocol):
    """Where snapshots are kept. Numbers grow.

    Its methods block, so they are called in a thread. They raise OSError where the place can't be read or written.
    """

    def numbers(self) -> list[int]:
        """What is kept, the newest first."""
        ...

    def read(self, number: int) -> bytes:
        """The whole of one."""
        ...

    def write(self, number: int, parts: Sequence[bytes]) -> None:
        """Keeps one: it is there whole, or not at all."""
        ...

    def drop(self, number: int) -> None:
        """Forgets one; one that is not there is forgotten already."""
        ...


class Places(Protocol):
    """Which snapshots are kept where. ``is_shared`` where all shards of a process are kept together."""

    is_shared: bool

    def of(self, shards: Sequence[int]) -> Sequence[tuple[Keeper, list[int]]]:
        """The places for these shards, each with the shards that it is for."""
        ...


class OnePlace:
    """``Places`` of a process that keeps all its shards together."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self.is_shared = True

    def of(self, shards: Sequence[int]) -> Sequence[tuple[Keeper, list[int]]]:
        """See ``Places``."""
        return [(self._keeper, list(shards))]


class Files:
    """Snapshots as files of a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def numbers(self) -> list[int]:
        """See ``Keeper``."""
        names = (path.stem.removeprefix("snapshot-") for path in self._directory.glob("snapshot-*.bin"))
        return sorted((int(name) for name in names if name.isdecimal()), reverse=True)

    def read(self, number: int) -> bytes:
        """See ``Keeper``."""
        return self._path(number).read_bytes()

    def write(self, number: int, parts: Sequence[bytes]) -> None:
        """See ``Keeper``. Not synced: what a power cut leaves of it is found damaged."""
        # Always the same name, so that a crash leaves no more than one such file behind.
        path = self._directory / "snapshot.bin.tmp"
        with private_files.opened(path) as file:
            file.writelines(parts)
        path.rename(self._path(number))

    def drop(self, number: int) -> None:
        """See ``Keeper``."""
        self._path(number).unlink(missing_ok=True)

    def _path(self, number: int) -> Path:
        return self._directory / f"snapshot-{number}.bin"
