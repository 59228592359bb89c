"""A server process that can be killed and restarted on the same data."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

READY_SECONDS: Final = 120.0
STOP_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.01


class Server:
    """``reballast up`` on a directory; ``starts_s`` lists the seconds until each start was ready."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.starts_s: list[float] = []
        self._said = directory.with_suffix(".said")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id; fails before the first launch."""
        assert self._process is not None
        return self._process.pid

    def launch(self) -> subprocess.Popen[bytes]:
        """Start the process without waiting until it is ready."""
        command = [sys.executable, "-m", "engine.cli", "up", "--data", str(self.directory)]
        with self._said.open("wb") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=output)
        return self._process

    def start(self) -> None:
        """Start the process and wait until it answers."""
        started_s = time.monotonic()
        process = self.launch()
        while not self._is_published(process.pid):
            assert process.poll() is None, (
                f"ended with {process.returncode}: {self._said.read_text()[-2_000:]}"
            )
            assert time.monotonic() - started_s < READY_SECONDS, "the server did not get ready"
            time.sleep(_POLL_SECONDS)
        self.starts_s.append(time.monotonic() - started_s)

    def kill(self) -> None:
        """Send SIGKILL and wait for the end."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(STOP_SECONDS)

    def stop(self) -> int:
        """Send SIGTERM and return the exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(STOP_SECONDS)

    def _is_published(self, pid: int) -> bool:
        try:
            return json.loads((self.directory / "endpoint.json").read_bytes())["pid"] == pid
        except FileNotFoundError:
            return False
