"""Waits that many readers in one event loop share: for new records in a log, for its views, for a response."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

_Answer = TypeVar("_Answer")


class EndSignal:
    """The newest sequence number of a log or of its views, and a future that readers share to wait for a higher one."""

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self._moved: asyncio.Future[None] | None = None

    def move(self, number: int) -> None:
        """Set the end of the log to ``number`` and wake all waiting readers."""
        self.number = number
        # Replace the future before waking its readers: they may wait for the next move at once.
        moved, self._moved = self._moved, None
        if moved is not None and not moved.done():
            moved.set_result(None)

    async def wait(self, after: int) -> None:
        """Return when the number is above ``after``."""
        while self.number <= after:
            await self.wait_for_move()

    async def wait_for_move(self) -> None:
        """Return at the next call of ``move``, even if the number stays the same."""
        if self._moved is None:
            self._moved = asyncio.get_running_loop().create_future()
        # Shielded: a reader that is cancelled must not cancel the future that the others share.
        await asyncio.shield(self._moved)


class SharedRequest(Generic[_Answer]):
    """Runs one request for all callers that arrive while the previous request is in flight.

    An answer is never older than the call: a request started before the call does not answer it.
    """

    def __init__(self, request: Callable[[], Awaitable[_Answer]]) -> None:
        self._request = request
        self._running: asyncio.Task[_Answer] | None = None
        self._next: asyncio.Task[_Answer] | None = None

    async def answer(self) -> _Answer:
        """Return the answer of the next request, which starts after this call and is shared; raises its errors."""
        if self._next is None:
            self._next = asyncio.create_task(self._run(self._running))
            # If all callers are cancelled before the request fails, asyncio would log an exception that was never
            # retrieved.
            self._next.add_done_callback(retrieve_exception)
        # Shielded: a cancelled caller must not cancel the request that the others share.
        return await asyncio.shield(self._next)

    async def _run(self, before: "asyncio.Task[_Answer] | None") -> _Answer:
        if before is not None:
            await asyncio.wait((before,))
        # Set both before the request: callers that arrive during the request must start one of their own.
        self._running, self._next = self._next, None
        return await self._request()


def retrieve_exception(future: asyncio.Future[Any]) -> None:
    """Retrieve the exception of a future that is done and no longer awaited; otherwise asyncio logs it."""
    if not future.cancelled():
        future.exception()
