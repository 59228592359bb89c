"""Measure how long a running control plane takes from an action until its last event is visible in the views."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from engine.bench import runs
from engine.process import installation
from events import decisions, shapes
from projections import query

Act = Callable[[], Awaitable[object]]
_Client = TypeVar("_Client")


async def seconds(act: Act) -> float:
    """Elapsed seconds of an action."""
    start = time.perf_counter()
    await act()
    return time.perf_counter() - start


async def divide(
    clients: Iterable[_Client], count: int, act: Callable[[_Client, int], Awaitable[object]]
) -> None:
    """Call ``act`` with the numbers below ``count``, each with a client that is free: one call at a time per client."""
    numbers = iter(range(count))

    async def work(client: _Client) -> None:
        for number in numbers:
            await act(client, number)

    async with asyncio.TaskGroup() as tasks:
        for client in clients:
            tasks.create_task(work(client))


class Timing:
    """Runs actions and waits until the views have folded their events."""

    def __init__(self, running: installation.Installation) -> None:
        self._running = running

    async def timed(self, count: int, act: Act, of: type[shapes.Event] = decisions.ScheduleDecided) -> float:
        """Seconds from an action until the views have folded ``count`` more events of a type."""
        views = self._running.views
        expected = self.count(of) + count
        start = time.perf_counter()
        await act()
        async with asyncio.timeout(runs.WAIT_S):
            while self.count(of) < expected:
                await views.wait_folded(views.folded + 1)
        return time.perf_counter() - start

    def count(self, of: type[shapes.Event] = decisions.ScheduleDecided) -> int:
        """Number of events of a type that the views have folded."""
        entry = of.event_type
        name = f"{entry.topic}.{entry.name}"
        with self._running.views.store.reading() as rows:
            return query.counts(rows).get(name, 0)
