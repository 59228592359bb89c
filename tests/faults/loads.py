"""Writers that send commands as fast as possible, and a ledger of the acknowledged states.

Each writer has its own names and one command in flight. So the state of a name is the last acknowledged one,
or the one in flight when the server died, and no other.
"""

import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from engine.cli import failures
from engine.cli.client import Client
from engine.cli.results import Result
from events.json_values import Json
from tests import writes
from tests.builders import manifests
from tests.faults import load_objects

NAMES: Final = 12
"""Deployments of each writer; few, so that they are written over and over."""
ABSENT: Final = ""
_REBALANCERS: Final = 3
_UNKNOWN: Final = "unknown"


class Ledger:
    """The writers' knowledge: the acknowledged state of each name, and the last attempted one."""

    def __init__(self) -> None:
        self.acknowledged: dict[str, str] = {}
        self.tried: dict[str, str] = {}
        self.applied: set[tuple[str, str]] = set()
        """All names and counts of Deployments and rebalancers whose apply was acknowledged."""

    def allows(self, name: str, state: str) -> bool:
        """Whether the name may have this state."""
        return state in {self.acknowledged.get(name, ABSENT), self.tried.get(name, ABSENT)}

    def settle(self, name: str, state: str) -> None:
        """Record the state found after a crash; the writer continues from it."""
        self.acknowledged[name] = self.tried[name] = state


class Writer(threading.Thread):
    """Thread that sends commands until it is stopped or the server is gone."""

    def __init__(self, index: int, directory: Path, ledger: Ledger, seed: str) -> None:
        super().__init__(name=f"writer {index}", daemon=True)
        self._index = index
        self._client = Client(directory)
        self._ledger = ledger
        self._chance = random.Random(seed)  # noqa: S311  # moments and choices of a test
        self.stopping = threading.Event()
        self.wrong: list[object] = []

    def run(self) -> None:
        """Write until stopped; if the server dies, the outcome of the last command is unknown."""
        try:
            with self._client:
                while not self.stopping.is_set():
                    self._write()
        except failures.Failure:
            return

    def _write(self) -> None:
        choice = self._chance.random()
        if choice < 0.65:
            self._apply_deployment()
        elif choice < 0.75:
            self._delete_deployment()
        elif choice < 0.9:
            self._apply_rebalancer()
        else:
            self._taint()

    def _apply_deployment(self) -> None:
        name = self._deployment()
        count = self._chance.getrandbits(60)
        manifest = load_objects.deployment(
            name, self._chance.randint(1, load_objects.REPLICAS_MAX), str(count)
        )
        self._apply(manifest, name, str(count))

    def _apply_rebalancer(self) -> None:
        name = f"r{self._index}-{self._chance.randrange(_REBALANCERS)}"
        count = self._chance.getrandbits(60)
        deployments = sorted({self._deployment() for _ in range(3)})
        manifest = load_objects.rebalancer(name, deployments, str(count))
        self._apply(manifest, name, str(count))

    def _apply(self, manifest: Json, name: str, count: str) -> None:
        self._command(lambda: writes.apply(self._client, manifest), name, count)
        self._ledger.applied.add((name, count))

    def _delete_deployment(self) -> None:
        name = self._deployment()
        if self._ledger.acknowledged.get(name, ABSENT) != ABSENT:
            manifest: Json = manifests.manifest("apps/v1", "Deployment", name)
            self._command(lambda: writes.delete(self._client, manifest), name, ABSENT)

    def _taint(self) -> None:
        # Each writer taints its own cluster; the third cluster is never tainted, so one is always available.
        if self._index > 2:
            return
        cluster = f"member{self._index}"
        if self._ledger.acknowledged.get(cluster, ABSENT) == ABSENT:
            value = str(self._chance.getrandbits(30))
            self._command(
                lambda: writes.taint(self._client, cluster, load_objects.TAINT, value), cluster, value
            )
        else:
            self._command(lambda: writes.untaint(self._client, cluster, load_objects.TAINT), cluster, ABSENT)

    def _command(self, write: Callable[[], list[Result]], name: str, state: str) -> None:
        self._ledger.tried[name] = state
        for result in write():
            if any(problem.verdict == _UNKNOWN for problem in result.problems):
                raise failures.Failure("the outcome is unknown")
            self.wrong.extend(result.problems)
        self._ledger.acknowledged[name] = state

    def _deployment(self) -> str:
        return f"w{self._index}-{self._chance.randrange(NAMES)}"
