"""Write batching: concurrent writes share one read of current state, one append and one wait for the views.

Batching adds no delay: if fewer than ``GROUPS_MAX`` groups are running, a new one starts at once. Writes that
arrive meanwhile form the next group.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Generic, TypeVar, cast

from msgspec import Struct

_Request = TypeVar("_Request")
_Answer = TypeVar("_Answer")

GROUPS_MAX: Final = 2
"""Groups in flight at once: one is being decided while the other waits for the log and the views."""

MEMBERS_MAX: Final = 256


class _Waiting(Struct, Generic[_Request, _Answer]):
    request: _Request
    answer: asyncio.Future[_Answer]


class WriteBatching(Generic[_Request, _Answer]):
    """Batch requests into groups; ``carry_out`` returns one value or one error for each request, in order."""

    def __init__(
        self, carry_out: Callable[[Sequence[_Request]], Awaitable[Sequence[_Answer | Exception]]]
    ) -> None:
        self._carry_out = carry_out
        self._waiting: list[_Waiting[_Request, _Answer]] = []
        self._running: set[asyncio.Task[None]] = set()

    async def submit(self, request: _Request) -> _Answer:
        """Queue a request and return its answer; raises the error of the request or of its whole group."""
        answer: asyncio.Future[_Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(request, answer))
        if len(self._running) < GROUPS_MAX:
            task = asyncio.create_task(self._run())
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        return await answer

    async def _run(self) -> None:
        # Yield once, so that callers of the same event-loop turn join this group.
        await asyncio.sleep(0)
        try:
            await self._run_groups()
        finally:
            # Deregister here, not in the done callback: a caller may queue again before that callback runs,
            # and would see this task as running although it takes no more requests.
            self._running.discard(cast("asyncio.Task[None]", asyncio.current_task()))

    async def _run_groups(self) -> None:
        while self._waiting:
            group, self._waiting = self._waiting[:MEMBERS_MAX], self._waiting[MEMBERS_MAX:]
            try:
                answers = await self._carry_out([waiting.request for waiting in group])
            except Exception as error:  # noqa: BLE001  # an error of the group fails all its members
                answers = [error] * len(group)
            for waiting, answer in zip(group, answers, strict=True):
                # The future is cancelled if its caller gave up waiting.
                if waiting.answer.done():
                    continue
                if isinstance(answer, Exception):
                    waiting.answer.set_exception(answer)
                else:
                    waiting.answer.set_result(answer)
