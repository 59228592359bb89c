"""Event loop lag: a watchdog sleeps for a short time repeatedly and measures how late it wakes up.

A task that blocks the loop (a decision, a request, a recovery) delays all other tasks and signals; users notice
this delay. The delay also grows with the load of the machine. The processor time of the loop's thread does not
grow with that load, so it shows whether a task blocked the loop.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Gauge, Histogram, Metric
from prometheus_client.registry import Collector

EVERY_S: Final = 0.025
"""Sleep time in seconds. Shorter delays may be missed; a longer one may be measured up to this much too short."""

BUCKETS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class LoopLag(Collector):
    """Delays of one event loop since its watchdog started."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._lag = Histogram(
            "reballast_event_loop_lag_seconds",
            "How late the event loop resumed a task that slept for 25 ms.",
            buckets=BUCKETS_S,
            registry=self._registry,
        )
        self._longest = Gauge(
            "reballast_event_loop_lag_max_seconds",
            "The longest of these delays since the process started.",
            registry=self._registry,
        )
        self._held = Gauge(
            "reballast_event_loop_held_max_seconds",
            "Maximum CPU time of the event loop's thread between two of these measurements (25 ms and a delay).",
            registry=self._registry,
        )
        self.longest_s = 0.0
        self.held_s = 0.0

    def collect(self) -> Iterable[Metric]:
        return self._registry.collect()

    async def run(self) -> None:
        """Measure until cancelled."""
        while True:
            due_s, used_s = time.monotonic() + EVERY_S, time.thread_time()
            await asyncio.sleep(EVERY_S)
            lag_s, held_s = max(time.monotonic() - due_s, 0.0), time.thread_time() - used_s
            self._lag.observe(lag_s)
            if lag_s > self.longest_s:
                self.longest_s = lag_s
                self._longest.set(lag_s)
            if held_s > self.held_s:
                self.held_s = held_s
                self._held.set(held_s)


@contextlib.asynccontextmanager
async def measured() -> AsyncGenerator[LoopLag]:
    """Measure the running event loop until the ``async with`` block ends."""
    lag = LoopLag()
    watchdog = asyncio.create_task(lag.run(), name="event loop lag")
    try:
        yield lag
    finally:
        watchdog.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watchdog
