"""Wait for the end of a log to move, for any number of readers in one event loop."""

import asyncio


class EndSignal:
    """The newest number, and a future for all that wait for a higher one."""

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
            await self.moved()

    async def moved(self) -> None:
        """Return at the next call of ``move``, even if the number stays the same."""
        if self._moved is None:
            self._moved = asyncio.get_running_loop().create_future()
        # Shielded: a reader that is cancelled must not cancel the future that the others share.
        await asyncio.shield(self._moved)
