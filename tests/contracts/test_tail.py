"""The records that a log keeps in memory are limited by bytes, over all partitions."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.log import sqlite
from events import records, topics
from tests.contracts import log_contract

RECORD_BYTES = 11_200
"""A record with a value of 10,000 bytes."""


def stored(partitions: int, value: bytes = b"x" * 10_000) -> Iterator[records.StoredRecord]:
    number = 0
    while True:
        record = records.record(topics.SPECS, number % partitions, "k", {}, value)
        yield records.stored(record, number // partitions, number + 1)
        number += 1


def count_readable(newest: sqlite.Tail, partitions: int, numbers: int) -> int:
    """Return how many records can be read by their offset; asserts that the same ones can be read by number."""
    by_offset = {
        record.number
        for partition in range(partitions)
        for start in range(numbers)
        for record in newest.read(topics.SPECS, partition, start, 1) or ()
    }
    by_number = {record.number for after in range(numbers) for record in newest.after(after, 1) or ()}
    assert by_offset == by_number
    return len(by_offset)


@pytest.mark.parametrize("partitions", [1, 7])
def test_records_up_to_the_byte_limit_are_kept_for_any_number_of_partitions(partitions: int) -> None:
    newest = sqlite.Tail(bytes_max=10 * RECORD_BYTES)
    source = stored(partitions)
    for taken in range(1, 41):
        newest.extend([next(source)])
        assert count_readable(newest, partitions, 41) == min(taken, 10)


def test_newest_record_is_kept_at_any_size() -> None:
    newest = sqlite.Tail(bytes_max=1)
    newest.extend(record for record, _ in zip(stored(1), range(3), strict=False))
    assert [record.number for record in newest.after(2, 10) or ()] == [3]
    assert newest.after(1, 10) is None
    assert newest.read(topics.SPECS, 0, 1, 10) is None


async def test_records_no_longer_in_memory_are_read_from_the_file(tmp_path: Path) -> None:
    log = await sqlite.SqliteLog.open(tmp_path)
    large = "x" * (sqlite.BYTES_MAX // 4)
    written = [await log.append([log_contract.record(partition=index % 2, text=large)]) for index in range(8)]
    assert await log.read_all(0, 10) == [record for (record,) in written]
    assert await log.read(topics.SPECS, 1, 0, 10) == [
        record for (record,) in written if record.partition == 1
    ]
    await log.aclose()
