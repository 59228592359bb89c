"""Shutdown of a process whose tasks do not end."""

import subprocess
import sys
from typing import Final

import pytest

_WAITS_FOR_EVER: Final = """
import asyncio, os, signal
from engine.process import control_plane, stop_signals

stop_signals.END_SECONDS = 0.2

async def wait():
    with stop_signals.on_signals(lambda: None):
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.Event().wait()

control_plane.run(wait())
"""


@pytest.mark.slow
def test_process_with_a_hanging_task_is_ended_with_a_message() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WAITS_FOR_EVER], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "did not stop in time" in done.stderr
