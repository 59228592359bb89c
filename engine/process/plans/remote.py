"""The parent's side of the plans: start the keeper process and send questions to it."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from msgspec import structs

from engine import diagnostics
from engine.plans.questions import Failure, PlanError, Question
from engine.process.log_locations import LogLocation
from engine.process.plans import protocol
from engine.simulation import listed_statuses, specs

_STOPPED: Final = "the process of the plan ended early; see the server log"
_BUSY: Final = "too many plans are waiting; try again when one is done"
_TRIES: Final = 2
"""Number of attempts per question: the process may end, after its idle time, just while a question is sent."""

_IDLE_S: Final = 120.0
"""Seconds without a question after which the process ends."""


class _EndedError(Exception):
    """The process ended without an answer."""


class PlanProcesses:
    """Predictions on a log; implements ``http.services.Planner``.

    ``statuses`` returns the simulated members of this process with their faults. The process of the plans ends after
    ``idle_s`` seconds without a question.
    """

    def __init__(
        self,
        location: LogLocation,
        simulated: Sequence[specs.MemberSpec],
        statuses: Callable[[], Sequence[listed_statuses.MemberStatus]],
        idle_s: float = _IDLE_S,
    ) -> None:
        self._location = location
        self._simulated = tuple(simulated)
        self._statuses = statuses
        self._idle_s = idle_s
        self.keeper: Keeper | None = None
        # A lock for threads: ``predict`` starts the process in worker threads, because a start blocks.
        self._lock = threading.Lock()

    async def predict(self, question: Question, progress: Callable[[int], None]) -> bytes:
        """Return the prediction of a change as JSON; the simulated members of this process take part in it.

        ``progress`` gets the virtual time that has passed, in milliseconds. Raises PlanError; cancelling ends the
        prediction.
        """
        question = structs.replace(question, simulated=self._simulated, faults=self._faults())
        request = protocol.Request(location=self._location, question=question)
        for _ in range(_TRIES):
            keeper = await asyncio.to_thread(self._running)
            try:
                return await keeper.answer(protocol.encoded(request), progress)
            except _EndedError:
                await asyncio.to_thread(self._replace, keeper)
        raise PlanError(_STOPPED)

    async def aclose(self) -> None:
        """End the process, and all predictions."""
        if self.keeper is not None:
            if self.keeper.process.poll() is None:
                os.killpg(self.keeper.process.pid, signal.SIGKILL)
            await asyncio.to_thread(self._replace, self.keeper)

    def _running(self) -> "Keeper":
        """Return the process that answers questions; start it if it does not run."""
        with self._lock:
            if self.keeper is None:
                self.keeper = Keeper(self._idle_s)
            return self.keeper

    def _replace(self, keeper: "Keeper") -> None:
        """End the process of ``keeper``; the next prediction starts another one."""
        with self._lock:
            if self.keeper is keeper:
                self.keeper = None
        keeper.close()

    def _faults(self) -> tuple[Failure, ...]:
        """Return the faults of simulated members that are not in the log: slowness and lost reports."""
        result: list[Failure] = []
        for status in self._statuses() if self._simulated else ():
            if status.slowness > 1:
                result.append(Failure(member=status.name, kind="slow", amount=status.slowness))
            if status.lose_every:
                result.append(Failure(member=status.name, kind="losing", amount=status.lose_every))
        return tuple(result)


class Keeper:
    """The process that keeps the engine, and the socket on which it takes questions."""

    def __init__(self, idle_s: float) -> None:
        self._control, child_end = socket.socketpair()
        # Never block: the process takes no questions while it prepares the engine, and the buffer may be full.
        self._control.settimeout(0)
        with child_end:
            # A session of its own, so that Ctrl-C in the terminal signals only the parent.
            self.process = subprocess.Popen(  # noqa: S603  # this interpreter, and a module of this package
                [sys.executable, "-m", protocol.MODULE, str(idle_s)],
                stdin=child_end.fileno(),
                stdout=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, diagnostics.LEVEL_VARIABLE: "warning"},
            )

    async def answer(self, question: bytes, progress: Callable[[int], None]) -> bytes:
        """Return the answer to a question; raises PlanError, and _EndedError if the process ends before it answers."""
        own_end, child_end = socket.socketpair()
        try:
            with child_end:
                socket.send_fds(self._control, [b"?"], [child_end.fileno()])
            reader, writer = await asyncio.open_unix_connection(sock=own_end, limit=protocol.READ_BYTES)
        except BlockingIOError:
            own_end.close()
            raise PlanError(_BUSY) from None
        except OSError:
            own_end.close()
            raise _EndedError from None
        except asyncio.CancelledError:
            own_end.close()
            raise
        try:
            writer.write(question)
            return await protocol.answer(reader, progress)
        except (OSError, EOFError):
            raise _EndedError from None
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    def close(self) -> None:
        """End the process that keeps the engine; predictions that have begun continue in their own processes."""
        self._control.close()
        self.process.kill()
        self.process.wait()
