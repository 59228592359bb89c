"""Workers and API replicas on one Kafka log under load, and the final verification of log and views."""

import asyncio
import secrets
import time
from collections.abc import Container, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from engine.cli import failures, server_reads
from engine.cli.client import Client
from engine.http.query.response_types import Lag, ShardLag
from engine.log.kafka import address, numbered_log
from engine.proof.verification import Report
from events.json_values import Json
from tests import writes
from tests.faults.load_objects import COUNT, POLICY
from tests.projections import listing_checker
from tests.scaleout import checker, history, watches
from tests.scaleout.loads import Load
from tests.scaleout.processes import Api, Worker

DECIDED_S: Final = 180.0
QUIET_S: Final = 180.0
_OWN: Final = ("specs", "health", "links")
"""Topics whose records their shard folds at once; records remain unread while a shard has no owner."""

_STILL_S: Final = 0.7
_POLL_S: Final = 0.1
_LOOK_RECORDS: Final = 200
"""Records between two comparisons of all list responses with the expected lists."""


class Installation:
    """Two workers and two API replicas, one of them with members; ``load`` runs from ``start`` to ``prove``.

    With ``is_late`` the second replica starts after the load has ended, and builds its views from the log
    alone.
    """

    def __init__(
        self,
        servers: str,
        directory: Path,
        environment: Mapping[str, str],
        words: Sequence[str] = (),
        *,
        is_late: bool,
    ) -> None:
        self.servers = servers
        self.prefix = f"f{secrets.token_hex(4)}"
        self.log = f"kafka://{servers}/{self.prefix}"
        self.directory = directory
        self.workers = [Worker(f"worker{index}", self.log, directory, *words) for index in range(2)]
        self.apis = [
            Api("api0", self.log, directory, "--members"),
            Api("api1", self.log, directory),
        ]
        for process in (*self.workers, *self.apis):
            process.environment.update(environment)
        self._late = self.apis[1:] if is_late else []
        self._early = self.apis[: -1 if is_late else None]
        self.load = Load([api.data for api in self._early], servers, self.prefix)
        self.slowest_s = 0.0
        self.watchers: list[watches.Watcher] = []

    def start(self) -> None:
        """Start all processes, and the load once they are ready."""
        for process in (*self.workers, *self._early):
            process.launch()
        for worker in self.workers:
            worker.wait_until(worker.has_shards)
        for api in self._early:
            api.wait_until(api.answers)
        with Client(self.apis[0].data) as client:
            writes.apply(client, POLICY)
        if not self._late:
            self.watchers = watches.started(self.apis)
        self.load.start()
        self.until_decided()

    def close(self) -> None:
        """Stop the load and kill all processes."""
        for thread in (*self.load.threads, *self.watchers):
            thread.stopping.set()
        for process in (*self.workers, *self.apis):
            process.kill()

    def until_decided(self, without: Container[int] = ()) -> float:
        """Wait until the shards have decided all specs written so far; return how long that took, in seconds.

        Shards in ``without`` are not awaited: the test prevents them from progressing.
        """
        began_s = time.monotonic()
        expected: dict[int, int] = {}
        while True:
            now = self._lags()
            expected = expected or {shard: end for shard, (end, _) in now.items() if shard not in without}
            if now and all(now.get(shard, (0, 0))[1] >= end for shard, end in expected.items()):
                break
            assert time.monotonic() - began_s < DECIDED_S, self.with_output(f"not decided: {expected}, {now}")
            time.sleep(_POLL_S)
        taken_s = time.monotonic() - began_s
        self.slowest_s = max(self.slowest_s, taken_s)
        return taken_s

    def terms(self) -> dict[str, int]:
        """Return the term of each shard; empty if no replica answers."""
        return {str(shard.shard): shard.term for shard in self._shards()}

    def with_output(self, why: str) -> str:
        """Return a failure message with the last output lines of each process."""
        parts = [f"--- {process.name}\n{process.last_lines()}" for process in (*self.workers, *self.apis)]
        return "\n".join([why, *parts])

    def prove(self) -> history.History:
        """Stop the load, wait until all shards and replicas have caught up, and verify the log and the views."""
        self.load.stop()
        for api in self._late:
            api.launch()
            api.wait_until(api.answers)
        self._until_quiet()
        log_history = history.read(self.servers, self.prefix)
        log_history.acknowledged = self.load.acknowledged()
        log_history.shown = [_texts(api) for api in self.apis]
        wrong = checker.check(log_history)
        assert wrong == [], self.with_output(f"findings in the log: {wrong[:10]}")
        first, *others = [_bindings(api) for api in self.apis]
        assert all(bindings == first for bindings in others)
        assert first
        for api in self.apis:
            with Client(api.data) as client:
                report = client.verify(Report, views=True)
            assert (report.findings, report.differences) == ([], []), report
        wrong = [line for watcher in self.watchers for line in watcher.differences()]
        assert not wrong, wrong[:10]
        wrong = asyncio.run(_listed(self.log))
        assert not wrong, wrong[:10]
        return log_history

    def _until_quiet(self) -> None:
        """Wait until no new records appear and both replicas have folded everything."""
        until_s = time.monotonic() + QUIET_S
        last: list[tuple[int, int, int] | None] = []
        since_s = time.monotonic()
        while time.monotonic() - since_s < _STILL_S:
            now = [_progress(api) for api in self.apis]
            is_level = (
                all(progress is not None and progress[0] == 0 for progress in now) and len(set(now)) == 1
            )
            if now != last or not is_level:
                last, since_s = now, time.monotonic()
            assert time.monotonic() < until_s, self.with_output(
                f"timed out waiting until all is read: {self._shards()}"
            )
            time.sleep(_POLL_S)

    def _lags(self) -> dict[int, tuple[int, int]]:
        """Return by shard the end of its specs and the offset its steps have reached; empty if no replica answers."""
        return {shard.shard: _specs(shard) for shard in self._shards()}

    def _shards(self) -> list[ShardLag]:
        """Return the progress of each shard as the first replica that answers reports it."""
        for api in self._early:
            with suppress(failures.Failure, OSError), Client(api.data) as client:
                return client.get("lag", Lag).shards
        return []


