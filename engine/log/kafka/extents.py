"""A replica's local file with the extents of the sequence that it has applied.

An extent is a range of offsets of one partition, whose records have consecutive sequence numbers.
With the file, memory holds only the newest extents, and a restart reads only extents that the file does not have. The
file is a cache. It also stores the last record of the topic ``sequence`` whose extents it contains, and the offset of
that record; if the topic has another record at this offset, the file is deleted.
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
"""Name of the file in a replica's directory."""

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
"""An extent: its first number, the index of its partition among the slots, and its first offset."""


class State(Struct, frozen=True):
    """The position in the topic ``sequence`` up to which the file has the extents.

    ``next`` is the next number to assign, ``by`` the replica that wrote the last extents, ``count`` the number of
    extents. ``read`` is the next offset to read in the topic, ``record`` the value of the record before it.
    ``slots`` are the partitions in the order of their indexes, each with the first offset that has no number yet.
    """

    next: int = 1
    by: str = ""
    read: int = 0
    record: bytes = b""
    count: int = 0
    slots: tuple[tuple[Slot, int], ...] = ()


class UnwritableError(Exception):
    """The file cannot be created or written; the message says why."""


class ExtentFile:
    """The file with the extents; a temporary file if no path is given. Methods block; any thread may call them.

    The constructor raises UnwritableError if the file cannot be created.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._lock = threading.Lock()
        try:
            self._connection, self.state = _loaded(path)
        except sqlite3.DatabaseError:
            self._connection, self.state = _new_file(path)

    def clear(self) -> None:
        """Delete all content; raises UnwritableError."""
        with self._lock:
            self._connection.close()
            self._connection, self.state = _new_file(self._path)

    def put(self, state: State, rows: Iterable[Row]) -> None:
        """Add extents and set the state, atomically. Raises UnwritableError."""
        slots = [(index, *slot, end) for index, (slot, end) in enumerate(state.slots)]
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

    def extent_start(self, slot_index: int, offset: int) -> tuple[int, int]:
        """Return the first number and the first offset of the extent that contains ``offset`` of the partition."""
        with self._lock:
            first, start = self._connection.execute(
                "SELECT first, start FROM extents WHERE place = ? AND start <= ? ORDER BY start DESC LIMIT 1",
                (slot_index, offset),
            ).fetchone()
        return int(first), int(start)

    def rows(self, number: int, limit: int) -> tuple[Sequence[Row], int]:
        """Return extents in order, beginning with that of ``number``, and the first number after the last extent."""
        with self._lock:
            stored_rows = self._connection.execute(
                "SELECT first, place, start FROM extents"
                " WHERE first >= (SELECT max(first) FROM extents WHERE first <= ?) ORDER BY first LIMIT ?",
                (number, limit),
            ).fetchall()
            return stored_rows, self.state.next

    def close(self) -> None:
        with self._lock:
            self._connection.close()


def _new_file(path: Path | None) -> tuple[sqlite3.Connection, State]:
    """Replace the file, if it exists, by an empty one."""
    try:
        if path is not None:
            private_files.remove_database(path)
        return _loaded(path)
    except (sqlite3.Error, OSError) as error:
        raise UnwritableError(f"{path} can't be created: {error}") from error


def _loaded(path: Path | None) -> tuple[sqlite3.Connection, State]:
    if path is not None:
        private_files.create_database(path)
    # With an empty name SQLite creates a temporary file and deletes it on close.
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
    # Check all pages now, in 0.2 s per million extents. Otherwise a damaged page would cause an error only when an old
    # extent is read, after each restart again.
    if connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
        raise sqlite3.DatabaseError("damaged")


def _state(connection: sqlite3.Connection) -> State:
    row: tuple[int, str, int, bytes, int] | None = connection.execute(
        "SELECT next, by, read, record, count FROM state"
    ).fetchone()
    if row is None:
        return State()
    slots = connection.execute("SELECT topic, partition, end FROM slots ORDER BY place").fetchall()
    ends = tuple(((topic, partition), end) for topic, partition, end in slots)
    return State(*row, ends)
