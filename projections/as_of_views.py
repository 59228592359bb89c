"""As-of views: projections in memory as of an earlier sequence number. ``number_at`` finds the number at an instant.

A new view folds the log from its first record. Some views are kept; a request for a later number advances one of them.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Final

from events import catalogue, times, topics
from events.records import StoredRecord
from events.validation import verdicts
from projections.port import NotKeptError
from projections.runner import Projector, Source
from projections.store import Store

_LOOK_BACK_RECORDS: Final = 2_048
_VIEWS_MAX: Final = 2


class AsOfViews:
    """As-of views in memory; at most ``_VIEWS_MAX`` are kept. Only one caller at a time uses a view."""

    def __init__(self, log: Source, check: verdicts.Check) -> None:
        self._log = log
        self._check = check
        self._kept: list[Projector] = []
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def at(self, number: int) -> AsyncGenerator[Store]:
        """Provide the projections as of the record with this number; other callers wait until the context ends."""
        async with self._turn:
            yield (await self._projector(number)).store

    async def close(self) -> None:
        async with self._turn:
            for projector in self._kept:
                await _close(projector)
            self._kept = []

    async def _projector(self, number: int) -> Projector:
        earlier = [projector_kept for projector_kept in self._kept if projector_kept.folded <= number]
        exact = [projector_kept for projector_kept in earlier if projector_kept.folded == number]
        if exact:
            return exact[0]
        # Advance an earlier as-of view if there is one. Otherwise a new view is needed: close the view that
        # was advanced least recently.
        while len(self._kept) >= _VIEWS_MAX and not earlier:
            await _close(self._kept.pop(0))
        projector = max(earlier, key=_folded, default=None)
        if projector is None:
            projector = Projector(self._log, await asyncio.to_thread(Store), self._check)
        else:
            self._kept.remove(projector)
        self._kept.append(projector)
        try:
            await projector.fold_to(number)
        except BaseException:
            # Discard this view: after a cancellation its thread may still commit a batch, so ``folded`` may be too low.
            self._kept.remove(projector)
            projector.close()
            raise
        return projector


def _folded(projector: Projector) -> int:
    return projector.folded


async def _close(projector: Projector) -> None:
    projector.close()
    await asyncio.to_thread(projector.store.close)


async def number_at(log: Source, at_ms: int) -> int:
    """Return the number of the last record that is not later than an instant; 0 if there is none.

    Steps have the time of their owner's clock, which never goes back. Records between two steps have the times that
    their producers set; a wrong clock of a producer has an effect on that producer's records only. Raises NotKeptError
    if the log no longer has the records that it must read.
    """
    end = log.last_number()
    step = await _last_step(log, end, at_ms)
    number = after = step
    while after < end:
        batch = await log.read_all(after, _LOOK_BACK_RECORDS)
        if not batch:
            # An empty batch below the log's last number means that the records were deleted.
            raise NotKeptError(f"the log no longer has number {after + 1}; restore its records")
        for record in batch:
            time_ms = _time_of(record)
            if _is_step(record) and time_ms > at_ms:
                return number
            if time_ms <= at_ms:
                number = record.number
        after = batch[-1].number
    return number


async def _last_step(log: Source, end: int, at_ms: int) -> int:
    """Return the number of the last step not later than the instant; 0 if there is none. Reads the log backwards."""
    while end > 0:
        start = max(end - _LOOK_BACK_RECORDS, 0)
        for record in reversed(await log.read_all(start, end - start)):
            if _is_step(record) and _time_of(record) <= at_ms:
                return record.number
        end = start
    return 0


def _is_step(record: StoredRecord) -> bool:
    return record.topic == topics.DECISIONS and record.headers.get("ce_type") == catalogue.STEP_TAKEN


def _time_of(record: StoredRecord) -> int:
    with suppress(ValueError):
        return times.from_text(record.headers.get("ce_time", ""))
    return 0
