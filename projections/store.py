"""The tables of the projections in SQLite: a file, or memory for as-of views.

Tables and checkpoint are written in one transaction. A commit is not synced to disk, since records lost in a
power failure are folded again from the log; a file that is damaged or has another format is deleted and
rebuilt. Only this module depends on SQLite's API; the SQL statements are in the projections' modules.
"""

import os
import sqlite3
import threading
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from engine import private_files
from projections import schema
from projections.port import ProjectionError, ResultRow, Row, UnwritableError, Value

FILE: Final = "views.sqlite"
"""File name of the tables in a data directory."""

_CACHE_KIB: Final = 8_192
_READER_CACHE_KIB: Final = 2_048
"""Page cache of a reader's connection; small, because every commit of the writer invalidates it."""

_BUSY_SECONDS: Final = 5.0
_CHECKPOINT_PAGES: Final = 1_024
_WAL_BYTES_MAX: Final = 4 * 1024 * 1024
"""The write-ahead log is checkpointed at 4 MiB and truncated to that size."""


class Connection:
    """A connection that implements ``Rows``; used by one thread at a time."""

    def __init__(self, raw: sqlite3.Connection) -> None:
        self._raw = raw

    def select(self, statement: str, where: Sequence[Value] = ()) -> list[ResultRow]:
        return self._raw.execute(statement, where).fetchall()

    def scan(self, statement: str, where: Sequence[Value] = ()) -> Iterator[ResultRow]:
        return self._raw.execute(statement, where)

    def write(self, statement: str, rows: Iterable[Row]) -> None:
        self._raw.executemany(statement, rows)

    def prepare(self) -> bool:
        """Create the tables if the file is empty; return False if it has another format."""
        if self.select("SELECT 1 FROM sqlite_master LIMIT 1"):
            tables = self.select("SELECT 1 FROM sqlite_master WHERE name = 'format'")
            return bool(tables) and self.select("SELECT name FROM format") == [(schema.FORMAT,)]
        with self.transaction("IMMEDIATE"):
            for statement in schema.STATEMENTS.split(";"):
                self._raw.execute(statement)
            self.write("INSERT INTO format VALUES (?)", [(schema.FORMAT,)])
            self.write("INSERT INTO checkpoint VALUES (?, ?)", [(0, b"")])
        return True

    @contextmanager
    def transaction(self, kind: str = "DEFERRED") -> Generator[None]:
        """Run the block in a transaction: writes are atomic, reads consistent."""
        self._raw.execute(f"BEGIN {kind}")
        try:
            yield
        except BaseException:
            if self._raw.in_transaction:
                self._raw.execute("ROLLBACK")
            raise
        self._raw.execute("COMMIT")

    def close(self) -> None:
        self._raw.close()


class Checkpoint(NamedTuple):
    """The last folded record: its number (0 if none) and its checksum."""

    number: int
    checksum: bytes


class Reader:
    """Read access to the tables of a file that a ``Store`` writes, in this process or another.

    Several threads may read at the same time, each with its own connection. After the file is deleted and rebuilt, open
    connections still read the deleted file, which has more records than the new one at first. Reading raises
    ProjectionError if the file is damaged, or if a new connection is needed after the file was deleted.
    """

    def __init__(self, path: Path) -> None:
        """Open the file; raises ProjectionError if it is not a database, or cannot be opened."""
        self._path = path
        self._turn = threading.Condition()
        try:
            with _damage_reported(path):
                self._free = [_connect(path, _READER_CACHE_KIB)]
        except sqlite3.OperationalError as error:
            raise ProjectionError(f"{path} can't be opened: {error}; check the directory") from None
        self._file = private_files.identity(path)
        self._read_by = 0

    @contextmanager
    def reading(self) -> Generator[Connection]:
        """Hold one consistent read of all tables; never blocks other readers."""
        connection = self._taken()
        try:
            with _damage_reported(self._path), connection.transaction():
                yield connection
        finally:
            self._return_connection(connection)

    def select(self, statement: str, where: Sequence[Value] = ()) -> list[ResultRow]:
        """Return all rows of one query; never blocks other readers."""
        connection = self._taken()
        try:
            with _damage_reported(self._path):
                return connection.select(statement, where)
        finally:
            self._return_connection(connection)

    def close(self) -> None:
        """Close the file once all reads are finished."""
        with self._turn:
            self._turn.wait_for(lambda: not self._read_by)
            while self._free:
                self._free.pop().close()

    def _taken(self) -> Connection:
        with self._turn:
            connection = self._free.pop() if self._free else self._connected()
            self._read_by += 1
            return connection

    def _connected(self) -> Connection:
        # Compare before connecting, because to connect would create a missing file, and again afterwards,
        # because the file may be replaced in between.
        if private_files.identity(self._path) == self._file:
            connection = _connect(self._path, _READER_CACHE_KIB)
            if private_files.identity(self._path) == self._file:
                return connection
            connection.close()
        raise ProjectionError(f"{self._path} is being rebuilt; try again later")

    def _return_connection(self, connection: Connection) -> None:
        with self._turn:
            self._free.append(connection)
            self._read_by -= 1
            self._turn.notify_all()


