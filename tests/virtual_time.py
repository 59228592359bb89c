"""An event loop whose clock jumps to the next timer whenever all tasks wait, so that waiting takes no time.

Tests with the mark ``virtual_time`` run in it. A sleep of a minute ends at once, but not before everything is done that
was due earlier. ``time.monotonic`` shows the same clock. It does not jump while a thread computes, whose result may
come before the next timer.
"""

import asyncio
import selectors
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextvars import Context
from typing import Any, Final
from unittest import mock

import anyio.to_thread
import pytest

_MARK: Final = "virtual_time"
_DELIVERY_S: Final = 0.001
"""Real time for the kernel to deliver what one socket of this process sent to another one."""
_JUMP_MAX_S: Final = 0.1
"""Virtual time in which nothing may arrive at a socket: a busy kernel that delivers late causes no timeout."""

_real_s = time.monotonic


class _Selector(selectors.DefaultSelector):
    """Waits for sockets and threads in real time, and for timers by a jump of the clock."""

    def __init__(self) -> None:
        super().__init__()
        self.jumped_s = 0.0
        self.threads = 0
        """The number of calls in threads that have not returned."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready; if nothing is, let ``timeout`` seconds pass, or a part of them."""
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        if timeout is None or self.threads:
            return super().select(timeout)
        # One socket is that by which threads wake the loop.
        if len(self.get_map()) > 1:
            ready, timeout = super().select(min(timeout, _DELIVERY_S)), min(timeout, _JUMP_MAX_S)
        if not ready:
            self.jumped_s += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """Counts the calls in threads that it starts; a thread that it does not know does not stop the clock."""

    def __init__(self) -> None:
        self._timers = _Selector()
        super().__init__(self._timers)

    def time(self) -> float:
        return _real_s() + self._timers.jumped_s

    def run_forever(self) -> None:
        """Run until stopped; meanwhile this is the clock of the process."""
        in_thread = anyio.to_thread.run_sync

        async def run_sync(*args: Any, **more: Any) -> object:  # noqa: ANN401  # as anyio takes them
            self._timers.threads += 1
            try:
                return await in_thread(*args, **more)
            finally:
                self._timers.threads -= 1

        with (
            mock.patch.object(time, "monotonic", self.time),
            mock.patch.object(anyio.to_thread, "run_sync", run_sync),
        ):
            super().run_forever()

    async def shutdown_default_executor(self, *_timeout: float | None) -> None:
        """Join the threads without Python's limit (since 3.12), which virtual time reaches at once."""
        await super().shutdown_default_executor()

    def run_in_executor(self, executor: Executor | None, func: Callable[..., Any], *args: Any) -> Any:  # noqa: ANN401
        self._timers.threads += 1
        call = super().run_in_executor(executor, func, *args)
        call.add_done_callback(self._returned, context=Context())
        return call

    def _returned(self, _call: object) -> None:
        self._timers.threads -= 1


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Choose the loop of a test."""
    return {_MARK: VirtualLoop} if item.get_closest_marker(_MARK) else {"real_time": asyncio.new_event_loop}
