"""The embedded log: one SQLite file, held by one process.

One writer thread takes everything that waits and commits it at once, synced to disk (WAL, synchronous=FULL),
so a hundred events cost hardly more than one. Readers find what is new in memory; what is older is read from
the file by a thread of its own, and its checksum is proved.
"""

import asyncio
import fcntl
import queue
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import chain
from pathlib import Path
from typing import IO, Final, Self, TypeVar

import msgspec

from engine.log import following, port
from events import records, topics
from events.records import Record, StoredRecord

_FORMAT: Final = "reballast-log-1"
FILE: Final = "log.sqlite"
_LOCK_FILE: Final = "log.lock"
_TAIL_RECORDS_MAX: Final = 8_192
"""Newest records kept in memory; readers that are level never touch the file."""

_SLOT_TAIL_RECORDS_MAX: Final = 512
"""The same for each partition: there are many, so each keeps less."""

_GROUP_RECORDS_MAX: Final = 20_000
"""A group commit takes no more than this, so that no writer waits for ever."""

_SLOTS: Final = {name: index for index, name in enumerate(topics.TOPICS)}
_NAMES: Final = tuple(topics.TOPICS)
_PARTITIONS_MAX: Final = 256
_PAGE_BYTES: Final = 8_192
_CACHE_KIB: Final = 32_768
_CHECKPOINT_PAGES: Final = 4_096

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS records (
    number INTEGER PRIMARY KEY,
    slot INTEGER NOT NULL,
    offset INTEGER NOT NULL,
    key TEXT NOT NULL,
    headers BLOB NOT NULL,
    value BLOB NOT NULL,
    checksum BLOB NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS positions ON records (slot, offset);
"""
_AT_ONCE_MAX: Final = 128
"""Rows of one statement."""

_LAST_NUMBER: Final = "SELECT coalesce(max(number), 0) FROM records"
_ENDS: Final = "SELECT slot, max(offset) + 1 FROM records GROUP BY slot"
_BY_POSITION: Final = "SELECT * FROM records WHERE slot = ? AND offset >= ? ORDER BY offset LIMIT ?"
_BY_NUMBER: Final = "SELECT * FROM records WHERE number > ? ORDER BY number LIMIT ?"

_decode_headers = msgspec.json.Decoder(dict[str, str]).decode
_Row = tuple[int, int, int, str, bytes, bytes, bytes]
_Result = TypeVar("_Result")


class _Waiting(msgspec.Struct):
    batch: Sequence[Record]
    done: asyncio.Future[list[StoredRecord]]


class _Files(msgspec.Struct):
    """The open log: its lock, a connection for the writer and one for the reader, and where it ends."""

    lock: IO[bytes]
    writing: sqlite3.Connection
    reading: sqlite3.Connection
    ends: dict[tuple[str, int], int]
    number: int

    def close(self) -> None:
        self.reading.close()
        self.writing.close()
        self.lock.close()


class SqliteLog:
    """A ``port.Log`` in ``directory/log.sqlite``; ``open`` one."""

    def __init__(self, files: _Files) -> None:
        self._loop = asyncio.get_running_loop()
        self._files = files
        self._ends = files.ends
        self._number = files.number
        self._visible = dict(files.ends)
        self._end = following.EndSignal(files.number)
        self._tail: deque[StoredRecord] = deque(maxlen=_TAIL_RECORDS_MAX)
        self._tails: dict[tuple[str, int], deque[StoredRecord]] = {}
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._reader = ThreadPoolExecutor(1, "log-reader")
        self._thread = threading.Thread(target=self._write, name="log-writer", daemon=True)
        self._thread.start()

    @classmethod
    async def open(cls, directory: Path, *, synchronous: str = "FULL") -> Self:
        """Opens the log in a directory, making both where they are not there.

        Raises LogLockedError where another process holds it, LogError where it was made by another release.
        """
        return cls(await asyncio.to_thread(_open, directory, synchronous))

    async def append(self, batch: Sequence[Record]) -> list[StoredRecord]:
        """See ``port.Log``."""
        if not batch:
            return []
        waiting = _Waiting(batch, self._loop.create_future())
        self._queue.put(waiting)
        # Shielded: the commit goes on whoever gave up waiting for it.
        return await asyncio.shield(waiting.done)

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        """See ``port.Log``; raises LogCorruptedError where a record is not what was appended."""
        slot = (topic, partition)
        if start >= self._visible.get(slot, 0):
            return []
        tail = self._tails.get(slot)
        if tail and start >= tail[0].offset:
            first = start - tail[0].offset
            return [tail[index] for index in range(first, min(first + limit, len(tail)))]
        where = (_SLOTS[topic] * _PARTITIONS_MAX + partition, start, limit)
        return await self._in_reader(lambda: self._select(_BY_POSITION, where))

    async def read_all(self, after: int, limit: int) -> list[StoredRecord]:
        """See ``port.Log``; raises LogCorruptedError where a record is not what was appended."""
        if after >= self._end.number:
            return []
        if self._tail and after >= self._tail[0].number - 1:
            first = after - (self._tail[0].number - 1)
            return [self._tail[index] for index in range(first, min(first + limit, len(self._tail)))]
        return await self._in_reader(lambda: self._select(_BY_NUMBER, (after, limit)))

    def ends(self) -> port.Ends:
        """See ``port.Log``."""
        return self._visible

    def last_number(self) -> int:
        """See ``port.Log``."""
        return self._end.number

    async def level(self) -> None:
        """See ``port.Log``: there is nobody else who appends."""

    def moves(self) -> int:
        """See ``port.Log``."""
        return self.last_number()

    async def newest(self) -> int:
        """See ``port.NumberedLog``."""
        return self.last_number()

    async def wait(self, after: int) -> None:
        """See ``port.Log``."""
        await self._end.wait(after)

    async def aclose(self) -> None:
        """See ``port.Log``; what was handed over before is written first."""
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)
        await asyncio.to_thread(self._reader.shutdown)
        await asyncio.to_thread(self._files.close)

    async def _in_reader(self, work: Callable[[], _Result]) -> _Result:
        return await self._loop.run_in_executor(self._reader, work)

    def _select(self, statement: str, where: tuple[int, ...]) -> list[StoredRecord]:
        return _select(self._files.reading, statement, where)

    def _write(self) -> None:
        """The writer thread: takes what waits, commits it, tells those who wait."""
        while (waiting := self._queue.get()) is not None:
            group, closing = self._gather(waiting)
            try:
                stored = self._commit(group)
            except sqlite3.Error as error:
                self._loop.call_soon_threadsafe(_fail, group, error)
            else:
                self._loop.call_soon_threadsafe(self._show, group, stored)
            if closing:
                return

    def _gather(self, first: _Waiting) -> tuple[list[_Waiting], bool]:
        group = [first]
        size = len(first.batch)
        while size < _GROUP_RECORDS_MAX:
            try:
                waiting = self._queue.get_nowait()
            except queue.Empty:
                return group, False
            if waiting is None:
                return group, True
            group.append(waiting)
            size += len(waiting.batch)
        return group, False

    def _commit(self, group: list[_Waiting]) -> list[list[StoredRecord]]:
        number = self._number
        ends = dict(self._ends)
        rows: list[_Row] = []
        stored: list[list[StoredRecord]] = []
        for waiting in group:
            mine: list[StoredRecord] = []
            for record in waiting.batch:
                slot = (record.topic, record.partition)
                offset = ends.get(slot, 0)
                ends[slot] = offset + 1
                number += 1
                where = _SLOTS[record.topic] * _PARTITIONS_MAX + record.partition
                row = (number, where, offset, record.key, record.headers_json, record.value, record.checksum)
                rows.append(row)
                mine.append(records.stored(record, offset, number))
            stored.append(mine)
        _insert(self._files.writing, rows)
        self._number, self._ends = number, ends
        return stored

    def _show(self, group: list[_Waiting], stored: list[list[StoredRecord]]) -> None:
        """In the event loop: makes what was committed visible, in one go."""
        for mine in stored:
            for entry in mine:
                slot = (entry.topic, entry.partition)
                if slot not in self._tails:
                    self._tails[slot] = deque(maxlen=_SLOT_TAIL_RECORDS_MAX)
                self._tails[slot].append(entry)
                self._visible[slot] = entry.offset + 1
            self._tail.extend(mine)
        self._end.move(self._tail[-1].number)
        for waiting, mine in zip(group, stored, strict=True):
            if not waiting.done.done():
                waiting.done.set_result(mine)


class SqliteReader:
    """What stands in a log, up to its present end, for long work in a thread of its own.

    It reads the file beside the process that holds it, blocks while it does, and appends nothing.
    """

    def __init__(self, directory: Path) -> None:
        try:
            self._connection = connect(directory / FILE, "FULL")
            self._ends = _read_ends(self._connection)
            (number,) = self._connection.execute(_LAST_NUMBER).fetchone()
        except sqlite3.DatabaseError as error:
            raise _damaged(error) from error
        self._number = int(number)

    async def append(self, batch: Sequence[Record]) -> list[StoredRecord]:
        """Raises LogError: readers don't write."""
        raise port.LogError(f"{len(batch)} records were to be appended through a reader")

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        """See ``port.Log``; raises LogCorruptedError where a record is not what was appended."""
        limit = min(limit, self._ends.get((topic, partition), 0) - start)
        if limit <= 0:
            return []
        where = (_SLOTS[topic] * _PARTITIONS_MAX + partition, start, limit)
        return _select(self._connection, _BY_POSITION, where)

    async def read_all(self, after: int, limit: int) -> list[StoredRecord]:
        """See ``port.Log``; raises LogCorruptedError where a record is not what was appended."""
        limit = min(limit, self._number - after)
        if limit <= 0:
            return []
        return _select(self._connection, _BY_NUMBER, (after, limit))

    def ends(self) -> port.Ends:
        """See ``port.Log``: as they were when the reader was made."""
        return self._ends

    def last_number(self) -> int:
        """See ``port.Log``: as it was when the reader was made."""
        return self._number

    async def level(self) -> None:
        """See ``port.Log``: there is nobody else who appends."""

    def moves(self) -> int:
        """See ``port.Log``."""
        return self.last_number()

    async def newest(self) -> int:
        """See ``port.NumberedLog``."""
        return self.last_number()

    async def wait(self, after: int) -> None:
        """Raises LogError where the number is not there: a reader's end stands still."""
        if after >= self._number:
            raise port.LogError("a reader's log has an end")

    async def aclose(self) -> None:
        """See ``port.Log``."""
        self._connection.close()


class SqliteTail(SqliteReader):
    """The same for one who follows: the log ends where ``move`` says that it does."""

    def __init__(self, directory: Path, number: int) -> None:
        super().__init__(directory)
        self._end = following.EndSignal(number)

    def move(self, number: int) -> None:
        """Says that everything up to a number is in the file."""
        self._end.move(number)

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        """See ``port.Log``; what was appended since the last ``move`` may be among it."""
        where = (_SLOTS[topic] * _PARTITIONS_MAX + partition, start, limit)
        return _select(self._connection, _BY_POSITION, where)

    async def read_all(self, after: int, limit: int) -> list[StoredRecord]:
        """See ``port.Log``; raises LogCorruptedError where a record is not what was appended."""
        limit = min(limit, self._end.number - after)
        return _select(self._connection, _BY_NUMBER, (after, limit)) if limit > 0 else []

    def last_number(self) -> int:
        """See ``port.Log``."""
        return self._end.number

    async def wait(self, after: int) -> None:
        """See ``port.Log``."""
        await self._end.wait(after)


def _fail(group: list[_Waiting], error: sqlite3.Error) -> None:
    for waiting in group:
        if not waiting.done.done():
            waiting.done.set_exception(port.LogError(f"the log was not written: {error}"))


def _open(directory: Path, synchronous: str) -> _Files:
    lock = _hold(directory)
    try:
        writing = connect(directory / FILE, synchronous)
        ends = _prepare(writing)
        (number,) = writing.execute(_LAST_NUMBER).fetchone()
        return _Files(lock, writing, connect(directory / FILE, synchronous), ends, int(number))
    except sqlite3.DatabaseError as error:
        lock.close()
        raise _damaged(error) from error
    except port.LogError:
        lock.close()
        raise


def _hold(directory: Path) -> IO[bytes]:
    """The lock on the directory, held until the file is closed or the process ends, however it ends."""
    directory.mkdir(parents=True, exist_ok=True)
    lock = (directory / _LOCK_FILE).open("wb")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        message = (
            f"another process holds the log in {directory}; stop it, or name another directory with --data"
        )
        raise port.LogLockedError(message) from None
    return lock


def _insert(connection: sqlite3.Connection, rows: Sequence[_Row]) -> None:
    """Inserts rows, all or none, in as few statements as there may be.

    With each statement the writer gives the interpreter's lock away, and gets it back when the event loop is tired of
    it: beside a busy loop, forty rows one by one take twenty times as long as together. What fits into one statement is
    a transaction by itself.
    """
    if len(rows) <= _AT_ONCE_MAX:
        connection.execute(_insertion(len(rows)), list(chain.from_iterable(rows)))
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for start in range(0, len(rows), _AT_ONCE_MAX):
            part = rows[start : start + _AT_ONCE_MAX]
            connection.execute(_insertion(len(part)), list(chain.from_iterable(part)))
        connection.execute("COMMIT")
    except sqlite3.Error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@cache
def _insertion(rows: int) -> str:
    return "INSERT INTO records VALUES " + ", ".join(["(?, ?, ?, ?, ?, ?, ?)"] * rows)  # noqa: S608  # no values in it


def connect(path: Path, synchronous: str = "FULL") -> sqlite3.Connection:
    """A connection in WAL mode that syncs as it is told, in no transaction."""
    connection = sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, cached_statements=2 * _AT_ONCE_MAX
    )
    # Larger pages, a cache that holds the index's inner pages, and rarer checkpoints: a tenth faster over millions.
    connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    return connection


