"""Waiting for the end of a log to move, for any number of readers in one event loop."""

import asyncio


class EndSignal:
    """The newest number, and a future for all who wait for a higher one."""

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self._moved: asyncio.Future[None] | None = None

    def move(self, number: int) -> None:
        """Says that the log ends at ``number`` now; wakes all who wait."""
        self.number = number
        moved, self._moved = self._moved, None
        if moved is not None and not moved.done():
            moved.set_result(None)

    async def wait(self, after: int) -> None:
        """Returns when the number is above ``after``."""
        while self.number <= after:
            await self.moved()

    async def moved(self) -> None:
        """Returns when ``move`` is called next, whatever it says."""
        if self._moved is None:
            self._moved = asyncio.get_running_loop().create_future()
        # Shielded: one reader that gives up must not cancel the wait of the others.
        await asyncio.shield(self._moved)
