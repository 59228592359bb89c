"""Records of a log one after another, read in batches."""

import asyncio
from collections.abc import AsyncIterator

from engine.log import port
from events.records import StoredRecord


async def of_partition(
    log: port.Log, topic: str, partition: int, start: int = 0, end: int | None = None
) -> AsyncIterator[StoredRecord]:
    """Yield the records of a partition from offset ``start`` up to ``end`` (exclusive), or up to its current end."""
    while end is None or start < end:
        batch = await log.read(topic, partition, start, port.READ_RECORDS)
        for record in batch:
            if end is not None and record.offset >= end:
                return
            yield record
        if not batch:
            return
        start = batch[-1].offset + 1
        # A log in memory returns without a pause; let other tasks run between batches.
        await asyncio.sleep(0)


async def of_all(
    log: port.NumberedLog, after: int = 0, until: int | None = None
) -> AsyncIterator[StoredRecord]:
    """Yield all partitions' records with sequence numbers above ``after``, up to ``until`` or the current end.

    Sequence numbers may have gaps.
    """
    while until is None or after < until:
        batch = await log.read_all(after, port.READ_RECORDS)
        for record in batch:
            if until is not None and record.number > until:
                return
            yield record
        if not batch:
            return
        after = batch[-1].number
        await asyncio.sleep(0)
