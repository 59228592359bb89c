"""Files of a data directory: private to their owner, and never those of another program."""

import asyncio
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from engine import private_files
from engine.agent.checkpoint import Checkpoint
from engine.log import port, sqlite, sqlite_reading
from engine.log.kafka import extents
from engine.reconcilers import snapshot_storage
from projections.store import Store
from tests.contracts import log_contract

APPLICATION = 0x52654C67


@pytest.fixture(autouse=True)
def _usual_mask() -> Iterator[None]:
    """Set the umask with which new files are readable for everyone."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(directory: Path) -> dict[str, str]:
    return {path.name: f"{path.stat().st_mode & 0o777:o}" for path in sorted(directory.iterdir())}


async def written(directory: Path) -> dict[str, str]:
    """Return the modes of an open log's files."""
    log = await sqlite.SqliteLog.open(directory)
    await log.append([log_contract.record()])
    file_modes = modes(directory)
    await log.aclose()
    return file_modes


def write(directory: Path) -> dict[str, str]:
    return asyncio.run(written(directory))


def test_log_files_are_private_in_an_existing_directory(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    file_modes = write(tmp_path)
    assert set(file_modes) == {"log.lock", "log.sqlite", "log.sqlite-shm", "log.sqlite-wal"}
    assert set(file_modes.values()) == {"600"}


def test_created_directories_are_private(tmp_path: Path) -> None:
    write(tmp_path / "a" / "b")
    assert (modes(tmp_path), modes(tmp_path / "a")) == ({"a": "700"}, {"b": "700"})


def test_files_of_a_former_release_become_private(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    write(tmp_path)
    names = (
        "log.sqlite",
        "log.lock",
        "views.sqlite",
        "views.sqlite-wal",
        "snapshot-12.bin",
        "sequence.sqlite",
    )
    for name in names:
        (tmp_path / name).touch()
        (tmp_path / name).chmod(0o644)
    (tmp_path / "notes.txt").touch(mode=0o644)
    file_modes = write(tmp_path)
    assert file_modes.pop("notes.txt") == "644"  # a foreign file
    assert set(file_modes.values()) == {"600"}


def test_caches_and_checkpoints_are_private(tmp_path: Path) -> None:
    opened = [
        Store(tmp_path / "views.sqlite"),
        extents.ExtentFile(tmp_path / "sequence.sqlite"),
        Checkpoint(tmp_path / "agent.sqlite"),
    ]
    snapshot_storage.SnapshotFiles(tmp_path).write(7, [b"a snapshot"])
    private_files.write(tmp_path / "kubeconfig", b"{}")
    file_modes = modes(tmp_path)
    for store in opened:
        store.close()
    assert {"views.sqlite-wal", "sequence.sqlite-shm", "agent.sqlite", "snapshot-7.bin"} <= set(file_modes)
    assert set(file_modes.values()) == {"600"}


def test_open_directory_causes_a_warning_with_path_mode_and_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The loggers of the tests drop warnings.
    everything = structlog.make_filtering_bound_logger(0)
    monkeypatch.setattr(
        private_files, "_log", structlog.wrap_logger(structlog.PrintLogger(), wrapper_class=everything)
    )
    tmp_path.chmod(0o750)
    with structlog.testing.capture_logs() as log_events:
        private_files.create_directory(tmp_path)
        tmp_path.chmod(0o700)
        private_files.create_directory(tmp_path)
    assert log_events == [
        {
            "event": "data directory accessible by other users",
            "log_level": "warning",
            "path": str(tmp_path),
            "mode": "0750",
            "remedy": f"chmod 700 {tmp_path}",
        }
    ]


def foreign(path: Path, *statements: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    return connection


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TABLE users (name TEXT)"],
        ["PRAGMA application_id = 77", "CREATE TABLE users (name TEXT)"],
        [
            "CREATE TABLE meta (name TEXT, value TEXT)",
            "CREATE TABLE records (number INTEGER)",
            "INSERT INTO meta VALUES ('format', 'a player of records 3')",
        ],
        ["CREATE TABLE meta (key TEXT)", "CREATE TABLE records (number INTEGER)"],
        ["PRAGMA journal_mode = WAL", "CREATE TABLE users (name TEXT)"],
    ],
    ids=["tables", "application", "same-names", "same-names-only", "wal"],
)
def test_log_of_another_program_is_refused_and_left_unchanged(tmp_path: Path, statements: list[str]) -> None:
    path = tmp_path / "log.sqlite"
    connection = foreign(path, *statements)
    path.chmod(0o644)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir() if not file.name.endswith("-shm")}
    with pytest.raises(port.LogError, match=r"log\.sqlite belongs to another program .*tables: "):
        asyncio.run(sqlite.SqliteLog.open(tmp_path))
    with pytest.raises(port.LogError, match="belongs to another program"):
        sqlite_reading.SqliteReader(tmp_path)
    after = {file.name: file.read_bytes() for file in tmp_path.iterdir() if not file.name.endswith("-shm")}
    connection.close()
    assert after == before
    assert modes(tmp_path)["log.sqlite"] == "644"


def test_log_of_a_former_release_gets_an_application_id(tmp_path: Path) -> None:
    write(tmp_path)
    foreign(tmp_path / "log.sqlite", "PRAGMA application_id = 0").close()
    write(tmp_path)
    connection = sqlite3.connect(tmp_path / "log.sqlite")
    assert connection.execute("SELECT max(number) FROM records").fetchone() == (2,)
    assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION,)
    connection.close()


def test_empty_file_becomes_a_log(tmp_path: Path) -> None:
    (tmp_path / "log.sqlite").touch()
    assert (write(tmp_path))["log.sqlite"] == "600"
