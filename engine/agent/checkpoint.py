"""What an agent keeps on disk: how far it has read the works of each cluster, and what it did about each binding.

One SQLite file. It is a cache of what the gateway and the members know: without it, an agent lists both and finds the
same. The position is written together with the works that were read up to it, so that none is skipped.
"""

import sqlite3
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from engine import private_files
from engine.agent import wire
from engine.agent.core import Applied, Entry
from events.shapes import WorkloadRef

_FORMAT: Final = 1
_TABLES: Final = """
CREATE TABLE positions (cluster TEXT PRIMARY KEY, position INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE entries (cluster TEXT, key TEXT, body BLOB NOT NULL, PRIMARY KEY (cluster, key)) WITHOUT ROWID;
"""


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    """An entry without what is looked up anew."""

    work: wire.Work
    ref: WorkloadRef | None
    applied: Applied | None
    reported: wire.WorkloadReport | None


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Kept).decode


class Checkpoint:
    """The file; every call blocks, and may come from any thread."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        try:
            self._connection = _opened(path)
        except (sqlite3.DatabaseError, msgspec.MsgspecError):
            # A cache that can't be read is none.
            path.unlink(missing_ok=True)
            self._connection = _opened(path)

    def load(self, cluster: str) -> tuple[int | None, dict[str, Entry]]:
        """Where to go on, None for nowhere yet, and what is known of each binding."""
        with self._lock:
            found = self._connection.execute(
                "SELECT position FROM positions WHERE cluster = ?", (cluster,)
            ).fetchone()
            rows = self._connection.execute(
                "SELECT key, body FROM entries WHERE cluster = ?", (cluster,)
            ).fetchall()
        entries: dict[str, Entry] = {}
        for key, body in rows:
            kept = _decode(body)
            entries[str(key)] = Entry(
                work=kept.work, ref=kept.ref, applied=kept.applied, reported=kept.reported
            )
        return (int(found[0]) if found else None), entries

    def save(self, cluster: str, position: int | None, entries: Mapping[str, bytes | None]) -> None:
        """Writes what changed, None for what is forgotten, and the position that goes with it, at once."""
        gone = [(cluster, key) for key, body in entries.items() if body is None]
        kept = [(cluster, key, body) for key, body in entries.items() if body is not None]
        with self._lock, self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany("DELETE FROM entries WHERE cluster = ? AND key = ?", gone)
            self._connection.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?, ?)", kept)
            if position is not None:
                self._connection.execute(
                    "INSERT OR REPLACE INTO positions VALUES (?, ?)", (cluster, position)
                )

    def forget(self, cluster: str) -> None:
        """Forgets a cluster."""
        with self._lock, self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.execute("DELETE FROM entries WHERE cluster = ?", (cluster,))
            self._connection.execute("DELETE FROM positions WHERE cluster = ?", (cluster,))

    def close(self) -> None:
        """Closes the file."""
        with self._lock:
            self._connection.close()


def encoded(entry: Entry) -> bytes:
    """An entry as it is kept."""
    return _encode(_Kept(entry.work, entry.ref, entry.applied, entry.reported))


def _opened(path: Path) -> sqlite3.Connection:
    private_files.database(path)
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    (format_,) = connection.execute("PRAGMA user_version").fetchone()
    if format_ != _FORMAT:
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name IN ('positions', 'entries')"
        ).fetchall():
            connection.execute(f"DROP TABLE {name}")
        connection.executescript(_TABLES)
        connection.execute(f"PRAGMA user_version = {_FORMAT}")
    return connection