class Store:
    """The tables in the file ``path``, or in memory without one.

    ``writer`` may be used only within ``writing``. Raises ``ProjectionError`` if the file cannot be opened.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        try:
            self.writer = self._open()
        except sqlite3.DatabaseError as error:
            if path is None or isinstance(error, sqlite3.OperationalError):
                raise ProjectionError(f"{path} can't be opened: {error}; check the directory") from None
            private_files.remove_database(path)
            self.writer = self._open()
        self._writing = threading.Lock()
        # An in-memory database has one connection, which reads and writes share.
        self._reader = self.writer if path is None else _connect(path)
        self._reading = self._writing if path is None else threading.Lock()

    @contextmanager
    def reading(self) -> Generator[Connection]:
        """Run the block in a read transaction over all tables; blocks while another thread reads."""
        with self._reading, self._reader.transaction():
            yield self._reader

    def select(self, statement: str, where: Sequence[Value] = ()) -> list[ResultRow]:
        """Return all rows of one query; blocks while another thread reads."""
        with self._reading:
            return self._reader.select(statement, where)

    @contextmanager
    def writing(self) -> Generator[Connection]:
        """Run the block in a write transaction; blocks while another thread writes.

        Raises UnwritableError if SQLite cannot write, for example because the disk is full, ProjectionError if
        the file is damaged.
        """
        try:
            with _damage_reported(self.path), self._writing, self.writer.transaction("IMMEDIATE"):
                yield self.writer
        except sqlite3.OperationalError as error:
            raise UnwritableError(f"{self.path} can't be written: {error}") from error

    def checkpoint(self) -> Checkpoint:
        """Return the last folded record. Raises ProjectionError if the file is damaged."""
        with _damage_reported(self.path), self.reading() as rows:
            (row,) = rows.select("SELECT number, checksum FROM checkpoint")
        return Checkpoint(*row)

    def dump(self) -> dict[str, list[ResultRow]]:
        """Return all tables, row by row; equal logs give equal dumps."""
        with self.reading() as rows:
            names: list[tuple[str]] = rows.select(
                "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
            )
            # The names come from this package's own schema.
            return {name: sorted(rows.select(f"SELECT * FROM {name}")) for (name,) in names}  # noqa: S608

    def close(self) -> None:
        """Close the file once all reads and writes are finished."""
        with self._writing:
            self.writer.close()
        if self._reader is not self.writer:
            with self._reading:
                self._reader.close()

    def _open(self) -> Connection:
        connection = _connect(self.path)
        try:
            fits = connection.prepare()
        except sqlite3.DatabaseError:
            connection.close()
            raise
        if fits or self.path is None:
            return connection
        # The tables have another format: delete them, so that the log is folded again.
        connection.close()
        private_files.remove_database(self.path)
        connection = _connect(self.path)
        connection.prepare()
        return connection


@contextmanager
def _damage_reported(path: Path | None) -> Generator[None]:
    """Raise ProjectionError if SQLite finds the file damaged, which shows only when a page is read."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        # Subclasses of DatabaseError are other errors: of the disk, or of the caller.
        if type(error) is not sqlite3.DatabaseError:
            raise
        raise ProjectionError(f"{path} is damaged: {error}; rebuild it") from error


def _make_private(path: Path) -> None:
    """Create the file with mode 0600, since manifests contain Secrets; SQLite's -wal and -shm files inherit it."""
    # A missing or read-only directory is reported when the file is opened.
    with suppress(OSError):
        path.touch(mode=0o600)


def _connect(path: Path | None, cache_kib: int = _CACHE_KIB) -> Connection:
    address = ":memory:"
    if path is not None:
        _make_private(path)
        address = path.absolute().as_uri()
        if not os.access(path.parent, os.W_OK) and not path.with_name(f"{path.name}-wal").exists():
            # SQLite cannot create its index of the write-ahead log in a read-only directory. Here no write-ahead log
            # exists, so the file is complete without an index.
            address += "?immutable=1"
    raw = sqlite3.connect(
        address,
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        timeout=_BUSY_SECONDS,
    )
    raw.execute("PRAGMA journal_mode = WAL")
    # NORMAL syncs only at checkpoints of the write-ahead log: a power failure loses commits but does not
    # corrupt the file.
    raw.execute("PRAGMA synchronous = NORMAL")
    raw.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
    raw.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES_MAX}")
    raw.execute(f"PRAGMA cache_size = -{cache_kib}")
    return Connection(raw)
