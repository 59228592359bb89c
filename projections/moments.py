"""The views as they were: at a number, in memory; and which number stood last at an instant.

A look into the past costs a fold from the first record on; the last ones are kept, and a later moment goes on
from an earlier one.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Final

from events import codec, decisions, times, topics, verdicts
from events.records import StoredRecord
from projections.port import NotKeptError
from projections.runner import Projector, Source
from projections.store import Store

_LOOK_BACK_RECORDS: Final = 2_048
_MOMENTS_MAX: Final = 2


class Moments:
    """Views as they were at some number, in memory."""

    def __init__(self, log: Source, check: verdicts.Check) -> None:
        self._log = log
        self._check = check
        self._kept: list[Projector] = []
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def at(self, number: int) -> AsyncGenerator[Store]:
        """The views as they were when the record with this number was the last."""
        async with self._turn:
            yield (await self._projector(number)).store

    async def close(self) -> None:
        """Forgets them."""
        async with self._turn:
            for projector in self._kept:
                await _close(projector)
            self._kept = []

    async def _projector(self, number: int) -> Projector:
        earlier = [kept for kept in self._kept if kept.folded <= number]
        exact = [kept for kept in earlier if kept.folded == number]
        if exact:
            return exact[0]
        while len(self._kept) >= _MOMENTS_MAX and not earlier:
            await _close(self._kept.pop(0))
        projector = max(earlier, key=_folded, default=None)
        if projector is None:
            projector = Projector(self._log, await asyncio.to_thread(Store), self._check)
        else:
            self._kept.remove(projector)
        self._kept.append(projector)
        await projector.fold_to(number)
        return projector


def _folded(projector: Projector) -> int:
    return projector.folded


async def _close(projector: Projector) -> None:
    projector.close()
    await asyncio.to_thread(projector.store.close)


async def number_at(log: Source, at_ms: int) -> int:
    """The number of the last record at an instant; 0 before the first. Raises NotKeptError.

    The steps' times are those of the owners' clocks, which never go back; a record between two steps counts by
    the time that its producer gave it, so one producer's wrong clock misplaces nothing but its own records.
    """
    end = log.last_number()
    step = await _last_step(log, end, at_ms)
    number = after = step
    while after < end:
        batch = await log.read_all(after, _LOOK_BACK_RECORDS)
        if not batch:
            # The log's last number is a record's, so there was one.
            raise NotKeptError(f"the log is not kept at number {after + 1} any more; restore its records")
        for record in batch:
            time_ms = _time_of(record)
            if _is_step(record) and time_ms > at_ms:
                return number
            if time_ms <= at_ms:
                number = record.number
        after = batch[-1].number
    return number


async def _last_step(log: Source, end: int, at_ms: int) -> int:
    """The number of the last step whose time is not after the instant; 0 where there is none."""
    while end > 0:
        start = max(end - _LOOK_BACK_RECORDS, 0)
        for record in reversed(await log.read_all(start, end - start)):
            if _is_step(record) and _time_of(record) <= at_ms:
                return record.number
        end = start
    return 0


def _is_step(record: StoredRecord) -> bool:
    return record.topic == topics.DECISIONS and record.headers.get("ce_type") == _STEP


def _time_of(record: StoredRecord) -> int:
    with suppress(ValueError):
        return times.from_text(record.headers.get("ce_time", ""))
    return 0


_STEP: Final = codec.catalogue.BY_STRUCT[decisions.StepTaken].type
