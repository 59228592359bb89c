"""The parent's end of the views: keeps the child running, knows how far it has come, reads its tables."""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
from anyio.abc import Process

from engine import diagnostics
from engine.log import following, port
from engine.views import lines
from projections import store

PATIENCE_S: Final = 5.0
"""How long nothing may go on before those who wait are told why."""

_AFTER_END_S: Final = 1.0
_REMEDY: Final = "the views go on by themselves once there is room"
_MODULE: Final = "engine.views"
_log = diagnostics.logger(__name__)


class RemoteViews:
    """The views in a directory, folded by a child process; ``run`` keeps it alive.

    They are those of the log's file in the directory, or of the log on Kafka at ``where``.

    ``folded`` is the number of the last record that questions see.
    """

    def __init__(self, log: port.NumberedLog, directory: Path, where: str | None = None) -> None:
        self._log = log
        self._directory = directory
        self._environment = os.environ | ({} if where is None else {lines.LOG_VARIABLE: where})
        self._end = following.EndSignal(-1)
        self._store: store.Reader | None = None
        # Since when nothing goes on, and why; None while all is well.
        self._failing_since_s: float | None = None
        self._refusal = ""

    @property
    def folded(self) -> int:
        """The number of the last record that questions see."""
        return max(self._end.number, 0)

    @property
    def store(self) -> store.Reader:
        """The tables; there are some once ``wait_folded(0)`` has returned."""
        if self._store is None:
            raise port.LogError("the views are not open yet; wait for them first")
        return self._store

    async def wait_folded(self, number: int) -> None:
        """Returns when everything up to a number can be asked for.

        Raises LogError where the child has not been able to go on for a while; it goes on trying.
        """
        while self._end.number < number:
            if self._refusal:
                raise port.LogError(self._refusal)
            await self._end.moved()

    async def run(self) -> None:
        """Runs the child until it is cancelled; starts another one where it ends by itself.

        Raises LogCorruptedError where the child could not read the log.
        """
        call = [sys.executable, "-m", _MODULE, str(self._directory)]
        while True:
            # A session of its own, so that a Ctrl-C in the terminal reaches the parent alone.
            process = await anyio.open_process(
                call,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=None,
                start_new_session=True,
                env=self._environment,
            )
            try:
                async with anyio.create_task_group() as talking:
                    talking.start_soon(self._tell, process)
                    await self._hear(process)
                    talking.cancel_scope.cancel()
            finally:
                await _ended(process)
            _log.warning("the views' process ended; another one is started", code=process.returncode)
            self._fail("the process that folds the views ends again and again, as the server's log says")
            await asyncio.sleep(_AFTER_END_S)

    async def close(self) -> None:
        """Gives the tables up, once nobody reads them; ``run`` has ended before."""
        if self._store is not None:
            await anyio.to_thread.run_sync(self._store.close)

    async def _tell(self, process: Process) -> None:
        """Says where the log ends, whenever it moves."""
        number = self._log.last_number()
        try:
            while process.stdin is not None:
                await process.stdin.send(lines.number(number))
                await self._log.wait(number)
                number = self._log.last_number()
        except anyio.BrokenResourceError:
            return

    async def _hear(self, process: Process) -> None:
        """Takes in what the child says until it ends."""
        heard = lines.Lines()
        is_level = False
        while process.stdout is not None:
            try:
                said = heard.take(await process.stdout.receive())
            except anyio.EndOfStream:
                return
            for line in said:
                if line.startswith(lines.CORRUPTED):
                    raise port.LogCorruptedError(line.removeprefix(lines.CORRUPTED).decode())
                if line.startswith(lines.UNWRITABLE):
                    self._fail(f"{line.removeprefix(lines.UNWRITABLE).decode()}; {_REMEDY}")
                    continue
                # Nobody who has read something may find it gone: what a new child folds anew is shown once it knows
                # as much.
                is_level = is_level or await self._open(int(line))
                if is_level:
                    self._failing_since_s, self._refusal = None, ""
                    self._end.move(int(line))

    def _fail(self, reason: str) -> None:
        """The child could not go on; where that lasts, those who wait are told."""
        now_s = time.monotonic()
        if self._failing_since_s is None:
            self._failing_since_s = now_s
            _log.warning("the views do not go on", reason=reason)
        elif now_s - self._failing_since_s >= PATIENCE_S and self._refusal != reason:
            self._refusal = reason
            _log.error("who asks is refused until the views go on", reason=reason)
            self._end.move(self._end.number)

    async def _open(self, folded: int) -> bool:
        """Opens the tables of a new child that knows no less than the former one; False for one that does."""
        if folded < self._end.number:
            return False
        before = self._store
        self._store = await anyio.to_thread.run_sync(store.Reader, self._directory / store.FILE)
        if before is not None:
            await anyio.to_thread.run_sync(before.close)
        return True


async def _ended(process: Process) -> None:
    """Lets the child end its batch; it takes no more than that."""
    with anyio.CancelScope(shield=True):
        if process.stdin is not None:
            await process.stdin.aclose()
        await process.aclose()
