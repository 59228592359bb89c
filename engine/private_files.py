"""Files and directories that only their owner may read, because they contain Secrets (logs, views) or tokens."""

import os
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from engine import diagnostics

_FILE_MODE: Final = 0o600
_DIRECTORY_MODE: Final = 0o700
_OTHERS: Final = 0o077
_FILE_PATTERNS: Final = (
    "log.*",
    "views.*",
    "sequence.sqlite*",
    "snapshot*.bin*",
    "endpoint.json*",
    "kubeconfig*",
    "kube-*.pem",
    "kube-*.key",
    "server.token*",
)
"""Name patterns of the engine's files in a data directory."""

_DATABASE_SUFFIXES: Final = ("", "-wal", "-shm", "-journal")
_log = diagnostics.logger(__name__)


def create_directory(path: Path) -> None:
    """Create a data directory and its missing parents, readable by the owner only.

    In an existing directory, make files private that former releases left readable by other users, and warn if
    other users may enter the directory.
    """
    for missing in reversed([parent for parent in (path, *path.parents) if not parent.exists()]):
        missing.mkdir(mode=_DIRECTORY_MODE, exist_ok=True)
    for name in _FILE_PATTERNS:
        for file in path.glob(name):
            _tighten(file)
    mode = path.stat().st_mode & 0o777
    if mode & _OTHERS:
        _log.warning(
            "data directory accessible by other users",
            path=str(path),
            mode=f"{mode:04o}",
            remedy=f"chmod 700 {path}",
        )


def create_database(path: Path) -> None:
    """Create an empty database file with a private mode; SQLite gives that mode to its files beside it.

    An existing file keeps its content. It is not opened, because closing it would release this process's locks on it.
    """
    # If the file cannot be created, SQLite reports why when it opens it.
    with suppress(OSError):
        path.touch(mode=_FILE_MODE)
    for suffix in _DATABASE_SUFFIXES:
        _tighten(path.with_name(path.name + suffix))


def remove_database(path: Path) -> None:
    """Delete a database file and the files that SQLite keeps beside it, if they exist."""
    for suffix in _DATABASE_SUFFIXES:
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def identity(path: Path) -> tuple[int, int] | None:
    """Return the device and inode numbers of the file at a path; None if there is no file."""
    with suppress(FileNotFoundError):
        status = path.stat()
        return status.st_dev, status.st_ino
    return None


def open_empty(path: Path) -> IO[bytes]:
    """Open a file for writing, readable by its owner only; empty it if it exists."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _FILE_MODE)
    with suppress(PermissionError):
        os.fchmod(descriptor, _FILE_MODE)
    return os.fdopen(descriptor, "wb")


def open_for_append(path: Path) -> IO[bytes]:
    """Open a file of lines for appending; remove an incomplete last line, which a crash may have left."""
    file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, _FILE_MODE), "r+b")
    file.truncate(file.read().rfind(b"\n") + 1)
    file.seek(0, os.SEEK_END)
    return file


def write(path: Path, content: bytes) -> None:
    """Write a file atomically; it is on disk on return, so that a power failure loses no key."""
    new = path.with_name(path.name + ".new")
    with open_empty(new) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.rename(path)


def _tighten(path: Path) -> None:
    # A file that another user owns stays as it is.
    with suppress(FileNotFoundError, PermissionError):
        if path.stat().st_mode & _OTHERS:
            path.chmod(_FILE_MODE)
