"""How a run with several processes (``pytest -n 2``) divides the tests.

Most tests wait for servers, so several processes need half the time of one, also on two processors. They would
need more if each of them started the servers that the tests of a folder share: such a folder is run by one process.
"""

from typing import Final

import pytest
from xdist.remote import Producer  # pyright: ignore[reportMissingTypeStubs]
from xdist.scheduler.loadscope import LoadScopeScheduling  # pyright: ignore[reportMissingTypeStubs]

LONGEST_FIRST: Final = ("scaleout", "kubectl", "cli", "scheduler", "observer", "agent", "plans")
"""Folders that last longer than a minute; no process is left with one of them at the end."""

_SHARING: Final = frozenset({"scaleout", "kubectl", "agent", "seeds", "clients"})
"""Folders whose tests share servers; elsewhere a module is the most that does."""
_ON_KAFKA: Final = "control_plane_on_kafka"


def position(folder: str) -> int:
    """Return the sort key of a folder: its index in ``LONGEST_FIRST``; other folders sort behind these."""
    return LONGEST_FIRST.index(folder) if folder in LONGEST_FIRST else len(LONGEST_FIRST)


def unit(test: str) -> str:
    """Return what one process runs as a whole: the folder or the module of a test."""
    module = test.partition("::")[0]
    folder = module.rpartition("/")[0]
    if folder.rpartition("/")[2] not in _SHARING:
        return module
    return f"{folder} on Kafka" if _ON_KAFKA in test else folder


class Scheduling(LoadScopeScheduling):
    """Hands whole units to the processes, in the order of the collection."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        super().__init__(config, log)
        # Ours is by duration, not by number of tests.
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return unit(nodeid)
