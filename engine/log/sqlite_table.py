"""The table of the embedded log: its SQL statements, and checks of the rows that are read."""

import sqlite3
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from contextlib import closing
from functools import cache
from itertools import chain, repeat
from pathlib import Path
from typing import Final

import msgspec

from engine.log import compact, port
from events import records, topics
from events.records import StoredRecord

FILE: Final = "log.sqlite"
_FORMATS: Final = "reballast-log-"
_FORMAT: Final = f"{_FORMATS}2"
_OLDER_FORMAT: Final = f"{_FORMATS}1"
"""Format of logs whose headers are plain JSON (see ``compact``)."""

_APPLICATION: Final = 0x52654C67
"""SQLite application id of log files, "ReLg"."""

_SHOWN_CHARS_MAX: Final = 200
_SLOTS: Final = {name: index for index, name in enumerate(topics.TOPICS)}
_NAMES: Final = tuple(topics.TOPICS)
_PARTITIONS_MAX: Final = 256
_PAGE_BYTES: Final = 8_192
_CACHE_KIB: Final = 2_048
_CHECKPOINT_PAGES: Final = 1_024
_WAL_BYTES_MAX: Final = 4 * 1024 * 1024
"""The write-ahead log is truncated to this size after a checkpoint; without a limit the file keeps its largest size."""


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
_SIZES: Final = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
"""Numbers of rows for which INSERT statements exist."""
_AT_ONCE_MAX: Final = _SIZES[-1]

_CUT_REMEDY: Final = "restore its records"
_LAST_NUMBER: Final = "SELECT coalesce(max(number), 0) FROM records"
_ENDS: Final = "SELECT slot, max(offset) + 1 FROM records GROUP BY slot"
_BY_POSITION: Final = "SELECT * FROM records WHERE slot = ? AND offset >= ? ORDER BY offset LIMIT ?"
_BY_NUMBER: Final = "SELECT * FROM records WHERE number > ? ORDER BY number LIMIT ?"

_decode_headers = msgspec.json.Decoder(dict[str, str]).decode
Row = tuple[int, int, int, str, bytes, bytes, bytes]
"""Columns of a record: sequence number, slot (its partition), offset, key, headers, value, checksum."""

_TYPES: Final = (int, int, int, str, bytes, bytes, bytes)
SLOT: Final = 1
OFFSET: Final = 2
HEADERS: Final = 4
_VALUE: Final = 5


def insert(connection: sqlite3.Connection, rows: Sequence[Row]) -> None:
    """Insert rows atomically in as few statements as possible.

    After each statement the writer thread must wait for the GIL: beside a busy event loop, forty single-row
    statements take twenty times as long as one. A single statement needs no transaction, since SQLite runs it in
    one.
    """
    if len(rows) <= _AT_ONCE_MAX:
        _insert(connection, rows)
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for start in range(0, len(rows), _AT_ONCE_MAX):
            _insert(connection, rows[start : start + _AT_ONCE_MAX])
        connection.execute("COMMIT")
    except Exception:
        # Roll back after any error, not only SQLite's: in a transaction left open, later rows would not be committed.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _insert(connection: sqlite3.Connection, rows: Sequence[Row]) -> None:
    """Insert rows with one statement, filled up to the next size in ``_SIZES`` by rows of NULL, which it skips.

    There are only a few sizes, because each statement keeps the values of its last execution in memory: a
    statement for every number of rows would take 10 MB.
    """
    size = _SIZES[bisect_left(_SIZES, len(rows))]
    padding = repeat(None, (size - len(rows)) * len(_TYPES))
    connection.execute(_insertion(size), [*chain.from_iterable(rows), *padding])


@cache
def _insertion(rows: int) -> str:
    values = ", ".join(["(?, ?, ?, ?, ?, ?, ?)"] * rows)
    return f"INSERT INTO records SELECT * FROM (VALUES {values}) WHERE column1 IS NOT NULL"  # noqa: S608  # no values in it


