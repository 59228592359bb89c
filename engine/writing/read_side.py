"""Reads that include every answered write: the log, and the views that fold it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import anyio.to_thread

from engine.log.port import AFTER_FAILURE_S, NumberedLog
from events.records import StoredRecord
from projections.port import Rows, Views

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, kw_only=True)
class ReadSide:
    """The log and its views. Set ``stopping`` when the process shuts down: readers then stop waiting for records."""

    log: NumberedLog
    views: Views
    stopping: asyncio.Event = field(default_factory=asyncio.Event)

    async def catch_up(self) -> int:
        """Wait until the views include every write that any replica answered before the call.

        Return the sequence number of the newest record at that time. Raises LogError if the log can't be reached.
        """
        number = await self.log.newest()
        await self.views.wait_folded(number)
        return number

    async def read(self, query: Callable[[Rows], _Answer]) -> _Answer:
        """Query the views in a worker thread, after they have caught up with the log."""
        await self.catch_up()
        return await self.peek(query)

    async def peek(self, query: Callable[[Rows], _Answer]) -> _Answer:
        """Query the views as they are, in a worker thread; do not wait until they catch up with the log."""
        return await anyio.to_thread.run_sync(self.query, query)

    def query(self, query: Callable[[Rows], _Answer]) -> _Answer:
        """Query the views as they are, in this thread; may block while another thread reads."""
        with self.views.store.reading() as rows:
            return query(rows)

    async def folded_records(self, after: int, limit: int) -> tuple[list[StoredRecord], int]:
        """Return folded records after a sequence number, and the number up to which they are complete.

        At most ``limit`` records are read. Sequence numbers have gaps, so the read may return records that are not
        folded yet; they are left out.
        """
        folded = self.views.folded
        records = await self.log.read_all(after, min(limit, folded - after))
        known = [record for record in records if record.number <= folded]
        return known, known[-1].number if known and len(known) == len(records) else folded

    async def is_more(self, after: int) -> bool:
        """Wait until the views have folded beyond this sequence number; return False if the process stops."""
        while not self.stopping.is_set() and self.views.folded <= after:
            more = asyncio.ensure_future(self.views.wait_folded(after + 1))
            stopping = asyncio.ensure_future(self.stopping.wait())
            try:
                await asyncio.wait((more, stopping), return_when=asyncio.FIRST_COMPLETED)
                if more.done() and more.exception() is not None:
                    # The projection failed and is being retried; pause instead of spinning.
                    await asyncio.wait((stopping,), timeout=AFTER_FAILURE_S)
            finally:
                more.cancel()
                stopping.cancel()
        return not self.stopping.is_set()
