"""``log verify --views``: the stored views must equal a fold of the log."""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from engine.log.local import MemoryLog
from events.validation import manifests
from projections import runner, store, view_verification
from tests.deciders.story import Story
from tests.proof import logs


@asynccontextmanager
async def folded(path: Path) -> AsyncGenerator[MemoryLog]:
    """Yield a log whose views are in a file."""
    log = MemoryLog()
    await logs.play(Story(log))
    tables = await asyncio.to_thread(store.Store, path)
    projector = runner.Projector(log, tables, manifests.check, batch_records_max=50)
    await projector.fold_to(log.last_number())
    yield log
    projector.close()
    await asyncio.to_thread(tables.close)


async def proved(log: MemoryLog, path: Path) -> dict[str, str]:
    reader = await asyncio.to_thread(store.Reader, path)
    try:
        return await view_verification.differing(log, reader, manifests.check)
    finally:
        await asyncio.to_thread(reader.close)


def damage(path: Path) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("DELETE FROM works WHERE id = (SELECT min(id) FROM works)")
    connection.close()


async def test_views_of_the_log_equal_a_fold_from_scratch(tmp_path: Path) -> None:
    path = tmp_path / store.FILE
    async with folded(path) as log:
        assert await proved(log, path) == {}


async def test_changed_views_are_found_by_table(tmp_path: Path) -> None:
    path = tmp_path / store.FILE
    async with folded(path) as log:
        await asyncio.to_thread(damage, path)
        assert list(await proved(log, path)) == ["works"]
