"""Load on a log: writers through API replicas, and a producer that appends to Kafka directly.

Each write has a unique text; acknowledged writes are recorded with the returned position. A writer continues
at another replica after a failed connection or an unknown outcome.
"""

import asyncio
import random
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from engine.cli import failures
from engine.cli.client import Client
from engine.cli.results import Result
from events import keys
from events.client import producer, statements
from events.json_values import Json
from tests import writes
from tests.builders import inputs
from tests.faults import load_objects
from tests.scaleout.history import Acknowledged

SOURCE: Final = "/tests/load"
_REBALANCERS: Final = 2
_PAUSE_S: Final = 0.2
_AFTER_FAILURE_S: Final = 0.1
_JOIN_S: Final = 120.0
_OUTSIDE: Final = "x"


def spread(prefix: str, shards: int = 12) -> list[str]:
    """Return names of Deployments, one per shard."""
    names: dict[int, str] = {}
    number = 0
    while len(names) < shards:
        name = f"{prefix}-{number}"
        names.setdefault(keys.shard_of(keys.binding_key("Deployment", "default", name)), name)
        number += 1
    return sorted(names.values())


class Writer(threading.Thread):
    """Thread that writes through one of several API replicas until it is stopped."""

    def __init__(self, index: int, replicas: Sequence[Path]) -> None:
        super().__init__(name=f"writer {index}", daemon=True)
        self._index = index
        self._replicas = replicas
        self._replica = index
        self._chance = random.Random(index)  # noqa: S311  # choices of a test
        self._names = spread(f"w{index}")
        self._is_tainted = False
        self.stopping = threading.Event()
        self.acknowledged: list[Acknowledged] = []
        self.unknown = 0
        self.wrong: list[object] = []

    def run(self) -> None:
        """Write until stopped; on a failure, switch to the next replica."""
        while not self.stopping.is_set():
            try:
                with Client(self._replicas[self._replica % len(self._replicas)]) as client:
                    while not self.stopping.is_set():
                        self._write(client)
                        time.sleep(_PAUSE_S)
            except failures.Failure:
                self.unknown += 1
                self._replica += 1
                time.sleep(_AFTER_FAILURE_S)

    def _write(self, client: Client) -> None:
        choice = self._chance.random()
        text = f"{self._index}-{self._chance.getrandbits(60)}"
        if choice < 0.85:
            name = self._chance.choice(self._names)
            self._apply(
                client,
                load_objects.deployment(name, self._chance.randint(1, load_objects.REPLICAS_MAX), text),
                text,
            )
        elif choice < 0.92:
            self._apply(client, self._rebalancer(text), text)
        else:
            self._taint(client, text)

    def _rebalancer(self, text: str) -> Json:
        name = f"r{self._index}-{self._chance.randrange(_REBALANCERS)}"
        return load_objects.rebalancer(name, self._chance.sample(self._names, 3), text)

    def _taint(self, client: Client, text: str) -> None:
        # Each of the two writers taints its own cluster; the third one is never tainted.
        cluster = f"member{1 + self._index % 2}"
        if self._is_tainted:
            self._confirmed(writes.untaint(client, cluster, load_objects.TAINT))
        else:
            self._confirmed(writes.taint(client, cluster, load_objects.TAINT, text))
        self._is_tainted = not self._is_tainted

    def _apply(self, client: Client, manifest: Json, text: str) -> None:
        for result in self._confirmed(writes.apply(client, manifest)):
            self.wrong += [problem for problem in result.problems if problem.verdict == "refused"]
            if not result.problems:
                number = int(result.resource_version or 0)
                self.acknowledged.append(Acknowledged(text=text, number=number))

    def _confirmed(self, results: list[Result]) -> list[Result]:
        """Return the results of a write; raises Failure if its outcome is unknown."""
        if any(problem.verdict == "unknown" for result in results for problem in result.problems):
            raise failures.Failure("the outcome is unknown")
        return results


class Outsider(threading.Thread):
    """Thread that appends templates as a foreign producer; repeats unacknowledged ones with the same id.

    Sometimes it repeats acknowledged ones too, which must have no effect.
    """

    def __init__(self, servers: str, prefix: str) -> None:
        super().__init__(name="outsider", daemon=True)
        self._servers = servers
        self._prefix = f"{prefix}."
        self._chance = random.Random(_OUTSIDE)  # noqa: S311  # choices of a test
        self._names = spread(_OUTSIDE)
        self.stopping = threading.Event()
        self.acknowledged: list[Acknowledged] = []
        self.unknown = 0
        self.repeated = 0

    def run(self) -> None:
        """Append until stopped; after a failure of the brokers, connect again."""
        asyncio.run(self._run())

    async def _run(self) -> None:
        count = 0
        while not self.stopping.is_set():
            try:
                async with producer.Producer(self._servers, source=SOURCE, prefix=self._prefix) as sender:
                    while not self.stopping.is_set():
                        count += 1
                        await self._append_until_known(sender, f"{_OUTSIDE}-{count}")
                        await asyncio.sleep(_PAUSE_S)
            except producer.ProducerError:
                # The producer could not connect; nothing was sent.
                await asyncio.sleep(_AFTER_FAILURE_S)

    async def _append_until_known(self, sender: producer.Producer, event_id: str) -> None:
        manifest = load_objects.deployment(
            self._chance.choice(self._names), self._chance.randint(1, 3), event_id
        )
        event = inputs.applied(manifest)
        statement = statements.Statement(data=event, id=event_id)
        while True:
            try:
                at = await sender.append(statement)
            except producer.OutcomeUnknownError:
                self.unknown += 1
                continue
            position = (at.topic, at.partition, at.offset)
            self.acknowledged.append(Acknowledged(text=event_id, position=position))
            if self._chance.random() < 0.9:
                return
            self.repeated += 1


class Load:
    """All load threads."""

    def __init__(self, replicas: Sequence[Path], servers: str, prefix: str, writers: int = 2) -> None:
        self.writers = [Writer(index, replicas) for index in range(writers)]
        self.outsider = Outsider(servers, prefix)

    @property
    def threads(self) -> list[Writer | Outsider]:
        return [*self.writers, self.outsider]

    def start(self) -> None:
        for thread in self.threads:
            thread.start()

    def stop(self) -> None:
        """Stop all threads after their current write; fail if a write was refused."""
        for thread in self.threads:
            thread.stopping.set()
        for thread in self.threads:
            thread.join(_JOIN_S)
            assert not thread.is_alive(), f"{thread.name} does not end"
        wrong = [problem for writer in self.writers for problem in writer.wrong]
        assert not wrong, wrong

    def acknowledged(self) -> list[Acknowledged]:
        return [write for thread in self.threads for write in list(thread.acknowledged)]

    def until_more(self, count: int, seconds: float, describe: Callable[[], str]) -> None:
        """Wait until each thread has ``count`` more acknowledged writes."""
        minimums = [(thread, len(thread.acknowledged) + count) for thread in self.threads]
        until_s = time.monotonic() + seconds
        while waiting := [thread.name for thread, least in minimums if len(thread.acknowledged) < least]:
            assert time.monotonic() < until_s, f"{waiting} have no answers: {describe()}"
            time.sleep(_PAUSE_S)
