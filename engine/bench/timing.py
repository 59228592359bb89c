"""A running control plane that is measured: from an act to the last event that follows, visible in the views."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from engine import installation
from events import catalogue, decisions, shapes

_SETTLE_S: Final = 600

Act = Callable[[], Awaitable[object]]


class Timing:
    """Acts, waits, and tells how long it took."""

    def __init__(self, running: installation.Installation) -> None:
        self._running = running

    async def timed(self, count: int, act: Act, of: type[shapes.Event] = decisions.ScheduleDecided) -> float:
        """Seconds from an act until the views have counted so many more events of a type."""
        start = time.perf_counter()
        await self.until(count, act, of)
        return time.perf_counter() - start

    async def until(self, count: int, act: Act, of: type[shapes.Event] = decisions.ScheduleDecided) -> None:
        """Acts, then waits until the views have counted so many more events of a type."""
        views = self._running.views
        wanted = self.count(of) + count
        await act()
        async with asyncio.timeout(_SETTLE_S):
            while self.count(of) < wanted:
                await views.wait_folded(views.folded + 1)

    def count(self, of: type[shapes.Event] = decisions.ScheduleDecided) -> int:
        """How many events of a type the views have folded."""
        entry = catalogue.BY_STRUCT[of]
        name = f"{entry.topic}.{entry.name}"
        with self._running.views.store.reading() as rows:
            found = rows.select("SELECT count FROM counts WHERE name = ?", (name,))
        return int(str(found[0][0])) if found else 0
