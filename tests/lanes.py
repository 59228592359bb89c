"""How a run with several processes (``pytest -n 3``) divides the tests.

Each process takes the next unit when it has finished one. Tests that share servers are one unit: several processes
would start these servers several times. The first processes take the longest units, which start many servers; meanwhile
the others take those that mostly wait, so that waiting costs no time. The units at the end are short.
"""

from typing import Final

import pytest
from xdist.remote import Producer  # pyright: ignore[reportMissingTypeStubs]
from xdist.scheduler.loadscope import LoadScopeScheduling  # pyright: ignore[reportMissingTypeStubs]

_SHARING: Final = frozenset({"scaleout", "kubectl", "agent", "seeds", "clients", "tidy"})
"""Folders whose tests share servers, or the parsed sources; elsewhere a module is the most that does."""
_WAITING: Final = (
    "tests/kubectl/test_cron_jobs.py",
    "tests/kubectl/test_default_tolerations.py",
    "tests/cli/test_failover.py",
)
"""Modules that wait for clocks: a minute that begins, a condition that counts after 30 s."""
_OWN_BROKERS: Final = (
    "tests/scaleout/test_retention.py",
    "tests/scaleout/test_security.py",
    "tests/scaleout/test_brokers.py",
    "tests/scaleout/test_starting.py",
    "tests/scaleout/test_stopping.py",
    "tests/scaleout/test_dropped_responses.py",
    "tests/scaleout/test_resets.py",
    "tests/scaleout/test_paused_broker.py",
)
"""Modules that share no broker with their folder."""
_FIRST: Final = (
    "tests/scaleout",
    "tests/kubectl",
    "tests/agent",
    *_WAITING,
    "tests/scheduler",
    "tests/observer",
    "tests/kubectl on Kafka",
    *_OWN_BROKERS,
    "tests/seeds",
    "tests/cli",
    "tests/plans",
)
"""Units, and folders of units, that last longer than a minute or wait, in the order in which they start."""
_ON_KAFKA: Final = "control_plane_on_kafka"


def unit(test: str) -> str:
    """Return what one process runs as a whole: the folder or the module of a test."""
    module = test.partition("::")[0]
    folder = module.rpartition("/")[0]
    if module in _WAITING or module in _OWN_BROKERS or folder.rpartition("/")[2] not in _SHARING:
        return module
    return f"{folder} on Kafka" if _ON_KAFKA in test else folder


def position(test: str) -> int:
    """Return the sort key of a test: the position of its unit, or of its folder, in the order of the run."""
    of_test = unit(test)
    for name in (of_test, of_test.rpartition("/")[0]):
        if name in _FIRST:
            return _FIRST.index(name)
    return len(_FIRST)


class Scheduling(LoadScopeScheduling):
    """Hands whole units to the processes, in the order of the collection."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        super().__init__(config, log)
        # Ours is by duration, not by number of tests.
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return unit(nodeid)
