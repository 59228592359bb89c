"""The private server of the tour: stopped and removed, even if it ignores SIGTERM."""

import subprocess
import sys
from pathlib import Path

import pytest

from engine.cli import private_server, server_location, tour

STUBBORN = """
import pathlib, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path(sys.argv[1]).touch()
time.sleep(60)
"""


def test_hanging_tour_server_is_killed_and_its_directory_removed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    directory = tmp_path / "private"
    directory.mkdir()
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def stubborn(*_args: object, **_options: object) -> subprocess.Popen[bytes]:
        # A real process in place of the server; it is ready at once and ignores SIGTERM.
        endpoint = directory / server_location.FILE
        started.append(popen([sys.executable, "-c", STUBBORN, str(endpoint)]))
        return started[0]

    monkeypatch.setattr(private_server.subprocess, "Popen", stubborn)
    monkeypatch.setattr(private_server, "_STOP_SECONDS", 0.1)
    with tour.running_server(directory, is_kept=False):
        pass
    assert started[0].poll() is not None
    assert not directory.exists()
