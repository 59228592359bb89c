"""The log contract for the embedded log, and the behaviour of its file."""

import asyncio
import fcntl
import shutil
import sqlite3
import tempfile
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec
import pytest

from engine.log import port, sqlite, sqlite_reading
from events import records, topics
from tests import read_only
from tests.contracts import log_contract
from tests.proof.logs import opened

_ANSWER_S: Final = 60.0
"""Time limit of an append; one that is never answered would hang."""


def tamper(directory: Path, statement: str) -> None:
    connection = sqlite3.connect(directory / "log.sqlite")
    with connection:
        connection.execute(statement)
    connection.close()


class TestSqliteLog(log_contract.LogContract):
    @asynccontextmanager
    async def open(self) -> AsyncGenerator[port.NumberedLog]:
        directory = await asyncio.to_thread(tempfile.mkdtemp)
        async with opened(Path(directory)) as log:
            yield log
        await asyncio.to_thread(shutil.rmtree, directory)


async def test_all_records_exist_after_a_restart(tmp_path: Path) -> None:
    async with opened(tmp_path) as log:
        await log.append([log_contract.record(partition=p, text=str(p)) for p in range(4)])
        before = await log.read_all(0, 100)
        ends = dict(log.ends())
    async with opened(tmp_path) as log:
        assert await log.read_all(0, 100) == before
        assert await log.read(topics.SPECS, 3, 0, 10) == before[3:]
        assert dict(log.ends()) == ends
        (after,) = await log.append([log_contract.record(partition=2)])
        assert (after.offset, after.number) == (1, 5)


async def test_old_and_new_records_are_read_together(tmp_path: Path) -> None:
    async with opened(tmp_path) as log:
        await log.append([log_contract.record(text=str(index)) for index in range(5)])
    async with opened(tmp_path) as log:
        await log.append([log_contract.record(text=str(index)) for index in range(5, 10)])
        assert [record.value for record in await log.read(topics.SPECS, 0, 3, 4)] == [b"3", b"4", b"5", b"6"]
        assert [record.number for record in await log.read_all(2, 100)] == list(range(3, 11))


async def test_log_is_locked_by_one_process(tmp_path: Path) -> None:
    async with opened(tmp_path):
        with pytest.raises(port.LogLockedError, match="another process holds the log"):
            await sqlite.SqliteLog.open(tmp_path)


async def test_opening_waits_for_the_lock_of_a_dying_process(tmp_path: Path) -> None:
    with (tmp_path / "log.lock").open("wb") as left:
        fcntl.flock(left, fcntl.LOCK_EX)
        opening = asyncio.create_task(sqlite.SqliteLog.open(tmp_path))
        await asyncio.sleep(0.3)
        assert not opening.done()
    await (await opening).aclose()


async def test_log_with_another_shard_count_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path):
        pass
    await asyncio.to_thread(tamper, tmp_path, "UPDATE meta SET value = '7' WHERE name = 'shards'")
    with pytest.raises(port.LogError, match="shards '7'"):
        await sqlite.SqliteLog.open(tmp_path)


async def test_changed_record_is_found_and_located(tmp_path: Path) -> None:
    async with opened(tmp_path) as log:
        await log.append([log_contract.record(text="untouched"), log_contract.record(text="flipped")])
    await asyncio.to_thread(
        tamper, tmp_path, "UPDATE records SET value = CAST('flippee' AS BLOB) WHERE number = 2"
    )
    async with opened(tmp_path) as log:
        assert len(await log.read(topics.SPECS, 0, 0, 1)) == 1
        with pytest.raises(port.LogCorruptedError, match="specs/0/1"):
            await log.read(topics.SPECS, 0, 1, 1)


