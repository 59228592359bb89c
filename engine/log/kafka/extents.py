"""Extents on disk: what a replica has taken in of the sequence, in a file of its own.

Memory holds the newest stretches, the file all of them; so a replica's memory does not grow with the log, and it starts
with what came since it was last there. The file is a cache: it says up to where in the topic it goes, and which record
stands there, and is thrown away where that is another one.
"""

import sqlite3
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine import private_files
from engine.log.kafka.clients import Slot

FILE: Final = "sequence.sqlite"
"""The name of the file in a replica's directory."""

_FORMAT: Final = 1
_CACHE_KIB: Final = 4_096
_BUSY_SECONDS: Final = 5.0
_TABLES: Final = """
CREATE TABLE slots (place INTEGER PRIMARY KEY, topic TEXT NOT NULL, partition INTEGER NOT NULL, end INTEGER NOT NULL);
CREATE TABLE extents (first INTEGER PRIMARY KEY, place INTEGER NOT NULL, start INTEGER NOT NULL);
CREATE UNIQUE INDEX starts ON extents (place, start);
CREATE TABLE state (
    next INTEGER NOT NULL, by TEXT NOT NULL, read INTEGER NOT NULL, record BLOB NOT NULL, count INTEGER NOT NULL
);
"""

Row = tuple[int, int, int]
"""An extent: the number of its first offset, the place of its partition among the slots, and that offset."""


class State(Struct, frozen=True):
    """What a file goes up to: the next number, the partitions' ends in order of their places, who wrote last.

    ``read`` is the next offset of the topic, ``record`` the value of the record before that, ``count`` how many extents
    there are.
    """

    next: int = 1
    by: str = ""
    read: int = 0
    record: bytes = b""
    count: int = 0
    slots: tuple[tuple[Slot, int], ...] = ()


class UnwritableError(Exception):
    """The file can't be made, or written; the message says why."""


class Shelf:
    """The file; without a path one that is gone when it is closed. Calls block, and may come from any thread.

    Making one raises UnwritableError where there can be none.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._lock = threading.Lock()
        try:
            self._connection, self.state = _loaded(path)
        except sqlite3.DatabaseError:
            self._connection, self.state = _begun(path)

    def clear(self) -> None:
        """Begins anew; raises UnwritableError."""
        with self._lock:
            self._connection.close()
            self._connection, self.state = _begun(self._path)

    def put(self, state: State, rows: Iterable[Row]) -> None:
        """Adds extents, and goes up to a state now; all or nothing. Raises UnwritableError."""
        slots = [(place, *slot, end) for place, (slot, end) in enumerate(state.slots)]
        now = (state.next, state.by, state.read, state.record, state.count)
        with self._lock:
            try:
                with self._connection:
                    self._connection.execute("BEGIN IMMEDIATE")
                    self._connection.executemany("INSERT INTO extents VALUES (?, ?, ?)", rows)
                    self._connection.executemany("INSERT OR REPLACE INTO slots VALUES (?, ?, ?, ?)", slots)
                    self._connection.execute("DELETE FROM state")
                    self._connection.execute("INSERT INTO state VALUES (?, ?, ?, ?, ?)", now)
            except sqlite3.Error as error:
                raise UnwritableError(f"{self._path} can't be written: {error}") from error
            self.state = state

    def around(self, place: int, offset: int) -> tuple[int, int]:
        """The number and the offset with which the stretch of a partition begins that has an offset."""
        with self._lock:
            first, start = self._connection.execute(
                "SELECT first, start FROM extents WHERE place = ? AND start <= ? ORDER BY start DESC LIMIT 1",
                (place, offset),
            ).fetchone()
        return int(first), int(start)

    def rows(self, number: int, limit: int) -> tuple[Sequence[Row], int]:
        """Extents in order, from the one on that has a number; and the number behind the last one on the shelf."""
        with self._lock:
            found = self._connection.execute(
                "SELECT first, place, start FROM extents"
                " WHERE first >= (SELECT max(first) FROM extents WHERE first <= ?) ORDER BY first LIMIT ?",
                (number, limit),
            ).fetchall()
            return found, self.state.next

    def close(self) -> None:
        """Closes the file."""
        with self._lock:
            self._connection.close()


def _begun(path: Path | None) -> tuple[sqlite3.Connection, State]:
    """A new file in place of whatever is there."""
    try:
        if path is not None:
            for suffix in ("", "-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
        return _loaded(path)
    except (sqlite3.Error, OSError) as error:
        raise UnwritableError(f"{path} can't be made: {error}") from error


def _loaded(path: Path | None) -> tuple[sqlite3.Connection, State]:
    if path is not None:
        private_files.database(path)
    # An empty name is a file that SQLite makes for itself and takes away.
    connection = sqlite3.connect(
        path or "", timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        _prepare(connection)
        return connection, _state(connection)
    except BaseException:
        connection.close()
        raise


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    if connection.execute("PRAGMA user_version").fetchone()[0] != _FORMAT:
        if connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
            raise sqlite3.DatabaseError("another format")
        connection.executescript(f"BEGIN; {_TABLES} PRAGMA user_version = {_FORMAT}; COMMIT;")


def _state(connection: sqlite3.Connection) -> State:
    found: tuple[int, str, int, bytes, int] | None = connection.execute(
        "SELECT next, by, read, record, count FROM state"
    ).fetchone()
    if found is None:
        return State()
    slots = connection.execute("SELECT topic, partition, end FROM slots ORDER BY place").fetchall()
    ends = tuple(((topic, partition), end) for topic, partition, end in slots)
    return State(*found, ends)
