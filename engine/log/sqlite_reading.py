"""The embedded log beside the process that holds it: for long work, and for one who follows."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from engine.log import following, port, sqlite_table
from events.records import Record, StoredRecord


class SqliteReader:
    """What stands in a log, up to its present end, for long work in a thread of its own.

    It reads the file beside the process that holds it, blocks while it does, and appends nothing.
    """

    def __init__(self, directory: Path) -> None:
        try:
            path = directory / sqlite_table.FILE
            sqlite_table.check_owner(path)
            self._connection = sqlite_table.connect(path)
            self._ends = sqlite_table.ends(self._connection)
            self._number = sqlite_table.last_number(self._connection)
        except sqlite3.DatabaseError as error:
            raise sqlite_table.damaged(error) from error

    async def append(self, batch: Sequence[Record]) -> list[StoredRecord]:
        """Raises LogError: readers don't write."""
        raise port.LogError(f"{len(batch)} records were to be appended through a reader")

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        """See ``port.Log``; raises LogCorruptedError where a record is not what was appended."""
        limit = min(limit, self._ends.get((topic, partition), 0) - start)
        if limit <= 0:
            return []
        return sqlite_table.by_position(self._connection, topic, partition, start, limit)

    async def read_all(self, after: int, limit: int) -> list[StoredRecord]:
        """See ``port.Log``; raises LogCorruptedError where a record is not what was appended."""
        limit = min(limit, self._number - after)
        if limit <= 0:
            return []
        return sqlite_table.by_number(self._connection, after, limit)

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
        return sqlite_table.by_position(self._connection, topic, partition, start, limit)

    async def read_all(self, after: int, limit: int) -> list[StoredRecord]:
        """See ``port.Log``; raises LogCorruptedError where a record is not what was appended."""
        limit = min(limit, self._end.number - after)
        return sqlite_table.by_number(self._connection, after, limit) if limit > 0 else []

    def last_number(self) -> int:
        """See ``port.Log``."""
        return self._end.number

    async def wait(self, after: int) -> None:
        """See ``port.Log``."""
        await self._end.wait(after)
