"""A server as a user starts it, and commands as a user types them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine.cli import main
from tests import waiting

READY_SECONDS = 120.0
STOP_SECONDS = 60.0
_POLL_SECONDS = 0.2
HELD_UP_SECONDS = 5.0
"""After so long a server that stops ends whatever is still open, so who is not held up is faster."""


@contextmanager
def running(directory: Path, *options: str) -> Generator[subprocess.Popen[bytes]]:
    """Run ``reballast up`` as a process, wait until it is ready, and stop it at the end; see ``output_of``."""
    with _process(directory, "up", *options) as process:
        _await_ready(directory, process)
        yield process


@contextmanager
def scheduling(directory: Path, kubeconfig: Path, name: str) -> Generator[subprocess.Popen[bytes]]:
    """Run ``reballast scheduler`` for the policies with this ``schedulerName``, and stop it at the end."""
    with _process(directory, "scheduler", "--kubeconfig", str(kubeconfig), "--name", name) as process:
        yield process


@contextmanager
def _process(directory: Path, *words: str) -> Generator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "engine.cli", *words, "--data", str(directory)]
    with (
        output_of(directory).open("ab") as output,
        subprocess.Popen(command, stdout=output, stderr=output) as process,
    ):
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(STOP_SECONDS)


def output_of(directory: Path) -> Path:
    """Return the file with the server's output."""
    return directory.with_name(f"{directory.name}.output")


class CommandError(AssertionError):
    """A command ended with another exit code than the expected one."""


class Shell:
    """Runs commands against the server of a directory, and keeps their errors."""

    def __init__(self, directory: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.directory = directory
        self._capture = capture
        self.errors = ""

    def __call__(self, *words: str, code: int = 0) -> str:
        """Run a command and return its output; fail if the exit code is not ``code``."""
        self._capture.readouterr()
        exit_code = main.run([*words, "--data", str(self.directory)])
        printed = self._capture.readouterr()
        self.errors = printed.err
        if exit_code != code:
            raise CommandError(f"{words}: exit code {exit_code}\n{printed.out}{printed.err}")
        return printed.out

    def apply(self, manifests: str, *words: str, code: int = 0) -> str:
        """Apply a text with manifests, from a file."""
        file = self.directory.with_name("applied.yaml")
        file.write_text(manifests, encoding="utf-8")
        return self("apply", "-f", str(file), *words, code=code)

    def until(self, expected: Sequence[str], *words: str, seconds: float = 90.0) -> None:
        """Repeat a command until it prints these lines, ignoring the column AGE."""
        self.until_true(lambda: without_ages(self(*words)) == list(expected), seconds, lambda: self(*words))

    def until_true(
        self,
        is_met: Callable[[], bool],
        seconds: float = 90.0,
        message: Callable[[], str] = lambda: "the condition was not met",
    ) -> None:
        """Poll until ``is_met`` returns true; after a timeout, fail with the result of ``message``.

        A command that fails meanwhile, for example since an object does not exist yet, is repeated.
        """
        waiting.until(lambda: holds(is_met), message, seconds, _POLL_SECONDS)


def without_ages(text: str) -> list[str]:
    """Return the lines of a table with single spaces between columns, without the column AGE."""
    lines = [line.split() for line in text.splitlines()]
    if not lines or "AGE" not in lines[0]:
        return [" ".join(line) for line in lines]
    age_column = lines[0].index("AGE")
    return [" ".join([*line[:age_column], *line[age_column + 1 :]]) for line in lines]


def _await_ready(directory: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not (directory / "endpoint.json").exists():
        assert process.poll() is None, "the server stopped at once"
        assert time.monotonic() < deadline, "the server did not get ready"
        time.sleep(0.02)


def editor(directory: Path, script: str) -> str:
    """Write an editor program that replaces a file's ``text`` by a Python expression."""
    path = directory / "editor.py"
    lines = ["import pathlib, sys", "path = pathlib.Path(sys.argv[1])", "text = path.read_text()"]
    path.write_text("\n".join([*lines, f"path.write_text({script})", ""]))
    return f"{sys.executable} {os.fspath(path)}"


def holds(condition: Callable[[], bool]) -> bool:
    """Whether a condition is met; False if one of its commands fails."""
    try:
        return condition()
    except CommandError:
        return False
