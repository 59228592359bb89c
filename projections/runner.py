"""Following a log: everything that is new goes through the fold, in bounded batches, off the event loop.

One thread folds, one batch at a time; the event loop never waits for a table. ``wait_folded`` is what makes
everybody read their own writes (invariant 8).
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol, TypeVar

from events import limits, verdicts
from events.records import StoredRecord
from projections.fold import Fold
from projections.port import ProjectionError
from projections.store import Checkpoint, Store

_Result = TypeVar("_Result")

BATCH_RECORDS_MAX: Final = 4_096
"""Records of one transaction: enough to make a commit cheap, few enough that a reader hardly waits."""


class Source(Protocol):
    """What a projector asks of a log; ``engine.log.port.Log`` says what it means."""

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        """Records of a partition from an offset on."""
        ...

    async def read_all(self, after: int, limit: int) -> list[StoredRecord]:
        """Records of all partitions behind a number."""
        ...

    def last_number(self) -> int:
        """The number of the newest record."""
        ...

    async def wait(self, after: int) -> None:
        """Returns when there is a record with a higher number."""
        ...


class Projector:
    """Folds a log into a store. ``folded`` is the number of the last record that questions see.

    One task calls ``run`` or ``fold_to``; any number of them wait.
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
        self._moved: asyncio.Future[None] | None = None
        self._thread = ThreadPoolExecutor(1, "projector")

    async def run(self) -> None:
        """Follows the log until it is cancelled.

        Raises ProjectionError where the tables are not those of this log; they are then to be built anew.
        """
        while True:
            await self.fold_to(self._log.last_number())
            await self._log.wait(self.folded)

    async def fold_to(self, number: int) -> None:
        """Folds everything up to a number; raises ProjectionError like ``run``."""
        while self.folded < number or self._fold is None:
            fold = await self._open()
            if self.folded < number:
                await self._fold_batch(fold, number)

    async def wait_folded(self, number: int) -> None:
        """Returns when everything up to a number can be asked for."""
        while self.folded < number:
            if self._moved is None:
                self._moved = asyncio.get_running_loop().create_future()
            # Shielded: one who gives up must not end the wait of the others.
            await asyncio.shield(self._moved)

    def close(self) -> None:
        """Ends the thread, once it is done with the batch that it has begun; the store may be closed then."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _fold_batch(self, fold: Fold, end: int) -> None:
        found = await self._log.read_all(self.folded, min(self._batch_max, end - self.folded))
        # Numbers are not counts: so many records may reach beyond the end, or all of them stand there.
        batch = [record for record in found if record.number <= end]
        if batch:
            await self._remember(fold, batch)
            await self._in_thread(self._write, fold, batch)
        self._show(end if len(batch) < len(found) or not found else batch[-1].number)

    async def _open(self) -> Fold:
        if self._fold is not None:
            return self._fold
        fold, checkpoint = await self._in_thread(self._load)
        if checkpoint.number:
            found = await self._log.read_all(checkpoint.number - 1, 1)
            if not found or found[0].checksum != checkpoint.checksum:
                raise ProjectionError(
                    f"the views end at number {checkpoint.number} of another log; build them anew"
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
        """Reads again which ids were seen of late in partitions that speak for the first time since a restart."""
        for first in fold.inputs.forgotten(batch):
            start = max(first.offset - limits.RECENT_IDS, 0)
            recent: list[StoredRecord] = []
            # A log may give fewer records at once than were asked for; offsets leave some out.
            while start < first.offset:
                found = await self._log.read(first.topic, first.partition, start, first.offset - start)
                if not found:
                    break
                recent += found
                start = found[-1].offset + 1
            await self._in_thread(fold.inputs.remember, first, recent)

    def _write(self, fold: Fold, batch: Sequence[StoredRecord]) -> None:
        try:
            with self.store.writing() as rows:
                for record in batch:
                    # What was written for a task that then gave up waiting is not folded twice.
                    if record.number > self._written:
                        fold.take(record)
                fold.flush(rows)
        except BaseException:
            # The tables stand where they stood, what is in memory does not: it is read again.
            self._fold = None
            raise
        self._written = max(self._written, batch[-1].number)

    async def _in_thread(self, work: Callable[..., _Result], *args: object) -> _Result:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *args)

    def _show(self, number: int) -> None:
        self.folded = number
        moved, self._moved = self._moved, None
        if moved is not None and not moved.done():
            moved.set_result(None)
