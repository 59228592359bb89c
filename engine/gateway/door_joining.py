"""Writes that come at the same time go together: one look at what stands, one append, one wait for the views.

Nobody waits for others to come: who finds the door free goes in at once, and those who come meanwhile go in together
as soon as it is free again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Generic, TypeVar, cast

from msgspec import Struct

_Ask = TypeVar("_Ask")
_Answer = TypeVar("_Answer")

GROUPS_MAX: Final = 2
"""Groups on their way at once: one is decided upon while the other waits for the log and the views."""

MEMBERS_MAX: Final = 256


class _Waiting(Struct, Generic[_Ask, _Answer]):
    ask: _Ask
    answer: asyncio.Future[_Answer]


class Joining(Generic[_Ask, _Answer]):
    """Hands asks on in groups; ``carry_out`` answers each of a group with a value or an error."""

    def __init__(
        self, carry_out: Callable[[Sequence[_Ask]], Awaitable[Sequence[_Answer | Exception]]]
    ) -> None:
        self._carry_out = carry_out
        self._waiting: list[_Waiting[_Ask, _Answer]] = []
        self._running: set[asyncio.Task[None]] = set()

    async def join(self, ask: _Ask) -> _Answer:
        """The answer to an ask; raises the error that it was answered with, or that its group ended with."""
        answer: asyncio.Future[_Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(ask, answer))
        if len(self._running) < GROUPS_MAX:
            task = asyncio.create_task(self._run())
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        return await answer

    async def _run(self) -> None:
        # Those who come within the same turn of the loop are not kept apart.
        await asyncio.sleep(0)
        try:
            await self._go_through()
        finally:
            # At once: who was answered last may come again before anybody is told that this task is done.
            self._running.discard(cast("asyncio.Task[None]", asyncio.current_task()))

    async def _go_through(self) -> None:
        while self._waiting:
            group, self._waiting = self._waiting[:MEMBERS_MAX], self._waiting[MEMBERS_MAX:]
            try:
                answers = await self._carry_out([each.ask for each in group])
            except Exception as error:  # noqa: BLE001  # whatever it is, all of them are told
                answers = [error] * len(group)
            for each, answer in zip(group, answers, strict=True):
                # Who gave up waiting has cancelled the future.
                if each.answer.done():
                    continue
                if isinstance(answer, Exception):
                    each.answer.set_exception(answer)
                else:
                    each.answer.set_result(answer)
