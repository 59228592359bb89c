"""Measure how long a running control plane takes from an action until its last event is visible in the views."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from engine.bench import runs
from engine.process import installation
from events import catalogue, decisions, shapes
from projections import query

Act = Callable[[], Awaitable[object]]


async def seconds(act: Act) -> float:
    """Elapsed seconds of an action."""
    start = time.perf_counter()
    await act()
    return time.perf_counter() - start


class Timing:
    """Runs actions and waits until the views have folded their events."""

    def __init__(self, running: installation.Installation) -> None:
        self._running = running

    async def timed(self, count: int, act: Act, of: type[shapes.Event] = decisions.ScheduleDecided) -> float:
        """Seconds from an action until the views have folded ``count`` more events of a type."""
        return await seconds(lambda: self.until(count, act, of))

    async def until(self, count: int, act: Act, of: type[shapes.Event] = decisions.ScheduleDecided) -> None:
        """Run an action, then wait until the views have folded ``count`` more events of a type."""
        views = self._running.views
        expected = self.count(of) + count
        await act()
        async with asyncio.timeout(runs.WAIT_S):
            while self.count(of) < expected:
                await views.wait_folded(views.folded + 1)

    def count(self, of: type[shapes.Event] = decisions.ScheduleDecided) -> int:
        """Number of events of a type that the views have folded."""
        entry = catalogue.BY_STRUCT[of]
        name = f"{entry.topic}.{entry.name}"
        with self._running.views.store.reading() as rows:
            return query.counts(rows).get(name, 0)
