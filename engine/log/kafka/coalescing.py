"""One question for all who wait for its answer."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

_Answer = TypeVar("_Answer")


class Coalesced(Generic[_Answer]):
    """Asks a question once for all callers that come while the one before it is on its way.

    The answer is never older than the call: a question that was asked before the call does not answer it.
    """

    def __init__(self, ask: Callable[[], Awaitable[_Answer]]) -> None:
        self._ask = ask
        self._asking: asyncio.Task[_Answer] | None = None
        self._next: asyncio.Task[_Answer] | None = None

    async def answer(self) -> _Answer:
        """The answer to a question that is asked after this call; raises what asking raises."""
        if self._next is None:
            self._next = asyncio.create_task(self._run(self._asking))
            # All callers may have given up before it fails; asyncio would log an exception that nobody retrieves.
            self._next.add_done_callback(_retrieve)
        # Shielded: a caller that gives up must not end the question of the others.
        return await asyncio.shield(self._next)

    async def _run(self, before: "asyncio.Task[_Answer] | None") -> _Answer:
        if before is not None:
            await asyncio.wait((before,))
        self._asking, self._next = self._next, None
        return await self._ask()


def _retrieve(task: asyncio.Task[_Answer]) -> None:
    if not task.cancelled():
        task.exception()