def _prepare(connection: sqlite3.Connection) -> dict[tuple[str, int], int]:
    """Makes or checks the file; returns where each partition ends."""
    connection.executescript(_SCHEMA)
    wanted = {"format": _FORMAT, "shards": str(topics.SHARDS)}
    connection.executemany("INSERT OR IGNORE INTO meta VALUES (?, ?)", wanted.items())
    for name, value in connection.execute("SELECT name, value FROM meta"):
        if name in wanted and wanted[name] != value:
            message = (
                f"the log has {name} {value!r}, this release knows {wanted[name]!r}; copy it to a new log"
            )
            raise port.LogError(message)
    return _read_ends(connection)


def _read_ends(connection: sqlite3.Connection) -> dict[tuple[str, int], int]:
    rows: list[tuple[int, int]] = connection.execute(_ENDS).fetchall()
    return {(_NAMES[slot // _PARTITIONS_MAX], slot % _PARTITIONS_MAX): end for slot, end in rows}


def _select(connection: sqlite3.Connection, statement: str, where: tuple[int, ...]) -> list[StoredRecord]:
    try:
        return [_stored(row) for row in connection.execute(statement, where)]
    except sqlite3.DatabaseError as error:
        raise _damaged(error) from error


def _damaged(error: sqlite3.DatabaseError) -> port.LogCorruptedError:
    return port.LogCorruptedError(f"{FILE} can't be read: {error}")


def _stored(row: _Row) -> StoredRecord:
    number, slot, offset, key, headers, value, digest = row
    topic, partition = _NAMES[slot // _PARTITIONS_MAX], slot % _PARTITIONS_MAX
    if records.checksum(topic, partition, key, headers, value) != digest:
        message = (
            f"{topic}/{partition}/{offset} (number {number}) is not what was appended: its checksum differs"
        )
        raise port.LogCorruptedError(message)
    return StoredRecord(topic, partition, offset, number, key, _decode_headers(headers), value, digest)
