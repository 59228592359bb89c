"""Workers, replicas and their views as processes of this machine; what they say is kept for a failing test."""

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
STOP_S: Final = 20.0
SESSION_MS: Final = 1_000
"""How long a worker of a test may be silent; brokers for tests allow so little."""

_POLL_S: Final = 0.05
_LAST_LINES: Final = 25
_RECOVERED: Final = "shards recovered"
_VIEWS: Final = "engine.views"


class Process:
    """One of the parts of Reballast, started by its command; started again, it goes on with what it left."""

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
        """The process's id; there is one once it was launched."""
        assert self._process is not None, f"{self.name} was never started"
        return self._process.pid

    def launch(self) -> None:
        """Starts the process; it is not ready yet."""
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
        """Waits until it is so; fails with the end of the output where that takes too long."""
        until_s = time.monotonic() + seconds
        while not is_ready():
            assert self._process is not None
            assert self._process.poll() is None, f"{self.name} ended by itself:\n{self.last_lines()}"
            assert time.monotonic() < until_s, f"{self.name} did not get ready:\n{self.last_lines()}"
            time.sleep(_POLL_S)

    def kill(self) -> None:
        """Kills the process as ``kill -9`` does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(STOP_S)

    def stop(self) -> int:
        """Stops the process in order; gives its exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self.ended()

    def ended(self, seconds: float = STOP_S) -> int:
        """Waits for its end; gives its exit code."""
        assert self._process is not None
        return self._process.wait(seconds)

    def pause(self) -> None:
        """Freezes the process; its connections stay open."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Lets a frozen process go on."""
        os.kill(self.pid, signal.SIGCONT)

    def said(self) -> str:
        """All that it has said since it was launched last; nothing where it never was."""
        if not self._output.exists():
            return ""
        with self._output.open("rb") as output:
            output.seek(self._from)
            return output.read().decode(errors="replace")

    def last_lines(self) -> str:
        """The end of what it said."""
        text = self._output.read_text(errors="replace") if self._output.exists() else "never started"
        return "\n".join(text.splitlines()[-_LAST_LINES:])


class Worker(Process):
    """``reballast worker``."""

    def __init__(self, name: str, log: str, directory: Path, *options: str) -> None:
        super().__init__(name, log, directory, "worker", *options)

    def has_shards(self) -> bool:
        """Whether it has taken shards over since it was launched."""
        return _RECOVERED in self.said()


class Api(Process):
    """``reballast api``, with simulated members or without; its data are in ``data``."""

    def __init__(self, name: str, log: str, directory: Path, *options: str) -> None:
        self.data = directory / name / "data"
        super().__init__(name, log, directory, "api", "--data", str(self.data), *options)

    def answers(self) -> bool:
        """Whether it listens."""
        try:
            return json.loads((self.data / "endpoint.json").read_bytes())["pid"] == self.pid
        except FileNotFoundError:
            return False

    def kill_views(self) -> bool:
        """Kills the child that folds the views; False where there is none at the moment."""
        for child in _children(self.pid):
            if _VIEWS in child[1]:
                os.kill(child[0], signal.SIGKILL)
                return True
        return False


def _children(parent: int) -> list[tuple[int, str]]:
    """Ids and command lines of a process's children."""
    listed = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    found: list[tuple[int, str]] = []
    for each in listed:
        try:
            words = Path(f"/proc/{each}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except FileNotFoundError:
            continue
        found.append((int(each), words))
    return found
