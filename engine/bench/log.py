"""Benchmark: appends to and reads from the embedded log, with a disk sync for each commit.

The baseline is SQLite in the same run: the same rows in an equal table, without the log's threads and queue.
"""

import asyncio
import time
from contextlib import aclosing
from pathlib import Path
from typing import Final

from engine.bench import inputs, runs, timing
from engine.bench.runs import Figures
from engine.log import reading, sqlite, sqlite_reading, sqlite_table
from events.records import Record

_BATCHES: Final = (1, 100, 1_000)
_TABLE: Final = """
CREATE TABLE records (number INTEGER PRIMARY KEY, slot INTEGER, offset INTEGER, key TEXT, headers BLOB, value BLOB,
                      checksum BLOB)
"""
_INDEX: Final = "CREATE UNIQUE INDEX positions ON records (slot, offset)"
_INSERT: Final = "INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?)"


def run(events: int) -> Figures:
    """Append ``events`` records in commits of 1, 100 and 1,000, and read them; figures are records per second."""
    with runs.directory() as directory:
        return asyncio.run(_measure(events, directory))


async def _measure(events: int, directory: Path) -> Figures:
    batch = [inputs.deployment(index) for index in range(events)]
    figures: Figures = {
        "events": events,
        "bytes_per_event": len(batch[0].value) + len(batch[0].headers_json),
    }
    for size in _BATCHES:
        portion = batch[: max(events * size // _BATCHES[-1], min(events, 500))]
        log_s = await _log_seconds(portion, size, directory / f"log-{size}")
        bare_s = await asyncio.to_thread(_bare, portion, size, directory / f"bare-{size}.sqlite")
        figures[f"append_{size}_per_s"] = round(len(portion) / log_s)
        figures[f"baseline_{size}_per_s"] = round(len(portion) / bare_s)
        figures[f"ratio_{size}"] = round(bare_s / log_s, 2)
    figures["read_per_s"] = round(events / await _read(directory / f"log-{_BATCHES[-1]}"))
    figures["baseline"] = "the same rows into SQLite directly, synced as well"
    return figures


async def _log_seconds(batch: list[Record], size: int, directory: Path) -> float:
    async with aclosing(await sqlite.SqliteLog.open(directory)) as log:
        return await timing.seconds(lambda: inputs.append(log, batch, size))


def _bare(batch: list[Record], size: int, path: Path) -> float:
    connection = sqlite_table.connect(path)
    connection.execute(_TABLE)
    connection.execute(_INDEX)
    rows = [
        (number, 0, number, record.key, record.headers_json, record.value, record.checksum)
        for number, record in enumerate(batch)
    ]
    start = time.perf_counter()
    for first in range(0, len(rows), size):
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(_INSERT, rows[first : first + size])
        connection.execute("COMMIT")
    took = time.perf_counter() - start
    connection.close()
    return took


async def _read(directory: Path) -> float:
    """Seconds to read the whole log from its file, with verification of checksums."""

    async def read() -> None:
        async for _ in reading.of_all(log):
            pass

    async with aclosing(sqlite_reading.SqliteReader(directory)) as log:
        return await timing.seconds(read)