@contextmanager
def installed(
    servers: str,
    directory: Path,
    environment: Mapping[str, str] | None = None,
    words: Sequence[str] = (),
    *,
    is_late: bool = True,
) -> Generator[Installation]:
    """Run an installation under load for the duration of the block; ``words`` are extra worker arguments."""
    installation = Installation(servers, directory, environment or {}, words, is_late=is_late)
    try:
        installation.start()
        yield installation
    finally:
        installation.close()


async def _listed(log: str) -> list[str]:
    """Return the errors of lists and watch events of views folded from this log."""
    async with numbered_log.reading(address.parse(log)) as reading:
        return await listing_checker.check(
            await reading.read_all(0, reading.last_number()), every=_LOOK_RECORDS
        )


def _specs(shard: ShardLag) -> tuple[int, int]:
    for input_lag in shard.inputs:
        if input_lag.topic == "specs":
            return input_lag.end, input_lag.taken
    return 0, 0


def _progress(api: Api) -> tuple[int, int, int] | None:
    """Return (records waiting to be folded or read, last number, folded number) of a replica; None if it fails."""
    try:
        with Client(api.data) as client:
            lag = client.get("lag", Lag)
    except failures.Failure:
        return None
    waiting = sum(
        input_lag.waiting for shard in lag.shards for input_lag in shard.inputs if input_lag.topic in _OWN
    )
    return lag.behind + waiting, lag.last_number, lag.folded


def _texts(api: Api) -> dict[str, str]:
    """Return by Deployment the load's text in its annotation, as a replica returns it."""
    with Client(api.data) as client:
        return {
            deployment.name: str(deployment.annotations.get(COUNT, ""))
            for deployment in server_reads.objects(client, "objects", kind="deploy")
        }


def _bindings(api: Api) -> list[Json]:
    with Client(api.data) as client:
        return [binding.document for binding in server_reads.objects(client, "bindings")]
