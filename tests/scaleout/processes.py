"""Workers, API replicas and their views as local processes."""

import os
import signal
from pathlib import Path
from typing import Final

from tests import processes

SESSION_MS: Final = 2_000
"""Session timeout of the workers' consumer group: short, but longer than the stalls of a slow machine."""

_RECOVERED: Final = "shards recovered"
_VIEWS: Final = "engine.process.views"


class Process(processes.Process):
    """A process on a log on Kafka, with a directory of its own."""

    def __init__(self, name: str, log: str, directory: Path, *words: str) -> None:
        self.name = name
        self.directory = directory / name
        self.directory.mkdir()
        super().__init__(self.directory / "output", *words, "--log", log)
        self.environment = {"REBALLAST_SESSION_MS": str(SESSION_MS)}


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
        return self.has_published(self.data)

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
