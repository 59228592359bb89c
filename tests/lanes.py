"""How a run with several processes (``pytest -n 3``) divides the tests.

Most tests wait for servers, so several processes need half the time of one, also on two processors. They would
need more if each of them started the servers that the tests of a folder share: such a folder is run by one process.

Of three processes, one runs only the tests that mostly wait for clocks: a third one with others would leave tests of
timing less air on two processors.
"""

from typing import Final

import pytest
from xdist.remote import Producer  # pyright: ignore[reportMissingTypeStubs]
from xdist.scheduler.loadscope import LoadScopeScheduling  # pyright: ignore[reportMissingTypeStubs]
from xdist.workermanage import WorkerController  # pyright: ignore[reportMissingTypeStubs]

LONGEST_FIRST: Final = ("scaleout", "kubectl", "cli", "scheduler", "observer", "agent", "plans")
"""Folders that last longer than a minute; no process is left with one of them at the end."""

_SHARING: Final = frozenset({"scaleout", "kubectl", "agent", "seeds", "clients", "tidy"})
"""Folders whose tests share servers, or the parsed sources; elsewhere a module is the most that does."""
_WAITING: Final = frozenset(
    {
        "tests/agent",
        "tests/cli/test_failover.py",
        "tests/kubectl/test_cron_jobs.py",
        "tests/kubectl/test_default_tolerations.py",
        "tests/observer",
        "tests/scheduler",
    }
)
"""Folders and modules that wait for clocks: a minute's partition, a condition that counts after 30 s, a backoff."""
_PROCESSES: Final = 3
_ON_KAFKA: Final = "control_plane_on_kafka"


def position(folder: str) -> int:
    """Return the sort key of a folder: its index in ``LONGEST_FIRST``; other folders sort behind these."""
    return LONGEST_FIRST.index(folder) if folder in LONGEST_FIRST else len(LONGEST_FIRST)


def unit(test: str) -> str:
    """Return what one process runs as a whole: the folder or the module of a test."""
    module = test.partition("::")[0]
    folder = module.rpartition("/")[0]
    if module in _WAITING or folder.rpartition("/")[2] not in _SHARING:
        return module
    return f"{folder} on Kafka" if _ON_KAFKA in test else folder


def is_waiting(scope: str) -> bool:
    """Whether the tests of a unit mostly wait for clocks."""
    return scope in _WAITING or scope.rpartition("/")[0] in _WAITING


class Scheduling(LoadScopeScheduling):
    """Hands whole units to the processes, in the order of the collection."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        super().__init__(config, log)
        # Ours is by duration, not by number of tests.
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return unit(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        if len(self.nodes) == _PROCESSES:
            waits = self.nodes.index(node) == _PROCESSES - 1
            scope = next((scope for scope in self.workqueue if is_waiting(scope) == waits), None)
            if scope is not None:
                self.workqueue.move_to_end(scope, last=False)
        super()._assign_work_unit(node)

    def _reschedule(self, node: WorkerController) -> None:
        is_done = not any(map(is_waiting, self.workqueue))
        if len(self.nodes) == _PROCESSES and is_done and all(map(is_waiting, self.assigned_work[node])):
            node.shutdown()
        super()._reschedule(node)
