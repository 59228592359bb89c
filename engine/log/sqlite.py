"""The embedded log: one SQLite file, held by one process.

One writer thread commits all waiting batches at once, synced to disk (WAL, synchronous=FULL), so a hundred
appends cost little more than one. Readers get the newest records from memory; a reader thread reads older
ones from the file and checks their checksums.
"""

import asyncio
import fcntl
import queue
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from itertools import chain
from pathlib import Path
from typing import IO, Final, Self, TypeVar

import msgspec

from engine import private_files
from engine.log import local, port, sqlite_table
from events import records
from events.records import Record, StoredRecord

BYTES_MAX: Final = 6 * 1024 * 1024
_RECORD_BYTES: Final = 1_200
"""Estimated memory per record in addition to its value, mostly for its headers."""


class Tail:
    """The newest records of all partitions within a memory limit, by number and by offset.

    At least the newest record is kept, whatever its size.
    """

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._all: deque[StoredRecord] = deque()
        self._slots: dict[tuple[str, int], deque[StoredRecord]] = {}

    def extend(self, records: Iterable[StoredRecord]) -> None:
        """Add records that follow the newest one, and drop the oldest ones beyond the limit."""
        for record in records:
            self._all.append(record)
            slot = (record.topic, record.partition)
            if slot not in self._slots:
                self._slots[slot] = deque()
            self._slots[slot].append(record)
            self._bytes += _size(record)
        while self._bytes > self._bytes_max and len(self._all) > 1:
            oldest = self._all.popleft()
            # The oldest record of all is also the first of its partition, as both are in number order.
            self._slots[oldest.topic, oldest.partition].popleft()
            self._bytes -= _size(oldest)

    def after(self, number: int, limit: int) -> list[StoredRecord] | None:
        """Return records after a sequence number; None if some of them have been dropped."""
        if not self._all or number < self._all[0].number - 1:
            return None
        # Compute the index: the embedded log has no gaps in numbers, nor in the offsets of a partition (``read``).
        return _part(self._all, number + 1 - self._all[0].number, limit)

    def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord] | None:
        """Return records of a partition from an offset on; None if some of them have been dropped."""
        slot = self._slots.get((topic, partition))
        if not slot or start < slot[0].offset:
            return None
        return _part(slot, start - slot[0].offset, limit)


def _part(records: deque[StoredRecord], first: int, limit: int) -> list[StoredRecord]:
    return [records[index] for index in range(first, min(first + limit, len(records)))]


def _size(record: StoredRecord) -> int:
    return _RECORD_BYTES + len(record.value)


_LOCK_FILE: Final = "log.lock"
_GROUP_RECORDS_MAX: Final = 20_000
"""Maximum number of records in a group commit, so that no append waits too long."""

_LOCK_S_MAX: Final = 1.0
"""Seconds to wait for the lock.

A process that was killed while it started a child leaves its lock with the child until the child executes
another program; a restart waits for that.
"""
_LOCK_PAUSE_S: Final = 0.02

_Result = TypeVar("_Result")


class _Waiting(msgspec.Struct):
    batch: Sequence[Record]
    done: asyncio.Future[list[StoredRecord]]


class _Files(msgspec.Struct):
    """The files of an open log: lock, connections for writer and reader, end of each partition, last number.

    ``identities``: device and inode of the database and of its write-ahead log.
    """

    path: Path
    identities: list[tuple[int, int] | None]
    lock: IO[bytes]
    writing: sqlite3.Connection
    reading: sqlite3.Connection
    ends: dict[tuple[str, int], int]
    number: int

    def check(self) -> None:
        """Raise OSError if a file was removed or replaced: SQLite would write to the old file, which may be lost."""
        if _identities(self.path) != self.identities:
            message = (
                f"{self.path.name} or its write-ahead log was removed or replaced; put the former files back"
            )
            raise FileNotFoundError(message)

    def close(self) -> None:
        self.reading.close()
        self.writing.close()
        self.lock.close()


