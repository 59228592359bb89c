"""Read the embedded log while another process holds it, up to a fixed end or to one that the caller moves."""

import sqlite3
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from engine.log import local, port, sqlite_share, sqlite_table
from events.records import Record, StoredRecord


class SqliteReader(local.LocalLog):
    """A log that ends where the file ended at construction, for long work in a separate thread.

    Another process may hold and extend the file meanwhile. Reads block, and appends are refused.
    """

    def __init__(self, location: Path) -> None:
        """Open the log in a directory, or a log file."""
        try:
            path = location if location.is_file() else location / sqlite_table.FILE
            sqlite_table.check_owner(path)
            with ExitStack() as undo:
                self._connection = undo.enter_context(closing(sqlite_table.connect_to_read(path)))
                self._ends = sqlite_table.ends(self._connection)
                super().__init__(sqlite_table.last_number(self._connection))
                undo.pop_all()
        except sqlite3.DatabaseError as error:
            raise sqlite_table.damaged(error) from error

    async def append(self, batch: Sequence[Record]) -> list[StoredRecord]:
        """Raise LogError: readers cannot append."""
        raise port.LogError(f"{len(batch)} records not appended: this log is open for reading only")

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        """Read records; raises LogCorruptedError if a record's checksum differs."""
        limit = min(limit, self._ends.get((topic, partition), 0) - start)
        if limit <= 0:
            return []
        return sqlite_table.by_position(self._connection, topic, partition, start, limit)

    async def read_all(self, after: int, limit: int) -> list[StoredRecord]:
        """Read records; raises LogCorruptedError if a record's checksum differs."""
        limit = min(limit, self._end.number - after)
        if limit <= 0:
            return []
        return sqlite_table.by_number(self._connection, after, limit)

    def read_share(self, share: sqlite_share.Share, after: int, limit: int) -> sqlite_share.Portion:
        """Examine up to ``limit`` records after a sequence number; return those of a share. Raises LogError."""
        limit = max(0, min(limit, self._end.number - after))
        return share.of(sqlite_table.rows_by_number(self._connection, after, limit), after)

    def ends(self) -> port.Ends:
        """Return the end of each partition when this reader was created; later records do not change it."""
        return self._ends

    async def wait(self, after: int) -> None:
        """Return if ``after`` is before the fixed end, otherwise raise LogError: no record will ever follow."""
        if after >= self._end.number:
            raise port.LogError("the log was opened up to a fixed number, which has been reached")

    async def aclose(self) -> None:
        self._connection.close()


class SqliteTail(SqliteReader):
    """A reader whose end the caller moves, for processes that follow the log, such as the views process."""

    def __init__(self, directory: Path, number: int) -> None:
        super().__init__(directory)
        self._end.move(number)

    def move(self, number: int) -> None:
        """Set the end to a sequence number; all records up to it must be in the file."""
        self._end.move(number)

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        """Read records; the result may include records after the last ``move``."""
        return sqlite_table.by_position(self._connection, topic, partition, start, limit)

    async def wait(self, after: int) -> None:
        await self._end.wait(after)
