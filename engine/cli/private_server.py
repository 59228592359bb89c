"""A server that a command starts for itself and stops at its end."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import IO, Final, NoReturn

from engine.cli import failures, output, server_location

_START_SECONDS: Final = 20.0
_STOP_SECONDS: Final = 15.0
_POLL_SECONDS: Final = 0.02
_LINES_MAX: Final = 3
"""Number of the last lines of the server's log that a message contains."""

_VARIABLES: Final = "REBALLAST_"
"""Prefix of environment variables that the server does not inherit, such as the address of another log."""


@contextlib.contextmanager
def running(directory: Path, *words: str) -> Generator[None]:
    """Run ``reballast up`` on a directory until the block ends.

    Raises Failure if the server does not start or does not answer; the message contains the state of the process and
    the last lines of its log. A command that gets SIGTERM ends the server too.
    """
    # The server's standard output is not kept: it contains the address for the browser, a secret.
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(  # noqa: S603  # our own program, run by the same interpreter
            [sys.executable, "-m", "engine.cli", "up", "--data", str(directory), *words],
            stdout=subprocess.DEVNULL,
            stderr=log,
            env={name: text for name, text in os.environ.items() if not name.startswith(_VARIABLES)},
        )
        # Python lets only the main thread handle signals.
        is_main = threading.current_thread() is threading.main_thread()
        before = signal.signal(signal.SIGTERM, _exit) if is_main else None
        try:
            output.progress("starting a server")
            _wait_for_start(process, directory, log)
            output.progress("")
            yield
        except failures.Failure as failure:
            if failure.code != failures.NO_SERVER:
                raise
            raise _failed(failure.message, process, log) from None
        finally:
            if before is not None:
                signal.signal(signal.SIGTERM, before)
            _stop(process)


def _wait_for_start(process: subprocess.Popen[bytes], directory: Path, log: IO[bytes]) -> None:
    started_s = time.monotonic()
    while not (directory / server_location.FILE).exists():
        if process.poll() is not None or time.monotonic() - started_s > _START_SECONDS:
            raise _failed(f"no server started in {directory}", process, log)
        time.sleep(_POLL_SECONDS)


def _failed(message: str, process: subprocess.Popen[bytes], log: IO[bytes]) -> failures.Failure:
    """The Failure for a server: the state of its process and the last lines of its log."""
    code = process.poll()
    # pread: the server shares the offset of the file, so that a seek would make it overwrite its lines.
    logged = os.pread(log.fileno(), os.fstat(log.fileno()).st_size, 0).decode(errors="replace")
    lines = [line.strip() for line in logged.splitlines() if line.strip()]
    parts = [
        message,
        "this command started it, and it is still running"
        if code is None
        else f"it ended with exit code {code}",
        *(lines[-_LINES_MAX:] or ["it logged nothing"]),
    ]
    return failures.Failure(
        "\n  ".join(parts), "run the command again; if it fails again, report these lines"
    )


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
