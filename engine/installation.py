"""One process of Reballast without its doors: the log, the owner of its shards, the members, the views.

Start and stop have one written order. Started: log, views, worker, members. Stopped: members first, so that nothing
new comes; then the worker decides what waits and the views fold it, within a deadline; last the log.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import TaskGroup

from engine import diagnostics, interpreter, replica
from engine.log import sqlite
from engine.members import specs
from engine.reconcilers import figures, keepers, worker
from engine.replica import clock_ms, watched

DRAIN_SECONDS: Final = 5.0
_log = diagnostics.logger(__name__)


class Installation(replica.Replica):
    """What runs together in one process; ``opened`` makes one."""

    def __init__(self, log: sqlite.SqliteLog, directory: Path, members: Sequence[specs.MemberSpec]) -> None:
        super().__init__(log, directory, members)
        self.worker = worker.Worker(log, clock_ms, places=keepers.OnePlace(keepers.Files(directory)))
        self.collectors.append(figures.WorkerFigures(self.worker, log))

    async def settled(self) -> None:
        """Returns when nothing waits to be taken, decided, run or folded."""
        while True:
            # Several parts are waited for, none of which can tell that all are done.
            while self._is_behind():  # noqa: ASYNC110
                await asyncio.sleep(0.001)
            number = self.log.last_number()
            await self.views.wait_folded(number)
            if number == self.log.last_number() and not self._is_behind():
                return

    def _is_behind(self) -> bool:
        return self.worker.is_behind() or self.members.is_behind()

    async def drain(self) -> None:
        """Decides and folds what waits, as far as that goes within the deadline; keeps a snapshot."""
        with anyio.move_on_after(DRAIN_SECONDS) as scope:
            while self.worker.is_behind():
                await self.worker.turn()
            await self.worker.keep()
            await self.views.wait_folded(self.log.last_number())
        if scope.cancelled_caught:
            _log.warning("stopped with work left; the next start goes on with it")


@asynccontextmanager
async def opened(
    directory: Path, members: Sequence[specs.MemberSpec], *, synchronous: str = "FULL"
) -> AsyncGenerator[Installation]:
    """Opens the log in a directory and runs everything on it until the block ends.

    Raises port.LogLockedError where another process holds the log.
    """
    interpreter.tune()
    log = await sqlite.SqliteLog.open(directory, synchronous=synchronous)
    try:
        installation = Installation(log, directory, members)
        async with anyio.create_task_group() as readers:
            readers.start_soon(watched, "views", installation.views.run())
            async with anyio.create_task_group() as writers:
                await _start(installation, writers)
                yield installation
                writers.cancel_scope.cancel()
            await installation.drain()
            readers.cancel_scope.cancel()
        await installation.views.close()
    finally:
        await log.aclose()


async def _start(installation: Installation, writers: TaskGroup) -> None:
    await installation.worker.recover()
    await installation.views.wait_folded(0)
    writers.start_soon(watched, "worker", installation.worker.run())
    writers.start_soon(watched, "members", installation.members.run())