class SqliteLog(local.LocalLog):
    """A ``port.Log`` in ``directory/log.sqlite``; use ``open``."""

    def __init__(self, files: _Files) -> None:
        super().__init__(files.number)
        self._loop = asyncio.get_running_loop()
        self._files = files
        # Only the writer thread uses ``_ends`` and ``_number``. They run ahead of ``_visible`` and ``_end``, which the
        # event loop reads.
        self._ends = files.ends
        self._number = files.number
        self._visible = dict(files.ends)
        self._tail = Tail()
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._is_closed = False
        self.fault = ""
        """Why the file could not be written by the newest attempt; empty if it could."""
        self._reader = ThreadPoolExecutor(1, "log-reader")
        self._thread = threading.Thread(target=self._write, name="log-writer", daemon=True)
        self._thread.start()

    @classmethod
    async def open(cls, directory: Path, *, synchronous: str = "FULL") -> Self:
        """Open the log in a directory; create the directory and the log if they are missing.

        Raises LogLockedError if another process holds it, LogError if the file is of a later release or
        another program.
        """
        return cls(await asyncio.to_thread(_open, directory, synchronous))

    async def append(self, batch: Sequence[Record]) -> list[StoredRecord]:
        """Append records, all or none; raises LogError if they were not appended or the log is closed."""
        # The writer thread may have ended already: a queued batch would never be answered.
        if self._is_closed:
            raise port.LogError("the log is closed; no record was appended")
        if not batch:
            return []
        # Check records before they are queued: in the writer thread, a wrong one would fail every append of
        # its group.
        for record in batch:
            sqlite_table.slot_of(record.topic, record.partition)
        waiting = _Waiting(batch, self._loop.create_future())
        self._queue.put(waiting)
        # Shielded: the writer thread commits the batch even if its caller is cancelled.
        return await asyncio.shield(waiting.done)

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        """Read records; raises LogCorruptedError if a record's checksum differs."""
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
        """Read records; raises LogCorruptedError if a record's checksum differs."""
        if after >= self._end.number:
            return []
        newest = self._tail.after(after, limit)
        if newest is not None:
            return newest
        return await self._in_reader(lambda: sqlite_table.by_number(self._files.reading, after, limit))

    def ends(self) -> port.Ends:
        return self._visible

    async def aclose(self) -> None:
        """Close the log after writing all appends that were submitted before."""
        self._is_closed = True
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)
        await asyncio.to_thread(self._reader.shutdown)
        await asyncio.to_thread(self._files.close)

    async def _in_reader(self, work: Callable[[], _Result]) -> _Result:
        return await self._loop.run_in_executor(self._reader, work)

    def _write(self) -> None:
        """Writer thread: collect waiting appends, commit them, resolve their futures."""
        while (waiting := self._next()) is not None:
            group, closing = self._gather(waiting)
            try:
                stored = self._commit(group)
            except Exception as error:  # noqa: BLE001  # if the thread ended, every later append would hang
                self.fault = _reason(error) if isinstance(error, OSError | sqlite3.Error) else ""
                self._loop.call_soon_threadsafe(_fail, group, error)
            else:
                self.fault = ""
                self._loop.call_soon_threadsafe(self._show, group, stored)
            if closing:
                return

    def _next(self) -> _Waiting | None:
        """Return the next append; None when the log is closed.

        After a failed write, test periodically whether the file can be written again, until an append arrives.
        """
        while self.fault:
            with suppress(queue.Empty):
                return self._queue.get(timeout=port.AFTER_FAILURE_S)
            with suppress(OSError, sqlite3.Error):
                self._files.check()
                sqlite_table.write_application_id(self._files.writing)
                self.fault = ""
        return self._queue.get()

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
        self._files.check()
        number = self._number
        ends = dict(self._ends)
        stored: list[list[StoredRecord]] = []
        for waiting in group:
            own: list[StoredRecord] = []
            for record in waiting.batch:
                slot = (record.topic, record.partition)
                offset = ends.get(slot, 0)
                ends[slot] = offset + 1
                number += 1
                own.append(records.stored(record, offset, number))
            stored.append(own)
        rows = sqlite_table.rows_of(
            list(chain.from_iterable(stored)),
            [item.headers_json for waiting in group for item in waiting.batch],
        )
        sqlite_table.insert(self._files.writing, rows)
        # Only after the insert: a failed commit must not use up offsets or numbers.
        self._number, self._ends = number, ends
        return stored

    def _show(self, group: list[_Waiting], stored: list[list[StoredRecord]]) -> None:
        """Make committed records visible.

        Runs in the event loop without interruption, so readers see all of them or none.
        """
        for own in stored:
            for entry in own:
                self._visible[entry.topic, entry.partition] = entry.offset + 1
            self._tail.extend(own)
        self._end.move(stored[-1][-1].number)
        for waiting, own in zip(group, stored, strict=True):
            if not waiting.done.done():
                waiting.done.set_result(own)


def _fail(group: list[_Waiting], error: Exception) -> None:
    for waiting in group:
        if not waiting.done.done():
            failure = port.LogError(_reason(error))
            failure.__cause__ = error
            waiting.done.set_exception(failure)


def _reason(error: Exception) -> str:
    return f"the log was not written: {type(error).__name__}: {error}"


def _open(directory: Path, synchronous: str) -> _Files:
    path = directory / sqlite_table.FILE
    # Check before creating anything: the directory may belong to another program.
    sqlite_table.check_owner(path)
    with ExitStack() as undo:
        lock = undo.enter_context(closing(_lock_directory(directory)))
        try:
            private_files.create_database(path)
            writing = undo.enter_context(closing(sqlite_table.connect(path, synchronous)))
            ends = sqlite_table.prepare(writing)
            reading = undo.enter_context(closing(sqlite_table.connect(path, synchronous)))
            number = sqlite_table.last_number(writing)
        except sqlite3.DatabaseError as error:
            raise sqlite_table.damaged(error) from error
        undo.pop_all()
    return _Files(path, _identities(path), lock, writing, reading, ends, number)


def _identities(path: Path) -> list[tuple[int, int] | None]:
    """Return device and inode of a database and of its write-ahead log; None for a missing file."""
    return [private_files.identity(path), private_files.identity(path.with_name(f"{path.name}-wal"))]


def _lock_directory(directory: Path) -> IO[bytes]:
    """Lock the directory until the file is closed or the process ends for any reason."""
    private_files.create_directory(directory)
    lock = private_files.open_empty(directory / _LOCK_FILE)
    until_s = time.monotonic() + _LOCK_S_MAX
    while not _is_locked(lock):
        if time.monotonic() > until_s:
            lock.close()
            message = f"another process holds the log in {directory}; stop it, or name another directory with --data"
            raise port.LogLockedError(message)
        time.sleep(_LOCK_PAUSE_S)
    return lock


def _is_locked(lock: IO[bytes]) -> bool:
    """Try to take the lock; return whether it is held now."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
