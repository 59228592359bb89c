"""Checkpoint of agents on disk: the position in each cluster's works, and the state of each binding.

It is one SQLite file and only a cache: without it, an agent lists the works and its objects again. The
position is written in one transaction with the works read up to it, so that none is skipped.
"""

import sqlite3
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from engine import private_files
from engine.agent import messages
from engine.agent.reconciliation import Applied, Entry
from events.shapes import WorkloadRef

_FORMAT: Final = 1
_TABLES: Final = """
CREATE TABLE positions (cluster TEXT PRIMARY KEY, position INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE entries (cluster TEXT, key TEXT, body BLOB NOT NULL, PRIMARY KEY (cluster, key)) WITHOUT ROWID;
"""


class _StoredEntry(msgspec.Struct, frozen=True, array_like=True):
    """The stored part of an entry; observed state is read from the member again."""

    work: messages.Work
    ref: WorkloadRef | None
    applied: Applied | None
    reported: messages.WorkloadReport | None


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_StoredEntry).decode


class Checkpoint:
    """The file. Every call blocks; calls may come from any thread."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        try:
            self._connection = _opened(path)
        except (sqlite3.DatabaseError, msgspec.MsgspecError):
            # The file is only a cache: start with an empty one if it is damaged, or has another format.
            private_files.remove_database(path)
            self._connection = _opened(path)

    def load(self, cluster: str) -> tuple[int | None, dict[str, Entry]]:
        """Return the stored position in the feed of works (None: none yet), and the entries by key.

        A cluster with an unreadable entry is forgotten: its works and objects are listed again.
        """
        with self._lock:
            position_row = self._connection.execute(
                "SELECT position FROM positions WHERE cluster = ?", (cluster,)
            ).fetchone()
            rows = self._connection.execute(
                "SELECT key, body FROM entries WHERE cluster = ?", (cluster,)
            ).fetchall()
        entries: dict[str, Entry] = {}
        try:
            for key, body in rows:
                entries[str(key)] = Entry(**msgspec.structs.asdict(_decode(body)))
        except msgspec.MsgspecError:
            self.forget(cluster)
            return None, {}
        return (int(position_row[0]) if position_row else None), entries

    def save(self, cluster: str, position: int | None, entries: Mapping[str, bytes | None]) -> None:
        """Write changed entries (None deletes one) and the feed's position (None: there is none) in one transaction."""
        deleted = [(cluster, key) for key, body in entries.items() if body is None]
        kept = [(cluster, key, body) for key, body in entries.items() if body is not None]
        with self._lock, self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            # One transaction: if only the position were stored, a restart would skip the works before it.
            self._connection.executemany("DELETE FROM entries WHERE cluster = ? AND key = ?", deleted)
            self._connection.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?, ?)", kept)
            if position is None:
                self._connection.execute("DELETE FROM positions WHERE cluster = ?", (cluster,))
            else:
                self._connection.execute(
                    "INSERT OR REPLACE INTO positions VALUES (?, ?)", (cluster, position)
                )

    def forget(self, cluster: str) -> None:
        """Delete a cluster's position and entries."""
        with self._lock, self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.execute("DELETE FROM entries WHERE cluster = ?", (cluster,))
            self._connection.execute("DELETE FROM positions WHERE cluster = ?", (cluster,))

    def close(self) -> None:
        with self._lock:
            self._connection.close()


def encoded(entry: Entry) -> bytes:
    """Serialize an entry for ``save``."""
    return _encode(_StoredEntry(entry.work, entry.ref, entry.applied, entry.reported))


def _opened(path: Path) -> sqlite3.Connection:
    private_files.create_database(path)
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    if connection.execute("PRAGMA user_version").fetchone()[0] != _FORMAT:
        if connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
            raise sqlite3.DatabaseError("another format")
        connection.executescript(f"BEGIN; {_TABLES} PRAGMA user_version = {_FORMAT}; COMMIT;")
    return connection
