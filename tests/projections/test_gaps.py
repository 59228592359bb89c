"""Gaps in numbers, as on Kafka: a view at a number contains the records up to it, and no later ones."""

import asyncio
import threading

import pytest

from events.validation import manifests
from projections.as_of_views import AsOfViews, number_at
from projections.fold import Fold
from projections.port import NotKeptError, ResultRow, Rows
from projections.runner import Projector
from projections.store import Store
from tests.projections.gaps import GappedLog
from tests.projections.stories import Story

Dump = dict[str, list[ResultRow]]


async def a_log(happenings: int) -> GappedLog:
    story, log = Story(3), GappedLog()
    await log.append(story.opening())
    for _ in range(happenings):
        await log.append(story.more())
    return log


async def folded(log: GappedLog, *numbers: int, batch: int = 4_096) -> Dump:
    store = await asyncio.to_thread(Store)
    projector = Projector(log, store, manifests.check, batch_records_max=batch)
    for number in numbers:
        await projector.fold_to(number)
        assert projector.folded == number
    projector.close()
    dump = await asyncio.to_thread(store.dump)
    await asyncio.to_thread(store.close)
    return dump


@pytest.mark.parametrize("missing", [0, 1, 2])
@pytest.mark.parametrize("batch", [1, 7, 4_096])
async def test_fold_ends_with_the_requested_number(missing: int, batch: int) -> None:
    log = await a_log(20)
    half = len(log.records) // 2
    number = log.records[half].number + missing

    dump = await folded(log, number, batch=batch)

    ((end, _),) = dump["checkpoint"]
    assert end == log.records[half].number
    assert dump == await folded(log, *range(1, number + 1, 5), number)


async def test_as_of_view_in_a_gap_equals_that_of_the_record_before() -> None:
    log = await a_log(20)
    moments = AsOfViews(log, manifests.check)
    number = log.records[len(log.records) // 2].number
    async with moments.at(number + 1) as store:
        between = await asyncio.to_thread(store.dump)
    await moments.close()

    assert between == await folded(log, number)


async def test_instant_of_deleted_records_is_refused() -> None:
    log = await a_log(20)
    del log.records[-5:]

    with pytest.raises(NotKeptError, match=f"no longer has number {log.records[-1].number + 1}"):
        await number_at(log, 2**42)


async def test_cancelled_as_of_query_does_not_change_what_later_ones_see(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = await a_log(20)
    views = AsOfViews(log, manifests.check)
    first, last = (log.records[len(log.records) // part].number for part in (4, 2))
    async with views.at(first) as store:
        before = await asyncio.to_thread(store.dump)
    flush, started, is_cancelled = Fold.flush, asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def slow(fold: Fold, rows: Rows) -> None:
        loop.call_soon_threadsafe(started.set)
        is_cancelled.wait()
        flush(fold, rows)

    with monkeypatch.context() as patched:
        patched.setattr(Fold, "flush", slow)
        query = asyncio.create_task(_dumped(views, last))
        await started.wait()
        query.cancel()
        with pytest.raises(asyncio.CancelledError):
            await query
        is_cancelled.set()
    assert await _dumped(views, first) == before
    assert await _dumped(views, last) == await folded(log, last)
    await views.close()


async def _dumped(views: AsOfViews, number: int) -> Dump:
    async with views.at(number) as store:
        return await asyncio.to_thread(store.dump)