async def test_checksum_covers_key_headers_and_value() -> None:
    same = records.record("specs", 0, "k", {"a": "1"}, b"v")
    others = [
        records.record("health", 0, "k", {"a": "1"}, b"v"),
        records.record("specs", 1, "k", {"a": "1"}, b"v"),
        records.record("specs", 0, "l", {"a": "1"}, b"v"),
        records.record("specs", 0, "k", {"a": "2"}, b"v"),
        records.record("specs", 0, "k", {"a": "1"}, b"w"),
    ]
    assert len({record.checksum for record in [same, *others]}) == len(others) + 1


@pytest.mark.parametrize("size", [3, 127, 128, 129, 400])
async def test_failed_append_leaves_nothing(tmp_path: Path, size: int) -> None:
    batch = [log_contract.record(text=str(index)) for index in range(size)]
    async with opened(tmp_path) as log:
        await log.append([log_contract.record(text="before")])
    statement = (
        "CREATE TRIGGER full BEFORE INSERT ON records WHEN new.number = {} BEGIN SELECT RAISE(ABORT, ''); END"
    )
    await asyncio.to_thread(tamper, tmp_path, statement.format(1 + size))
    async with opened(tmp_path) as log:
        with pytest.raises(port.LogError):
            await log.append(batch)
        assert log.last_number() == 1
        await asyncio.to_thread(tamper, tmp_path, "DROP TRIGGER full")
        stored = await log.append(batch)
        assert [record.number for record in stored] == list(range(2, size + 2))
        assert await log.read_all(1, size) == stored


async def test_each_append_of_a_group_fails_with_its_commit(tmp_path: Path) -> None:
    async with opened(tmp_path) as log:
        await log.append([log_contract.record(text="before")])
    statement = "CREATE TRIGGER full BEFORE INSERT ON records BEGIN SELECT RAISE(ABORT, ''); END"
    await asyncio.to_thread(tamper, tmp_path, statement)
    async with opened(tmp_path) as log, asyncio.timeout(_ANSWER_S):
        appends = (log.append([log_contract.record(text=str(index))]) for index in range(20))
        outcomes = await asyncio.gather(*appends, return_exceptions=True)
        assert all(isinstance(outcome, port.LogError) for outcome in outcomes)


@pytest.mark.parametrize("name", ["log.sqlite", "log.sqlite-wal"])
async def test_append_to_a_removed_file_fails_until_it_is_put_back(tmp_path: Path, name: str) -> None:
    file, kept = tmp_path / name, tmp_path / "kept"
    async with opened(tmp_path) as log:
        await log.append([log_contract.record(text="before")])
        file.rename(kept)
        with pytest.raises(port.LogError, match="removed or replaced"):
            await log.append([log_contract.record(text="lost")])
        shutil.copy(kept, file)
        with pytest.raises(port.LogError, match="removed or replaced"):
            await log.append([log_contract.record(text="lost")])
        kept.rename(file)
        await log.append([log_contract.record(text="after")])
    async with opened(tmp_path) as log:
        assert len(await log.read_all(0, 10)) == 2


async def test_fault_is_shown_until_the_log_can_be_written_again(tmp_path: Path) -> None:
    file, kept = tmp_path / "log.sqlite", tmp_path / "kept"
    async with opened(tmp_path) as log, asyncio.timeout(_ANSWER_S):
        await log.append([log_contract.record(text="before")])
        assert not log.fault
        file.rename(kept)
        with pytest.raises(port.LogError, match="removed or replaced"):
            await log.append([log_contract.record(text="lost")])
        assert "removed or replaced" in log.fault
        kept.rename(file)
        while log.fault:  # noqa: ASYNC110  # nothing signals it
            await asyncio.sleep(0.05)
        assert len(await log.read_all(0, 10)) == 1