def connect(path: Path, synchronous: str = "FULL") -> sqlite3.Connection:
    """Open a connection in WAL mode with the given ``synchronous`` setting, in autocommit mode."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    # Larger pages and a cache that holds the inner pages of the index: inserts stay fast over millions of
    # rows.
    # The page size comes first: setting the journal mode creates the file, after which it cannot change.
    connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
    connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES_MAX}")
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    return connection


def connect_to_read(path: Path) -> sqlite3.Connection:
    """Open a read-only connection: to a file that another process may write, or that is on a read-only medium."""
    address = f"{path.absolute().as_uri()}?mode=ro"
    connection = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        # SQLite cannot create its index of the write-ahead log if nothing may be written beside the file. If there is
        # no such log, the file is complete and does not change: open it as immutable.
        connection.close()
        wal = path.with_name(f"{path.name}-wal")
        if not path.exists() or (wal.exists() and wal.stat().st_size):
            raise
        connection = sqlite3.connect(
            f"{address}&immutable=1", uri=True, isolation_level=None, check_same_thread=False
        )
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    return connection


def check_owner(path: Path) -> None:
    """Raise LogError if another program created the file; the file is not changed.

    Logs of former releases have no application id and are recognized by their tables.
    """
    if not path.exists() or not path.stat().st_size:
        return
    try:
        with closing(connect_to_read(path)) as connection:
            (application_id,) = connection.execute("PRAGMA application_id").fetchone()
            names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master ORDER BY name")]
            is_ours = application_id in (0, _APPLICATION) and (not names or _is_named(connection, names))
    except sqlite3.DatabaseError as error:
        raise damaged(error) from error
    if not is_ours:
        tables = ", ".join(names)[:_SHOWN_CHARS_MAX] or "nothing"
        raise port.LogError(
            f"{path.name} belongs to another program (application id {application_id}, tables: {tables}); not changed"
        )


def _is_named(connection: sqlite3.Connection, names: Sequence[str]) -> bool:
    """Whether a file with these tables declares the format of a Reballast log."""
    if not {"meta", "records"} <= set(names):
        return False
    try:
        format_row = connection.execute("SELECT value FROM meta WHERE name = 'format'").fetchone()
    except sqlite3.OperationalError:
        return False
    # The row is missing if the process was killed between creating the tables and inserting their first rows.
    return format_row is None or str(format_row[0]).startswith(_FORMATS)


def prepare(connection: sqlite3.Connection) -> dict[tuple[str, int], int]:
    """Create or check the tables; return the end of each partition."""
    connection.executescript(_SCHEMA)
    if connection.execute("PRAGMA application_id").fetchone() != (_APPLICATION,):
        write_application_id(connection)
    expected = {"format": _FORMAT, "shards": str(topics.SHARDS)}
    # Give an older log the current format: its records stay unchanged, but older releases cannot read new
    # ones.
    connection.execute(
        "UPDATE meta SET value = ? WHERE name = 'format' AND value = ?", (_FORMAT, _OLDER_FORMAT)
    )
    connection.executemany("INSERT OR IGNORE INTO meta VALUES (?, ?)", expected.items())
    for name, value in connection.execute("SELECT name, value FROM meta"):
        if name in expected and expected[name] != value:
            message = (
                f"the log has {name} {value!r}, this release knows {expected[name]!r}; copy it to a new log"
            )
            raise port.LogError(message)
    return ends(connection)


def write_application_id(connection: sqlite3.Connection) -> None:
    """Write the id that marks the file as a log; raises sqlite3.Error if the file cannot be written.

    Writing the id again changes nothing.
    """
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")


def slot_of(topic: str, partition: int) -> int:
    """Return the value of the column ``slot`` for a partition; raises LogError if the log has no such partition."""
    index = _SLOTS.get(topic)
    if index is None or not 0 <= partition < _PARTITIONS_MAX:
        raise port.LogError(f"the log has no partition {topic}/{partition}")
    return index * _PARTITIONS_MAX + partition


def partition_of_slot(slot: int) -> tuple[str, int]:
    """Return the topic and the partition for a value of the column ``slot``."""
    return _NAMES[slot // _PARTITIONS_MAX], slot % _PARTITIONS_MAX


def last_number(connection: sqlite3.Connection) -> int:
    """Return the sequence number of the last record; 0 if there is none."""
    (number,) = connection.execute(_LAST_NUMBER).fetchone()
    return int(number)


def rows_of(placed: Sequence[StoredRecord], headers: Iterable[bytes]) -> list[Row]:
    """Return table rows for records and their headers' JSON."""
    return [
        (
            record.number,
            slot_of(record.topic, record.partition),
            record.offset,
            record.key,
            *compact.pack_value(packed, record.value),
            record.checksum,
        )
        for record, packed in zip(placed, compact.pack(headers), strict=True)
    ]


