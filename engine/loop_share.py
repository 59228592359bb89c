"""Long computations on the event loop, in portions: whatever else runs there goes on between them."""

import asyncio
import time
from collections.abc import Callable, Generator
from typing import Final, TypeVar, TypeVarTuple

import anyio.to_thread

PORTION_S: Final = 0.01
"""How long a computation holds the loop before the others have their turn."""

_YIELDS: Final = 8
"""An answer of a broker goes through several callbacks, each of which takes a turn of the loop."""

LARGE_BYTES: Final = 16 * 1024
"""Larger bodies, records and objects are worked on in a thread: each of their fields is looked at several times."""

_Arguments = TypeVarTuple("_Arguments")
_Result = TypeVar("_Result")


async def apart(size: int, compute: Callable[[*_Arguments], _Result], *arguments: *_Arguments) -> _Result:
    """What ``compute`` returns or raises; it runs in a thread where it works on more than ``LARGE_BYTES``."""
    if size > LARGE_BYTES:
        return await anyio.to_thread.run_sync(compute, *arguments)
    return compute(*arguments)


class LoopShare:
    """One task's share of the event loop."""

    def __init__(self) -> None:
        self._since_s = time.monotonic()

    async def pause(self) -> None:
        """Lets others run where the last pause was a portion ago."""
        if time.monotonic() - self._since_s >= PORTION_S:
            await self.yield_loop()

    async def yield_loop(self) -> None:
        """Lets others run."""
        for _ in range(_YIELDS):
            await asyncio.sleep(0)
        self._since_s = time.monotonic()

    async def drain(self, portions: Generator[None, None, _Result]) -> _Result:
        """Computes portion by portion; gives the result."""
        while True:
            try:
                next(portions)
            except StopIteration as end:
                return end.value  # pyright: ignore[reportAny]  # what a generator returns
            await self.pause()
