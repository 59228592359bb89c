"""Processes of the ``reballast`` command that tests stop, kill, freeze and start again."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

READY_S: Final = 120.0
STOP_S: Final = 60.0
_POLL_S: Final = 0.02
_LAST_LINES: Final = 25


class Process:
    """A process of the ``reballast`` command; a second launch continues with the data of the first.

    Its output is appended to a file, for failure messages.
    """

    def __init__(self, output: Path, *words: str) -> None:
        self.environment: dict[str, str] = {}
        self._words = words
        self._output = output
        self._from = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The process of the last launch; fails before the first one."""
        assert self._process is not None, f"{self._words[0]} was never started"
        return self._process

    @property
    def pid(self) -> int:
        return self.process.pid

    def launch(self) -> None:
        """Start the process without waiting until it is ready."""
        self._from = self._output.stat().st_size if self._output.exists() else 0
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "engine.cli", *self._words],
                stdout=output,
                stderr=output,
                env=os.environ | self.environment,
            )

    def wait_until(self, is_ready: Callable[[], bool], seconds: float = READY_S) -> None:
        """Wait until ``is_ready`` returns true; fail with the last output if the process ends or time runs out."""
        until_s = time.monotonic() + seconds
        while not is_ready():
            assert self.process.poll() is None, f"{self._words[0]} ended by itself:\n{self.last_lines()}"
            assert time.monotonic() < until_s, f"{self._words[0]} did not get ready:\n{self.last_lines()}"
            time.sleep(_POLL_S)

    def kill(self) -> None:
        """Send SIGKILL and wait for the end."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(STOP_S)

    def stop(self) -> int:
        """Send SIGTERM and return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.ended()

    def ended(self, seconds: float = STOP_S) -> int:
        """Wait for the end of the process and return its exit code."""
        return self.process.wait(seconds)

    def pause(self) -> None:
        """Freeze the process (SIGSTOP); its connections stay open."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Continue a frozen process (SIGCONT)."""
        os.kill(self.pid, signal.SIGCONT)

    def output(self) -> str:
        """Return the output since the last launch."""
        if not self._output.exists():
            return ""
        with self._output.open("rb") as output:
            output.seek(self._from)
            return output.read().decode(errors="replace")

    def last_lines(self) -> str:
        """Return the last lines of the output of all launches."""
        text = self._output.read_text(errors="replace") if self._output.exists() else "never started"
        return "\n".join(text.splitlines()[-_LAST_LINES:])

    def has_published(self, directory: Path) -> bool:
        """Whether the endpoint file of a data directory is that of this process, which then listens."""
        try:
            return json.loads((directory / "endpoint.json").read_bytes())["pid"] == self.pid
        except FileNotFoundError:
            return False


class Server(Process):
    """``reballast up`` on a directory; ``starts_s`` lists the seconds until each start was ready."""

    def __init__(self, directory: Path, *options: str) -> None:
        super().__init__(directory.with_suffix(".output"), "up", "--data", str(directory), *options)
        self.directory = directory
        self.starts_s: list[float] = []

    def start(self) -> None:
        """Start the process and wait until it answers."""
        started_s = time.monotonic()
        self.launch()
        self.wait_until(lambda: self.has_published(self.directory))
        self.starts_s.append(time.monotonic() - started_s)
