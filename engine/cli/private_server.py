"""A server that a command starts for itself and stops at its end."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import Final, NoReturn

from engine.cli import failures, next_commands, output, server_location

_START_SECONDS: Final = 20.0
_STOP_SECONDS: Final = 15.0
_POLL_SECONDS: Final = 0.02
_VARIABLES: Final = "REBALLAST_"
"""Prefix of environment variables that the server does not inherit, such as the address of another log."""


@contextlib.contextmanager
def running(directory: Path, *words: str) -> Generator[None]:
    """Run ``reballast up`` on a directory until the block ends; raises Failure if it does not start.

    A command that gets SIGTERM ends the server too.
    """
    started_s = time.monotonic()
    process = subprocess.Popen(  # noqa: S603  # our own program, run by the same interpreter
        [sys.executable, "-m", "engine.cli", "up", "--data", str(directory), *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={name: text for name, text in os.environ.items() if not name.startswith(_VARIABLES)},
    )
    # Python lets only the main thread handle signals.
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, _exit) if is_main else None
    try:
        output.progress("starting a server")
        while not (directory / server_location.FILE).exists():
            if process.poll() is not None or time.monotonic() - started_s > _START_SECONDS:
                raise failures.Failure(
                    f"no server started in {directory}",
                    f"see why: {next_commands.up(directory)}",
                )
            time.sleep(_POLL_SECONDS)
        output.progress("")
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)
        _stop(process)


def _exit(number: int, _frame: object) -> NoReturn:
    raise SystemExit(128 + number)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stop the server; kill it if it does not end in time."""
    process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
