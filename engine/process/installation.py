"""One process of Reballast without its servers: log, worker, members and views.

The start order is log, views, worker, members. Members and the worker's task stop first, so that no new inputs come.
Then the worker decides the waiting inputs and the views fold them, within a deadline. The log is closed last.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import TaskGroup

from engine import diagnostics
from engine.log import port, sqlite
from engine.process import interpreter_settings, replica
from engine.process.replica import clock_ms, run_part
from engine.reconcilers import snapshot_storage, worker, worker_metrics
from engine.simulation import specs
from events import codec, observations, topics

DRAIN_SECONDS: Final = 5.0
_INPUT_TOPICS: Final = frozenset({topics.CLUSTERS, topics.SPECS, topics.POLICIES})
_CLIENT_EVENTS: Final = (observations.KubernetesEventWritten, observations.KubernetesEventDeleted)
_log = diagnostics.logger(__name__)


class Installation(replica.Replica):
    """The parts that run together in one process; create it with ``opened``."""

    def __init__(self, log: sqlite.SqliteLog, directory: Path, members: Sequence[specs.MemberSpec]) -> None:
        super().__init__(log, directory, members)
        self._file = log
        self.worker = worker.Worker(
            log,
            clock_ms,
            storage=snapshot_storage.SingleSnapshotStorage(snapshot_storage.SnapshotFiles(directory)),
        )
        self.collectors.append(worker_metrics.WorkerMetrics(self.worker, log))

    def faults(self) -> list[str]:
        """Return the reasons why writes or reads fail now; empty if both work."""
        return [*([self._file.fault] if self._file.fault else []), *super().faults()]

    async def await_idle(self) -> None:
        """Return when all inputs are decided, members have applied all works, and the views have folded all records."""
        while True:
            # Poll: the call waits for several parts, and no part can signal that all of them are done.
            while self._is_behind():  # noqa: ASYNC110
                await asyncio.sleep(0.001)
            number = self.log.last_number()
            await self.views.wait_folded(number)
            if number == self.log.last_number() and not self._is_behind():
                return

    def _is_behind(self) -> bool:
        return self.worker.is_behind() or self.members.is_behind()

    async def drain(self) -> None:
        """Decide waiting inputs, store a snapshot and wait for the views to fold all records, within one deadline."""
        try:
            with anyio.fail_after(DRAIN_SECONDS):
                while self.worker.is_behind():
                    await self.worker.turn()
                await self.worker.store_snapshot()
                await self.views.wait_folded(self.log.last_number())
        except (TimeoutError, port.LogError) as error:
            reason = str(error) or f"not finished within {DRAIN_SECONDS} s"
            _log.warning("stopped with unfinished work; the next start continues it", reason=reason)


@asynccontextmanager
async def opened(
    directory: Path, members: Sequence[specs.MemberSpec], *, synchronous: str = "FULL", observes: bool = False
) -> AsyncGenerator[Installation]:
    """Open the log in a directory and run all parts on it until the block ends.

    ``observes``: the log is for observations of another control plane. Raises port.LogLockedError if another process
    has locked the log, port.LogMixedError if the log has objects of the other use.
    """
    interpreter_settings.tune()
    log = await sqlite.SqliteLog.open(directory, synchronous=synchronous)
    try:
        await _check_use(log, observes=observes)
        installation = Installation(log, directory, members)
        async with anyio.create_task_group() as readers:
            readers.start_soon(run_part, "views", installation.views.run())
            async with anyio.create_task_group() as writers:
                await _start(installation, writers)
                yield installation
                writers.cancel_scope.cancel()
            await installation.drain()
            readers.cancel_scope.cancel()
        await installation.views.close()
    finally:
        await log.aclose()


async def _check_use(log: sqlite.SqliteLog, *, observes: bool) -> None:
    """Raise port.LogMixedError if one log would get both own objects and observations of another control plane."""
    recorded = {topic for (topic, _partition), end in log.ends().items() if end}
    first = await log.read(topics.OBSERVATIONS, 0, 0, 1)
    # This topic also has the Events that clients write. A server that observes refuses such Events, so they occur only
    # in a log without observations.
    has_events = any(isinstance(codec.event_of(record), _CLIENT_EVENTS) for record in first)
    if not observes and first and not has_events:
        raise port.LogMixedError("the log has the observations of another control plane")
    if observes and (has_events or (not first and recorded & _INPUT_TOPICS)):
        raise port.LogMixedError("the log has clusters and objects of its own")


async def _start(installation: Installation, writers: TaskGroup) -> None:
    await installation.worker.recover()
    await installation.views.wait_folded(0)
    writers.start_soon(run_part, "worker", installation.worker.run())
    writers.start_soon(run_part, "members", installation.members.run())
    await installation.wait_ready()
