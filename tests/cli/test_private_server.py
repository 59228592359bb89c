"""A server that a command starts for itself: its failures name what it logged last."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.cli import failures, private_server
from engine.cli.client import Client


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[subprocess.Popen[bytes]]]:
    """The processes that the test starts."""
    processes: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def recorded(*args: object, **options: object) -> subprocess.Popen[bytes]:
        processes.append(popen(*args, **options))  # pyright: ignore[reportCallIssue, reportArgumentType]
        return processes[-1]

    monkeypatch.setattr(private_server.subprocess, "Popen", recorded)
    yield processes
    assert all(process.poll() is not None for process in processes)


def test_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    no_directory = tmp_path / "file"
    no_directory.touch()
    with pytest.raises(failures.Failure) as caught, private_server.running(no_directory):
        pass
    assert "it ended with exit code 1" in caught.value.message
    assert "Not a directory" in caught.value.message


def test_server_that_dies_says_so(started: list[subprocess.Popen[bytes]], tmp_path: Path) -> None:
    directory = tmp_path / "data"

    def ask_a_dead_server() -> None:
        with private_server.running(directory, "--no-members"), Client(directory) as client:
            started[0].kill()
            started[0].wait()
            client.get("status", object)

    with pytest.raises(failures.Failure) as caught:
        ask_a_dead_server()
    lines = caught.value.message.splitlines()
    assert "does not answer" in lines[0]
    assert lines[1] == "  it ended with exit code -9"
    assert "[info" in lines[-1]  # a line of its log
    assert "report these lines" in caught.value.remedy


def test_failure_of_the_command_itself_is_not_changed(tmp_path: Path) -> None:
    with (
        pytest.raises(failures.Failure, match=r"^no such cluster$"),
        private_server.running(tmp_path / "data", "--no-members"),
    ):
        raise failures.Failure("no such cluster")
