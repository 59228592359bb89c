"""The views process through kills, damage and full disks: clients never see older or wrong views."""

import asyncio
import os
import resource
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Final

import pytest

from engine.log import port
from engine.log.sqlite import SqliteLog
from engine.log.sqlite_table import FILE
from engine.process.views.remote import PATIENCE_S, RemoteViews
from events.validation import manifests
from projections import changes, store
from projections.port import ResultRow
from projections.runner import Projector
from projections.store import Store
from tests.background import background
from tests.projections.stories import Story

LEVEL_SECONDS: Final = 120
FULL_SECONDS: Final = 120
pytestmark = pytest.mark.slow


@asynccontextmanager
async def following(log: SqliteLog, directory: Path) -> AsyncGenerator[RemoteViews]:
    """Run views over a log for the duration of the block."""
    async with running(RemoteViews(log, directory)) as views, asyncio.timeout(LEVEL_SECONDS):
        await views.wait_folded(log.last_number())
        yield views


@asynccontextmanager
async def running(views: RemoteViews) -> AsyncGenerator[RemoteViews]:
    """Run views for the duration of the block, without waiting until they have folded the whole log."""
    try:
        async with background(views.run()):
            yield views
    finally:
        await views.close()


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[SqliteLog]:
    opened = await SqliteLog.open(tmp_path, synchronous="OFF")
    yield opened
    await opened.aclose()


@pytest.fixture
def story() -> Story:
    return Story(7)


def children() -> set[int]:
    """Return the process ids of this process's children."""
    tasks = Path("/proc/self/task").iterdir()
    return {int(pid) for task in tasks for pid in (task / "children").read_text().split()}


async def checkpoint(views: RemoteViews) -> int:
    def read() -> int:
        with views.store.reading() as rows:
            return changes.checkpoint(rows)

    return await asyncio.to_thread(read)


async def dump(directory: Path) -> dict[str, list[ResultRow]]:
    tables = await asyncio.to_thread(Store, directory / store.FILE)
    try:
        return await asyncio.to_thread(tables.dump)
    finally:
        await asyncio.to_thread(tables.close)


def damage(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"ce_source", b"ce_sourcf"))


async def folded_here(log: SqliteLog) -> dict[str, list[ResultRow]]:
    tables = await asyncio.to_thread(Store)
    projector = Projector(log, tables, manifests.check)
    await projector.fold_to(log.last_number())
    projector.close()
    return await asyncio.to_thread(tables.dump)


async def test_views_equal_those_folded_in_this_process(log: SqliteLog, tmp_path: Path, story: Story) -> None:
    await log.append(story.opening())
    async with following(log, tmp_path) as views:
        for _ in range(30):
            await log.append(story.more())
            await views.wait_folded(log.last_number())
            assert await checkpoint(views) >= views.folded == log.last_number()

    assert await dump(tmp_path) == await folded_here(log)


async def test_long_read_blocks_no_writes_and_includes_no_later_ones(
    log: SqliteLog, tmp_path: Path, story: Story
) -> None:
    await log.append(story.opening())
    async with following(log, tmp_path) as views:
        began = log.last_number()

        def look() -> tuple[int, int]:
            with views.store.reading() as long:
                assert changes.checkpoint(long) == began
                asyncio.run_coroutine_threadsafe(more(), loop).result(LEVEL_SECONDS)
                with views.store.reading() as short:
                    return changes.checkpoint(long), changes.checkpoint(short)

        async def more() -> None:
            await log.append(story.more())
            await views.wait_folded(log.last_number())

        loop = asyncio.get_running_loop()
        async with asyncio.timeout(LEVEL_SECONDS):
            assert await asyncio.to_thread(look) == (began, log.last_number())


async def test_killed_views_process_is_restarted_without_older_views(
    log: SqliteLog, tmp_path: Path, story: Story
) -> None:
    await log.append(story.opening())
    before = await asyncio.to_thread(children)
    async with following(log, tmp_path) as views:
        for _ in range(3):
            seen = views.folded
            for child in await asyncio.to_thread(children) - before:
                os.kill(child, signal.SIGKILL)
            await log.append(story.more())

            assert await checkpoint(views) >= seen
            await views.wait_folded(log.last_number())

    assert await dump(tmp_path) == await folded_here(log)


async def test_damaged_tables_are_rebuilt(log: SqliteLog, tmp_path: Path, story: Story) -> None:
    await log.append([*story.opening(), *story.more()])
    (tmp_path / store.FILE).write_bytes(b"no tables" * 1_000)

    async with following(log, tmp_path):
        pass

    assert await dump(tmp_path) == await folded_here(log)


@pytest.mark.parametrize("name", ["checkpoint", "objects", "steps"])
async def test_tables_with_a_damaged_page_are_rebuilt_when_they_are_opened(
    name: str, log: SqliteLog, tmp_path: Path, story: Story
) -> None:
    await fold_and_damage(log, tmp_path, story, name)

    async with following(log, tmp_path):
        pass

    assert await dump(tmp_path) == await folded_here(log)


@pytest.mark.parametrize("name", ["timeline", "changes", "works", "bindings"])
async def test_tables_with_a_damaged_page_are_rebuilt_when_it_is_folded(
    name: str, log: SqliteLog, tmp_path: Path, story: Story
) -> None:
    await fold_and_damage(log, tmp_path, story, name)

    async with following(log, tmp_path) as views:
        seen = views.folded
        for _ in range(10):
            await log.append(story.more())
            assert await checkpoint(views) >= seen
        await views.wait_folded(log.last_number())

    assert await dump(tmp_path) == await folded_here(log)


