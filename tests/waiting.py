"""Wait until a condition holds, or fail."""

import asyncio
import time
from collections.abc import Callable


def until(
    holds: Callable[[], object],
    message: Callable[[], object] = lambda: "the condition does not hold",
    seconds: float = 90.0,
    pause_s: float = 0.05,
) -> None:
    """Poll until ``holds`` returns true; after ``seconds``, fail with the result of ``message``."""
    deadline_s = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline_s, message()
        time.sleep(pause_s)


async def until_async(holds: Callable[[], object], seconds: float = 20.0) -> None:
    """Poll until ``holds`` returns true, while other tasks run; raises TimeoutError after ``seconds``."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110  # the condition is polled as users do
            await asyncio.sleep(0.01)
