"""Workers, API replicas and their views as local processes; their output is kept for failure messages."""

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
SESSION_MS: Final = 2_000
"""Session timeout of the workers' consumer group: short, but longer than the stalls of a slow machine."""

_POLL_S: Final = 0.05
_LAST_LINES: Final = 25
_RECOVERED: Final = "shards recovered"
_VIEWS: Final = "engine.process.views"


class Process:
    """A process of the ``reballast`` command; a second launch continues with the data of the first."""

    def __init__(self, name: str, log: str, directory: Path, *words: str) -> None:
        self.name = name
        self.directory = directory / name
        self.directory.mkdir()
        self.environment: dict[str, str] = {}
        self._words = (*words, "--log", log)
        self._output = self.directory / "output"
        self._from = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id; fails before the first launch."""
        assert self._process is not None, f"{self.name} was never started"
        return self._process.pid

    def launch(self) -> None:
        """Start the process without waiting until it is ready."""
        environment = os.environ | {"REBALLAST_SESSION_MS": str(SESSION_MS)} | self.environment
        self._from = self._output.stat().st_size if self._output.exists() else 0
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "engine.cli", *self._words],
                stdout=output,
                stderr=output,
                env=environment,
            )

    def wait_until(self, is_ready: Callable[[], bool], seconds: float = READY_S) -> None:
        """Wait until ``is_ready`` returns true; fail with the last output if the process ends or time runs out."""
        until_s = time.monotonic() + seconds
        while not is_ready():
            assert self._process is not None
            assert self._process.poll() is None, f"{self.name} ended by itself:\n{self.last_lines()}"
            assert time.monotonic() < until_s, f"{self.name} did not get ready:\n{self.last_lines()}"
            time.sleep(_POLL_S)

    def kill(self) -> None:
        """Send SIGKILL and wait for the end."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(STOP_S)

    def stop(self) -> int:
        """Send SIGTERM and return the exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self.ended()

    def ended(self, seconds: float = STOP_S) -> int:
        """Wait for the end of the process and return its exit code."""
        assert self._process is not None
        return self._process.wait(seconds)

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


class Worker(Process):
    """A ``reballast worker`` process."""

    def __init__(self, name: str, log: str, directory: Path, *options: str) -> None:
        super().__init__(name, log, directory, "worker", *options)

    def has_shards(self) -> bool:
        """Whether the worker has taken over shards since its last launch."""
        return _RECOVERED in self.output()


class Api(Process):
    """A ``reballast api`` process, optionally with simulated members; ``data`` is its data directory."""

    def __init__(self, name: str, log: str, directory: Path, *options: str) -> None:
        self.data = directory / name / "data"
        super().__init__(name, log, directory, "api", "--data", str(self.data), *options)

    def answers(self) -> bool:
        """Whether the process listens: its endpoint file contains its process id."""
        try:
            return json.loads((self.data / "endpoint.json").read_bytes())["pid"] == self.pid
        except FileNotFoundError:
            return False

    def kill_views(self) -> bool:
        """Kill the child process that folds the views; return False if there is none now."""
        for child in _children(self.pid):
            if _VIEWS in child[1]:
                os.kill(child[0], signal.SIGKILL)
                return True
        return False


def _children(parent: int) -> list[tuple[int, str]]:
    """Return process id and command line of each child process."""
    listed = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    children: list[tuple[int, str]] = []
    for pid in listed:
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except FileNotFoundError:
            continue
        children.append((int(pid), words))
    return children