async def fold_and_damage(log: SqliteLog, directory: Path, story: Story, name: str) -> None:
    """Fold some records, and damage a table while no views run."""
    await log.append([*story.opening(), *story.more()])
    async with following(log, directory):
        pass
    await asyncio.to_thread(damage_table, directory / store.FILE, name)


def damage_table(path: Path, name: str) -> None:
    """Overwrite the first page of a table."""
    with closing(sqlite3.connect(path)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", [name]).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)


async def test_tables_of_another_log_are_rebuilt(tmp_path: Path, log: SqliteLog) -> None:
    other = await SqliteLog.open(tmp_path / "other", synchronous="OFF")
    for which, seed in ((other, 1), (log, 2)):
        story = Story(seed)
        await which.append([*story.opening(), *story.more()])
    async with following(other, tmp_path / "other"):
        pass
    (tmp_path / "other" / store.FILE).rename(tmp_path / store.FILE)

    async with following(log, tmp_path):
        pass

    assert await dump(tmp_path) == await folded_here(log)
    await other.aclose()


@pytest.mark.parametrize("is_folded", [False, True])
async def test_damaged_record_is_reported(
    log: SqliteLog, tmp_path: Path, story: Story, *, is_folded: bool
) -> None:
    await log.append(story.opening())
    if is_folded:
        async with following(log, tmp_path):
            pass
    await log.aclose()
    await asyncio.to_thread(damage, tmp_path / FILE)
    damaged = await SqliteLog.open(tmp_path, synchronous="OFF")

    views = RemoteViews(damaged, tmp_path)
    with pytest.raises(port.LogCorruptedError, match="is not what was appended"):
        async with asyncio.timeout(LEVEL_SECONDS):
            await views.run()

    await damaged.aclose()


def test_views_process_ends_with_its_parent(tmp_path: Path) -> None:
    parent = f"""
import asyncio, os, signal
from pathlib import Path
from engine.log.sqlite import SqliteLog
from engine.process.views.remote import PATIENCE_S, RemoteViews
async def main():
    log = await SqliteLog.open(Path({str(tmp_path)!r}))
    views = RemoteViews(log, Path({str(tmp_path)!r}))
    running = asyncio.create_task(views.run())
    await views.wait_folded(0)
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""
    # The child inherited the error stream: it ends, and with it the wait, when all its holders have ended.
    ended = subprocess.run(
        [sys.executable, "-c", parent], capture_output=True, text=True, timeout=LEVEL_SECONDS, check=False
    )

    assert ended.returncode == -signal.SIGKILL


@contextmanager
def limited(bytes_max: int) -> Generator[None]:
    """Limit the file sizes of children started in the block, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_max, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def remove_limit(child: int) -> None:
    """Remove the limit of a child's file sizes."""
    resource.prlimit(child, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


async def fill(log: SqliteLog, views: RemoteViews, story: Story) -> port.LogError:
    """Append until a query is refused; return its error."""
    while True:
        await log.append([record for _ in range(20) for record in story.more()])
        try:
            await views.wait_folded(log.last_number())
        except port.LogError as error:
            return error


async def test_full_disk_is_reported_to_clients_until_there_is_space(
    log: SqliteLog, tmp_path: Path, story: Story
) -> None:
    await log.append(story.opening())
    before = await asyncio.to_thread(children)
    views = RemoteViews(log, tmp_path)
    with limited(1_000_000):
        running = asyncio.create_task(views.run())
        await views.wait_folded(log.last_number())
    try:
        (child,) = await asyncio.to_thread(children) - before
        async with asyncio.timeout(FULL_SECONDS):
            error = await fill(log, views, story)
        assert f"{tmp_path / store.FILE} can't be written" in str(error)
        assert "the views continue automatically once there is space" in str(error)
        # Folded records can still be queried; later ones are refused at once.
        await views.wait_folded(views.folded)
        seen = views.folded
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(port.LogError, match="can't be written"):
                await views.wait_folded(log.last_number())
        assert await checkpoint(views) == seen < log.last_number()

        remove_limit(child)
        async with asyncio.timeout(LEVEL_SECONDS):
            while views.folded < log.last_number():  # noqa: ASYNC110  # who waits is refused until then
                await asyncio.sleep(0.05)
        await views.wait_folded(log.last_number())
        # The same child continues.
        assert await asyncio.to_thread(children) - before == {child}
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await views.close()
    assert await dump(tmp_path) == await folded_here(log)


async def test_unopenable_tables_are_reported_and_opened_later(
    log: SqliteLog, tmp_path: Path, story: Story
) -> None:
    await log.append(story.opening())
    before = await asyncio.to_thread(children)
    views = RemoteViews(log, tmp_path)
    with limited(0):
        async with running(views):
            async with asyncio.timeout(FULL_SECONDS):
                with pytest.raises(port.LogError, match="continue automatically once there is space"):
                    await views.wait_folded(log.last_number())
            (child,) = await asyncio.to_thread(children) - before
            remove_limit(child)
            async with asyncio.timeout(LEVEL_SECONDS):
                while views.folded < log.last_number():  # noqa: ASYNC110  # as above
                    await asyncio.sleep(0.05)


async def test_repeatedly_ending_process_is_reported(log: SqliteLog, tmp_path: Path, story: Story) -> None:
    await log.append(story.opening())
    # The missing broker is all that the child can report before it ends.
    views = RemoteViews(log, tmp_path, "kafka://127.0.0.1:1/nowhere")
    async with running(views):
        async with asyncio.timeout(FULL_SECONDS):
            with pytest.raises(port.LogError, match="keeps exiting"):
                await views.wait_folded(log.last_number())
