"""Servers that cannot start, and shutdown: with an open feed, and of a process whose tasks do not end."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import httpx
import pytest

from engine.identity import server_token
from tests import speed
from tests.cli.servers import HELD_UP_SECONDS, STOP_SECONDS, running

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


@pytest.mark.slow
def test_unreadable_token_is_not_replaced_but_reported(tmp_path: Path) -> None:
    token = tmp_path / server_token.FILE
    token.mkdir()  # also root, who may read any file, cannot read this one
    done = subprocess.run(
        [sys.executable, "-m", "engine.cli", "up", "--data", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    token.rmdir()  # the search for leaked secrets reads all tokens
    assert done.returncode == 1
    assert f"error: {token}: Is a directory" in done.stderr
    assert "Traceback" not in done.stderr


def test_open_feed_does_not_delay_shutdown(tmp_path: Path) -> None:
    with running(tmp_path) as process:
        endpoint = json.loads((tmp_path / "endpoint.json").read_bytes())
        headers = {"authorization": f"Bearer {endpoint['token']}"}
        with httpx.stream(
            "GET", f"{endpoint['url']}/api/v1/live?after=0", headers=headers, trust_env=False
        ) as feed:
            lines = feed.iter_lines()
            first = next(line for line in lines if line.startswith("data:"))
            process.terminate()
            told_s = time.monotonic()
            *_, last = (line for line in lines if line.startswith("data:"))
        code = process.wait(STOP_SECONDS)
        took_s = time.monotonic() - told_s

    assert '"number":1' in first
    assert json.loads(last.removeprefix("data:")).keys() == {"after"}
    assert code == 0
    assert took_s < HELD_UP_SECONDS * speed.slowness()
