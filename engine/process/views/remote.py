"""The parent's side of the views: keeps the child running, tracks its progress, reads its tables."""

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

from engine import diagnostics, shared_waits
from engine.log import port
from engine.process import views
from engine.text_lines import Lines
from projections import store

PATIENCE_S: Final = 5.0
"""Seconds for which the views may stall before waiting readers get an error."""

_AFTER_END_S: Final = 1.0
_REMEDY: Final = "the views continue automatically once there is space"
_MODULE: Final = "engine.process.views"
_log = diagnostics.logger(__name__)


class RemoteViews:
    """The projection tables in a directory, folded by a child process that ``run`` keeps alive.

    The log is the file in the directory, or the one on Kafka at ``where``.
    """

    def __init__(self, log: port.NumberedLog, directory: Path, where: str | None = None) -> None:
        self._log = log
        self._directory = directory
        self._environment = os.environ | ({} if where is None else {views.LOG_VARIABLE: where})
        self._end = shared_waits.EndSignal(-1)
        self._store: store.Reader | None = None
        # When the current stall began; None: no stall.
        self._failing_since_s: float | None = None
        self.refusal = ""
        """Why reads are refused now; empty if they are not."""

    @property
    def folded(self) -> int:
        """Sequence number of the last record that the readers' tables include; 0 if they include none."""
        return max(self._end.number, 0)

    @property
    def store(self) -> store.Reader:
        """The tables; raises LogError before ``wait_folded(0)`` has returned."""
        if self._store is None:
            raise port.LogError("the views are not open yet; wait until they are")
        return self._store

    async def wait_folded(self, number: int) -> None:
        """Return when the tables include all records up to a sequence number.

        Raises LogError if the child has been stalled for ``PATIENCE_S`` seconds; the child keeps trying.
        """
        while self._end.number < number:
            if self.refusal:
                raise port.LogError(self.refusal)
            await self._end.wait_for_move()

    async def run(self) -> None:
        """Run the child until cancelled; restart it if it exits.

        Raises LogCorruptedError if the child cannot read the log.
        """
        call = [sys.executable, "-m", _MODULE, str(self._directory)]
        while True:
            # A session of its own, so that Ctrl-C in the terminal signals only the parent.
            process = await anyio.open_process(
                call,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=None,
                start_new_session=True,
                env=self._environment,
            )
            corruption: str | None = None
            try:
                async with anyio.create_task_group() as talking:
                    talking.start_soon(self._announce_ends, process)
                    corruption = await self._read_progress(process)
                    talking.cancel_scope.cancel()
            finally:
                await _ended(process)
            if corruption is not None:
                # Raised here, because the task group would wrap it in an ExceptionGroup.
                raise port.LogCorruptedError(corruption)
            _log.warning("views process exited; restarting", code=process.returncode)
            self._fail("the views process keeps exiting; see the server log")
            await asyncio.sleep(_AFTER_END_S)

    async def close(self) -> None:
        """Close the tables; no reader may use them any longer, and ``run`` must have ended."""
        if self._store is not None:
            await anyio.to_thread.run_sync(self._store.close)

    async def _announce_ends(self, process: Process) -> None:
        """Send the end of the log to the child whenever it moves."""
        number = self._log.last_number()
        try:
            while process.stdin is not None:
                await process.stdin.send(views.number(number))
                await self._log.wait(number)
                number = self._log.last_number()
        except anyio.BrokenResourceError:
            return

    async def _read_progress(self, process: Process) -> str | None:
        """Process the child's lines. Return None when it exits, or the reason if it cannot read the log."""
        lines = Lines()
        is_level = False
        while process.stdout is not None:
            try:
                batch = lines.take(await process.stdout.receive())
            except anyio.EndOfStream:
                return None
            for line in batch:
                if line.startswith(views.CORRUPTED):
                    return line.removeprefix(views.CORRUPTED).decode()
                if line.startswith(views.UNWRITABLE):
                    self._fail(f"{line.removeprefix(views.UNWRITABLE).decode()}; {_REMEDY}")
                    continue
                # Reads must not go back in time: use the tables of a new child only once they include all records
                # that the former child's tables included.
                is_level = is_level or await self._open(int(line))
                if is_level:
                    self._failing_since_s, self.refusal = None, ""
                    self._end.move(int(line))
        return None

    def _fail(self, reason: str) -> None:
        """Record that the child is stalled; if this lasts for ``PATIENCE_S``, waiting readers get an error."""
        now_s = time.monotonic()
        if self._failing_since_s is None:
            self._failing_since_s = now_s
            _log.warning("projection not advancing", reason=reason)
        elif now_s - self._failing_since_s >= PATIENCE_S and self.refusal != reason:
            self.refusal = reason
            _log.error("projection stalled; reads return 503 until it recovers", reason=reason)
            self._end.move(self._end.number)

    async def _open(self, folded: int) -> bool:
        """Open a new child's tables; return False if they are behind the former child's."""
        if folded < self._end.number:
            return False
        before = self._store
        self._store = await anyio.to_thread.run_sync(store.Reader, self._directory / store.FILE)
        if before is not None:
            await anyio.to_thread.run_sync(before.close)
        return True


async def _ended(process: Process) -> None:
    """Close the child's input and wait for it to finish its batch and exit."""
    with anyio.CancelScope(shield=True):
        if process.stdin is not None:
            await process.stdin.aclose()
        await process.aclose()
