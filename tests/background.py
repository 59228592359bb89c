"""Run a coroutine as a task while a test continues."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager, suppress


@asynccontextmanager
async def background(work: Coroutine[object, object, object]) -> AsyncGenerator[None]:
    """Run work until the ``async with`` block ends; raise its error if it failed."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
