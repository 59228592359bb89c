"""Counting works: a restart on a long history leaves turns to other tasks."""

import asyncio

from engine.log import local
from engine.simulation import log_reading
from events import records, topics


async def test_other_tasks_run_while_a_long_history_is_read() -> None:
    log = local.MemoryLog()
    await log.append([records.record(topics.DECISIONS, 0, "0", {}, b"{}") for _ in range(3_000)])
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    await log_reading.ValidWorks(log).follow(log.ends())
    task.cancel()
    assert turns >= 5
