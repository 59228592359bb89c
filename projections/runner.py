"""Follows a log and folds its new records, in bounded batches, off the event loop.

One thread folds one batch at a time; the event loop never waits for SQLite. ``wait_folded`` gives clients
read-your-writes consistency.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol, TypeVar

from engine.shared_waits import EndSignal
from events import limits
from events.records import StoredRecord
from events.validation import verdicts
from projections import inputs
from projections.fold import Fold
from projections.port import ProjectionError
from projections.store import Checkpoint, Store

_Result = TypeVar("_Result")

BATCH_RECORDS_MAX: Final = 4_096
"""Records per transaction: enough to make a commit cheap, few enough to keep readers waiting only briefly."""


class Source(Protocol):
    """The part of ``engine.log.port.Log`` that a projector uses."""

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        """Return records of a partition from offset ``start`` on."""
        ...

    async def read_all(self, after: int, limit: int) -> list[StoredRecord]:
        """Return records of all partitions after a number, in sequence order."""
        ...

    def last_number(self) -> int: ...

    async def wait(self, after: int) -> None:
        """Return when there is a record with a higher number."""
        ...


class Projector:
    """Folds a log into a store; ``folded`` is the number of the last record visible to queries.

    Only one task may call ``run`` or ``fold_to``; any number may call ``wait_folded``.
    """

    def __init__(
        self,
        log: Source,
        store: Store,
        check: verdicts.Check,
        *,
        batch_records_max: int = BATCH_RECORDS_MAX,
    ) -> None:
        self.store = store
        self.folded = 0
        self._log = log
        self._check = check
        self._batch_max = batch_records_max
        self._fold: Fold | None = None
        self._written = 0
        self._end = EndSignal()
        # Use only one thread: it completes a batch even if the task is cancelled, and the next batch must wait for
        # this.
        self._thread = ThreadPoolExecutor(1, "projector")

    async def run(self) -> None:
        """Follow the log until cancelled.

        Raises ProjectionError if the tables belong to another log; they must then be rebuilt.
        """
        while True:
            await self.fold_to(self._log.last_number())
            await self._log.wait(self.folded)

    async def fold_to(self, number: int) -> None:
        """Fold all records up to a number; raises ProjectionError if the tables belong to another log."""
        while self.folded < number or self._fold is None:
            fold = await self._open()
            if self.folded < number:
                await self._fold_batch(fold, number)

    async def wait_folded(self, number: int) -> None:
        """Return when all records up to a number are visible to queries."""
        await self._end.wait(number - 1)

    def close(self) -> None:
        """Stop the thread after its current batch; the store may be closed then."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _fold_batch(self, fold: Fold, end: int) -> None:
        records = await self._log.read_all(self.folded, min(self._batch_max, end - self.folded))
        # Numbers may have gaps, so the last records read may be beyond the end.
        batch = [record for record in records if record.number <= end]
        if batch:
            # Load the recent ids before the fold, which assumes that it has them: without them it would not recognize
            # repeated records.
            await self._remember(fold, batch)
            await self._in_thread(self._write, fold, batch)
        # If the read went beyond `end` or returned nothing, all records up to `end` are folded. Then show `end` even if
        # no record has this number, because readers wait for `end`.
        self._show(end if len(batch) < len(records) or not records else batch[-1].number)

    async def _open(self) -> Fold:
        if self._fold is not None:
            return self._fold
        fold, checkpoint = await self._in_thread(self._load)
        if checkpoint.number:
            records = await self._log.read_all(checkpoint.number - 1, 1)
            # Compare the checksum: the directory may by now contain another log file, with the same numbers.
            if not records or records[0].checksum != checkpoint.checksum:
                raise ProjectionError(
                    f"the views end at number {checkpoint.number} of another log; rebuild them"
                )
        self._fold = fold
        self._written = checkpoint.number
        self._show(checkpoint.number)
        return fold

    def _load(self) -> tuple[Fold, Checkpoint]:
        with self.store.writing() as rows:
            fold = Fold(rows, self._check)
        return fold, self.store.checkpoint()

    async def _remember(self, fold: Fold, batch: Sequence[StoredRecord]) -> None:
        """Reload the recent ids of each partition whose first record since a restart is in the batch."""
        for first in fold.inputs.first_records_without_ids(batch):
            start = max(first.offset - limits.RECENT_IDS, 0)
            rebuild = inputs.RecentIdsRebuild(first)
            # Read in a loop: a read may return fewer records than requested. Pass the records of each read on at once:
            # those of all reads together may be larger than the memory.
            while start < first.offset:
                records = await self._log.read(first.topic, first.partition, start, first.offset - start)
                if not records:
                    break
                await self._in_thread(rebuild.take, records)
                start = records[-1].offset + 1
            await self._in_thread(fold.inputs.remember, first, rebuild.recent)

    def _write(self, fold: Fold, batch: Sequence[StoredRecord]) -> None:
        try:
            with self.store.writing() as rows:
                for record in batch:
                    # A batch whose task was cancelled may have been committed already; do not fold it twice.
                    if record.number > self._written:
                        fold.take(record)
                fold.flush(rows)
        except BaseException:
            # The transaction was rolled back, but the fold in memory has advanced: discard it and load it
            # again.
            self._fold = None
            raise
        self._written = max(self._written, batch[-1].number)

    async def _in_thread(self, work: Callable[..., _Result], *args: object) -> _Result:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *args)

    def _show(self, number: int) -> None:
        # Call it only after the commit: ``wait_folded`` promises that queries see these records.
        self.folded = number
        self._end.move(number)
