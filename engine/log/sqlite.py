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
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import IO, Final, Self, TypeVar

import msgspec

from engine import private_files
from engine.log import following, port, sqlite_table, tail
from events import records
from events.records import Record, StoredRecord

_LOCK_FILE: Final = "log.lock"
_GROUP_RECORDS_MAX: Final = 20_000
"""A group commit takes no more than this, so that no writer waits for ever."""

_LOCK_S_MAX: Final = 1.0
"""A process that was killed while it started a child leaves the child with its files, until that has become another
program: so long whoever is started at once in its place waits for the lock."""
_LOCK_PAUSE_S: Final = 0.02

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
        self._tail = tail.Tail()
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._reader = ThreadPoolExecutor(1, "log-reader")
        self._thread = threading.Thread(target=self._write, name="log-writer", daemon=True)
        self._thread.start()

    @classmethod
    async def open(cls, directory: Path, *, synchronous: str = "FULL") -> Self:
        """Opens the log in a directory, making both where they are not there.

        Raises LogLockedError where another process holds it, LogError where the file was made by a later release, or by
        another program.
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
        newest = self._tail.read(topic, partition, start, limit)
        if newest is not None:
            return newest
        reading = self._files.reading
        return await self._in_reader(
            lambda: sqlite_table.by_position(reading, topic, partition, start, limit)
        )

    async def read_all(self, after: int, limit: int) -> list[StoredRecord]:
        """See ``port.Log``; raises LogCorruptedError where a record is not what was appended."""
        if after >= self._end.number:
            return []
        newest = self._tail.after(after, limit)
        if newest is not None:
            return newest
        return await self._in_reader(lambda: sqlite_table.by_number(self._files.reading, after, limit))

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
        stored: list[list[StoredRecord]] = []
        for waiting in group:
            mine: list[StoredRecord] = []
            for record in waiting.batch:
                slot = (record.topic, record.partition)
                offset = ends.get(slot, 0)
                ends[slot] = offset + 1
                number += 1
                mine.append(records.stored(record, offset, number))
            stored.append(mine)
        rows = sqlite_table.rows_of(
            list(chain.from_iterable(stored)),
            [each.headers_json for waiting in group for each in waiting.batch],
        )
        sqlite_table.insert(self._files.writing, rows)
        self._number, self._ends = number, ends
        return stored

    def _show(self, group: list[_Waiting], stored: list[list[StoredRecord]]) -> None:
        """In the event loop: makes what was committed visible, in one go."""
        for mine in stored:
            for entry in mine:
                self._visible[entry.topic, entry.partition] = entry.offset + 1
            self._tail.extend(mine)
        self._end.move(stored[-1][-1].number)
        for waiting, mine in zip(group, stored, strict=True):
            if not waiting.done.done():
                waiting.done.set_result(mine)


def _fail(group: list[_Waiting], error: sqlite3.Error) -> None:
    for waiting in group:
        if not waiting.done.done():
            waiting.done.set_exception(port.LogError(f"the log was not written: {error}"))


def _open(directory: Path, synchronous: str) -> _Files:
    path = directory / sqlite_table.FILE
    # Looked at before anything is made: the directory, too, may be another program's.
    sqlite_table.check_owner(path)
    lock = _hold(directory)
    try:
        private_files.database(path)
        writing = sqlite_table.connect(path, synchronous)
        ends = sqlite_table.prepare(writing)
        reading = sqlite_table.connect(path, synchronous)
        return _Files(lock, writing, reading, ends, sqlite_table.last_number(writing))
    except sqlite3.DatabaseError as error:
        lock.close()
        raise sqlite_table.damaged(error) from error
    except port.LogError:
        lock.close()
        raise


def _hold(directory: Path) -> IO[bytes]:
    """The lock on the directory, held until the file is closed or the process ends, however it ends."""
    private_files.directory(directory)
    lock = private_files.opened(directory / _LOCK_FILE)
    until_s = time.monotonic() + _LOCK_S_MAX
    while not _is_locked(lock):
        if time.monotonic() > until_s:
            lock.close()
            message = f"another process holds the log in {directory}; stop it, or name another directory with --data"
            raise port.LogLockedError(message)
        time.sleep(_LOCK_PAUSE_S)
    return lock


def _is_locked(lock: IO[bytes]) -> bool:
    """Whether the lock is ours now."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
