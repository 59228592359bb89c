"""Files and directories that only their owner may read: logs, views and snapshots hold Secrets, other files tokens."""

import os
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from engine import diagnostics

_FILE_MODE: Final = 0o600
_DIRECTORY_MODE: Final = 0o700
_OTHERS: Final = 0o077
_OURS: Final = (
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
"""The files of a data directory."""

_log = diagnostics.logger(__name__)


def directory(path: Path) -> None:
    """Makes a data directory, and those above it that are missing, where there is none.

    Takes the files of a former release in it from everybody else; warns of a directory that others may enter.
    """
    for missing in reversed([each for each in (path, *path.parents) if not each.exists()]):
        missing.mkdir(mode=_DIRECTORY_MODE, exist_ok=True)
    for name in _OURS:
        for file in path.glob(name):
            _tighten(file)
    mode = path.stat().st_mode & 0o777
    if mode & _OTHERS:
        _log.warning(
            "data directory open to others", path=str(path), mode=f"{mode:04o}", remedy=f"chmod 700 {path}"
        )


def database(path: Path) -> None:
    """Makes an empty file for SQLite, which gives its mode to the files that it puts beside it.

    One that is there keeps what it holds. It is not opened: closing it would end the locks of this process on it.
    """
    # Where it can't be made, SQLite says why.
    with suppress(OSError):
        path.touch(mode=_FILE_MODE)
    for suffix in ("", "-wal", "-shm", "-journal"):
        _tighten(path.with_name(path.name + suffix))


def opened(path: Path) -> IO[bytes]:
    """A file to write, emptied or new."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _FILE_MODE)
    with suppress(PermissionError):
        os.fchmod(descriptor, _FILE_MODE)
    return os.fdopen(descriptor, "wb")


def write(path: Path, content: bytes) -> None:
    """Writes a file, whole or not at all."""
    new = path.with_name(path.name + ".new")
    with opened(new) as file:
        file.write(content)
    new.rename(path)


def _tighten(path: Path) -> None:
    # A file that another user owns stays as it is.
    with suppress(FileNotFoundError, PermissionError):
        if path.stat().st_mode & _OTHERS:
            path.chmod(_FILE_MODE)