def by_position(
    connection: sqlite3.Connection, topic: str, partition: int, start: int, limit: int
) -> list[StoredRecord]:
    """Return records of a partition from an offset on.

    Raises LogCorruptedError if a record's checksum differs, LogCutError if one is missing in the file.
    """
    batch = stored(_select(connection, _BY_POSITION, (slot_of(topic, partition), start, limit)))
    # The embedded log has no gaps in offsets or numbers, so a gap means deleted rows.
    if batch and batch[-1].offset != start + len(batch) - 1:
        offset = next(start + index for index, record in enumerate(batch) if record.offset != start + index)
        raise port.LogCutError(f"{topic}/{partition} no longer has offset {offset}; {_CUT_REMEDY}")
    return batch


def by_number(connection: sqlite3.Connection, after: int, limit: int) -> list[StoredRecord]:
    """Return records after a sequence number; raises LogCorruptedError and LogCutError as ``by_position`` does."""
    return stored(rows_by_number(connection, after, limit))


def rows_by_number(connection: sqlite3.Connection, after: int, limit: int) -> list[Row]:
    """Return the rows after a sequence number without checking checksums; raises LogCutError if a row is missing."""
    rows = _select(connection, _BY_NUMBER, (after, limit))
    if limit > 0 and (not rows or rows[-1][0] != after + len(rows)):
        number = next((after + index for index, row in enumerate(rows, 1) if row[0] != after + index), 0)
        raise port.LogCutError(f"the log no longer has number {number or after + 1}; {_CUT_REMEDY}")
    return rows


def ends(connection: sqlite3.Connection) -> dict[tuple[str, int], int]:
    """Return the end of each partition; ignores records of unknown partitions, which reads report."""
    rows: list[tuple[int, int]] = connection.execute(_ENDS).fetchall()
    return {partition_of_slot(slot): end for slot, end in rows if _is_slot(slot)}


def _select(connection: sqlite3.Connection, statement: str, where: tuple[int, ...]) -> list[Row]:
    """Return the rows of a statement, until their values have ``port.READ_BYTES_MAX`` bytes or more in total.

    Raises LogCorruptedError if a column has a wrong type: one damaged bit can turn a text into a blob.
    """
    rows: list[Row] = []
    size = 0
    try:
        # Closed in any case: an open statement would keep the write-ahead log from being truncated.
        with closing(connection.execute(statement, where)) as cursor:
            for row in cursor:
                if tuple(map(type, row)) != _TYPES or not _is_slot(row[SLOT]):
                    reason = "a column has another type, or its partition is unknown"
                    raise port.LogCorruptedError(f"number {row[0]} is not what was appended: {reason}")
                rows.append(row)
                size += len(row[_VALUE])
                if size >= port.READ_BYTES_MAX:
                    break
    except sqlite3.DatabaseError as error:
        raise damaged(error) from error
    return rows


def _is_slot(slot: object) -> bool:
    return isinstance(slot, int) and 0 <= slot < len(_NAMES) * _PARTITIONS_MAX


def damaged(error: sqlite3.DatabaseError) -> port.LogCorruptedError:
    """Return the error for a file that cannot be read."""
    return port.LogCorruptedError(f"the log can't be read: {error}")


def stored(rows: Sequence[Row]) -> list[StoredRecord]:
    """Return the records in rows; raises LogCorruptedError if a record's checksum differs."""
    headers = compact.unpack([row[HEADERS] for row in rows])
    return [_stored(row, as_json) for row, as_json in zip(rows, headers, strict=True)]


def check(rows: Sequence[Row]) -> None:
    """Raise LogCorruptedError if the checksum of a row differs."""
    for row, headers in zip(rows, compact.unpack([row[HEADERS] for row in rows]), strict=True):
        _check(row, *compact.unpack_value(headers, row[_VALUE]))


def _stored(row: Row, headers: bytes) -> StoredRecord:
    headers, value = compact.unpack_value(headers, row[_VALUE])
    topic, partition = _check(row, headers, value)
    return StoredRecord(topic, partition, row[2], row[0], row[3], _decode_headers(headers), value, row[6])


def _check(row: Row, headers: bytes, value: bytes) -> tuple[str, int]:
    """Compare the checksum of a record; return its topic and partition."""
    number, slot, offset, key, _, _, digest = row
    topic, partition = _NAMES[slot // _PARTITIONS_MAX], slot % _PARTITIONS_MAX
    if records.checksum(topic, partition, key, headers, value) != digest:
        message = (
            f"{topic}/{partition}/{offset} (number {number}) is not what was appended: its checksum differs"
        )
        raise port.LogCorruptedError(message)
    return topic, partition