@pytest.mark.parametrize(("deleted", "first"), [("number <= 3", 1), ("number = 3", 3), ("number > 0", 1)])
async def test_deleted_records_are_reported_as_not_kept(tmp_path: Path, deleted: str, first: int) -> None:
    async with opened(tmp_path) as log:
        await log.append([log_contract.record(text=str(index)) for index in range(6)])
    async with opened(tmp_path) as log:
        await asyncio.to_thread(tamper, tmp_path, f"DELETE FROM records WHERE {deleted}")  # noqa: S608  # a test's own
        with pytest.raises(port.LogCutError, match=f"the log no longer has number {first}"):
            await log.read_all(0, 10)
        if deleted != "number > 0":
            with pytest.raises(port.LogCutError, match=rf"specs/0 no longer has offset {first - 1}"):
                await log.read(topics.SPECS, 0, 0, 10)
            assert [record.value for record in await log.read(topics.SPECS, 0, 3, 10)] == [b"3", b"4", b"5"]


@pytest.mark.parametrize(("topic", "partition"), [("unknown", 0), (topics.SPECS, 256), (topics.SPECS, -1)])
async def test_append_to_unknown_partition_fails_without_affecting_others(
    tmp_path: Path, topic: str, partition: int
) -> None:
    async with asyncio.timeout(_ANSWER_S), opened(tmp_path) as log:
        wrong, right = await asyncio.gather(
            log.append([log_contract.record(topic, partition)]),
            log.append([log_contract.record(text="neighbor")]),
            return_exceptions=True,
        )
        assert isinstance(wrong, port.LogError)
        assert f"{topic}/{partition}" in str(wrong)
        assert isinstance(right, list)
        assert await log.read_all(0, 10) == right


@pytest.mark.parametrize("size", [1, 400])
async def test_writer_reports_unexpected_error_and_continues(tmp_path: Path, size: int) -> None:
    whole = [log_contract.record(text=str(index)) for index in range(size)]
    # A lone surrogate has no UTF-8 encoding, so SQLite's binding of the key raises no SQLite error.
    unwritable = msgspec.structs.replace(log_contract.record(), key="\ud800")
    async with asyncio.timeout(_ANSWER_S), opened(tmp_path) as log:
        with pytest.raises(port.LogError, match="UnicodeEncodeError"):
            await log.append([*whole, unwritable])
        assert log.last_number() == 0
        stored = await log.append(whole)
    async with opened(tmp_path) as log:
        assert await log.read_all(0, size) == stored


async def test_append_to_closed_log_fails_at_once(tmp_path: Path) -> None:
    async with opened(tmp_path) as log:
        pass
    async with asyncio.timeout(_ANSWER_S):
        with pytest.raises(port.LogError, match="closed"):
            await log.append([log_contract.record()])


def test_log_on_a_read_only_medium_is_readable() -> None:
    assert read_only.is_read(
        lambda directory: asyncio.run(_write_one(directory)),
        lambda directory: asyncio.run(_read_number(directory)) == 1,
    )


async def _read_number(directory: Path) -> int:
    async with aclosing(sqlite_reading.SqliteReader(directory)) as log:
        return log.last_number()


async def _write_one(directory: Path) -> None:
    async with opened(directory) as log:
        await log.append([log_contract.record()])


@pytest.mark.parametrize(
    "change",
    [
        "value = CAST(value AS TEXT)",
        "value = 5",
        "headers = CAST(headers AS TEXT)",
        "checksum = 1.5",
        "key = CAST(key AS BLOB)",
        "slot = 1000000",
        "slot = -5",
        "slot = 'x'",
    ],
)
async def test_column_with_another_type_or_an_unknown_slot_is_damage(tmp_path: Path, change: str) -> None:
    log = await sqlite.SqliteLog.open(tmp_path)
    await log.append([records.record(topics.SPECS, 0, "key", {"é": "ü"}, b"{}") for _ in range(3)])
    await log.aclose()
    await asyncio.to_thread(tamper, tmp_path, f"UPDATE records SET {change} WHERE number = 2")  # noqa: S608
    with pytest.raises(port.LogCorruptedError):
        async with aclosing(sqlite_reading.SqliteReader(tmp_path)) as reader:
            await reader.read_all(0, 10)
