"""The agent's checkpoint: atomic, per cluster, and ignored if it is unreadable."""

import sqlite3
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anyio.to_thread
import msgspec
import pytest

from engine.agent import checkpoint, messages, reconciliation
from engine.agent.checkpoint import Checkpoint
from engine.agent.ledger import Ledger
from engine.agent.reconciliation import Applied, Entry
from events.shapes import WorkloadRef

REF = WorkloadRef(api_version="apps/v1", kind="Deployment", name="web", namespace="default")
WORK = messages.Work(
    key="k", state="applied", term=1, step=2, template=REF, digest="d", replicas=3, overrides="o"
)
ENTRY = Entry(
    work=WORK,
    ref=REF,
    applied=Applied(
        ref=REF,
        term=1,
        step=2,
        content=reconciliation.content_of(WORK),
        uid="u",
        fields="f",
        is_retained=True,
    ),
    reported=messages.WorkloadReport(key="k", term=1, step=2, replicas=3),
)


def test_saved_checkpoint_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "agent.sqlite"
    kept = Checkpoint(path)
    assert kept.load("one") == (None, {})
    kept.save("one", 7, {"k": checkpoint.encoded(ENTRY)})
    kept.save("two", 9, {})
    kept.close()

    again = Checkpoint(path)
    assert again.load("one") == (7, {"k": ENTRY})
    assert again.load("two") == (9, {})
    again.save("one", 8, {"k": None})
    assert again.load("one") == (8, {})
    again.forget("two")
    assert again.load("two") == (None, {})
    again.close()
    assert path.stat().st_mode & 0o077 == 0


def test_threads_save_at_the_same_time(tmp_path: Path) -> None:
    kept = Checkpoint(tmp_path / "agent.sqlite")
    entries = {f"k{index}": checkpoint.encoded(ENTRY) for index in range(50)}

    def save(index: int) -> None:
        kept.save(f"cluster{index}", index, entries)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(save, range(64)))
    assert [kept.load(f"cluster{index}") for index in range(64)] == [
        (index, dict.fromkeys(entries, ENTRY)) for index in range(64)
    ]
    kept.close()


def test_unreadable_checkpoint_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "agent.sqlite"
    path.write_bytes(b"no database, this" * 100)
    kept = Checkpoint(path)
    assert kept.load("one") == (None, {})
    kept.close()


def test_checkpoint_of_another_format_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "agent.sqlite"
    kept = Checkpoint(path)
    kept.save("one", 7, {"k": checkpoint.encoded(ENTRY)})
    kept.close()
    other = sqlite3.connect(path)
    other.execute("PRAGMA user_version = 99")
    other.close()
    kept = Checkpoint(path)
    assert kept.load("one") == (None, {})
    kept.close()


def test_cluster_with_an_unreadable_entry_is_listed_again(tmp_path: Path) -> None:
    path = tmp_path / "agent.sqlite"
    kept = Checkpoint(path)
    kept.save("one", 7, {"k": checkpoint.encoded(ENTRY), "l": b'["of another release"]'})
    kept.save("two", 9, {"k": checkpoint.encoded(ENTRY)})
    assert kept.load("one") == (None, {})
    kept.save("one", 8, {"k": checkpoint.encoded(ENTRY)})
    kept.close()
    again = Checkpoint(path)
    assert again.load("one") == (8, {"k": ENTRY})
    assert again.load("two") == (9, {"k": ENTRY})
    again.close()


async def test_works_of_a_failed_save_are_saved_with_the_next_position(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = await anyio.to_thread.run_sync(Checkpoint, tmp_path / "agent.sqlite")
    ledger = Ledger(kept, "one")
    await ledger.load()
    save = kept.save

    def failing(_cluster: str, _position: int | None, _entries: Mapping[str, bytes | None]) -> None:
        ledger.take(msgspec.structs.replace(WORK, key="later"))
        ledger.move(2)
        raise sqlite3.OperationalError("database or disk is full")

    ledger.take(WORK)
    ledger.move(1)
    monkeypatch.setattr(kept, "save", failing)
    with pytest.raises(sqlite3.OperationalError):
        await ledger.save()
    monkeypatch.setattr(kept, "save", save)
    await ledger.save()
    position, entries = await anyio.to_thread.run_sync(kept.load, "one")
    assert (position, set(entries)) == (2, {"k", "later"})
    await anyio.to_thread.run_sync(kept.close)


async def test_former_position_is_not_stored_while_another_one_is_held(tmp_path: Path) -> None:
    kept = await anyio.to_thread.run_sync(Checkpoint, tmp_path / "agent.sqlite")
    await anyio.to_thread.run_sync(kept.save, "one", 100, {"k": checkpoint.encoded(ENTRY)})
    ledger = Ledger(kept, "one")
    await ledger.load()
    ledger.hold_position()
    ledger.move(50)
    await ledger.save()
    assert (await anyio.to_thread.run_sync(kept.load, "one"))[0] is None
    ledger.release_position()
    await ledger.save()
    assert (await anyio.to_thread.run_sync(kept.load, "one"))[0] == 50
    await anyio.to_thread.run_sync(kept.close)
