"""Run long computations on the event loop in portions, so that other tasks run between them."""

import asyncio
import time
from collections.abc import Callable, Generator
from typing import Final, TypeVar, TypeVarTuple

import anyio.to_thread

PORTION_S: Final = 0.01
"""How long in seconds a computation may hold the loop before other tasks run."""

_YIELDS: Final = 8
"""Loop iterations per pause: a broker's response passes through several callbacks, each of which needs an iteration."""

LARGE_BYTES: Final = 16 * 1024
"""Larger bodies, records and objects are processed in a thread, because each field is visited several times."""

_Arguments = TypeVarTuple("_Arguments")
_Result = TypeVar("_Result")


async def in_thread_if_large(
    size: int, compute: Callable[[*_Arguments], _Result], *arguments: *_Arguments
) -> _Result:
    """Call ``compute`` and return its result, in a thread if ``size`` exceeds ``LARGE_BYTES``."""
    if size > LARGE_BYTES:
        return await anyio.to_thread.run_sync(compute, *arguments)
    return compute(*arguments)


class LoopShare:
    """Time that one task has held the event loop since its last pause."""

    def __init__(self) -> None:
        self._since_s = time.monotonic()

    @property
    def is_used(self) -> bool:
        """Whether this task has held the loop for at least ``PORTION_S``."""
        return time.monotonic() - self._since_s >= PORTION_S

    async def pause(self) -> None:
        """Let other tasks run if this one has held the loop for at least ``PORTION_S``."""
        if self.is_used:
            await self.yield_loop()

    async def yield_loop(self) -> None:
        """Let other tasks run."""
        for _ in range(_YIELDS):
            await asyncio.sleep(0)
        self._since_s = time.monotonic()

    async def drain(self, portions: Generator[None, None, _Result]) -> _Result:
        """Run a generator to its end with pauses between its portions; return its result."""
        while True:
            try:
                next(portions)
            except StopIteration as end:
                return end.value  # pyright: ignore[reportAny]  # what a generator returns
            await self.pause()
