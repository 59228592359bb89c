"""SIGTERM and SIGINT: a process shuts down gracefully, and is ended after ``END_SECONDS`` if it has not exited."""

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Generator, Sequence
from typing import Final

from engine.http import server as http_server

END_SECONDS: Final = 15
"""Seconds after a stop signal at which the process is ended even if it has not finished.

Otherwise a process whose brokers do not respond would wait forever.
"""

_NOT_IN_TIME: Final = b"error: did not stop in time and ends now; the next start recovers from the log\n"


@contextlib.contextmanager
def stopping_servers(servers: Sequence[http_server.Server], stopping: asyncio.Event) -> Generator[None]:
    """Stop the servers gracefully at the first SIGTERM or SIGINT, immediately at the second.

    ``stopping`` ends open watches.
    """

    def stop() -> None:
        for server in servers:
            # False at the first signal, True at the second one.
            server.force_exit = server.should_exit
            server.should_exit = True
        stopping.set()

    with on_signals(stop):
        yield


async def until_set(stopping: asyncio.Event, *parts: Coroutine[object, object, None]) -> None:
    """Run parts until one of them ends or the event is set, then cancel the others; raises the error of a part."""
    tasks = [asyncio.ensure_future(part) for part in (*parts, stopping.wait())]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.contextmanager
def on_signals(stop: Callable[[], None]) -> Generator[None]:
    """Call ``stop`` on SIGTERM or SIGINT and force the process to exit after ``END_SECONDS``."""
    loop = asyncio.get_running_loop()
    kinds = (signal.SIGTERM, signal.SIGINT)

    def stop_in_time() -> None:
        stop()
        last = threading.Timer(END_SECONDS, _end)
        last.daemon = True
        last.start()

    for kind in kinds:
        loop.add_signal_handler(kind, stop_in_time)
    try:
        yield
    finally:
        for kind in kinds:
            loop.remove_signal_handler(kind)


def _end() -> None:
    """Exit at once; recovery completes unfinished work at the next start."""
    os.write(sys.stderr.fileno(), _NOT_IN_TIME)
    os._exit(1)
