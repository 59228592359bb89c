"""The parent's side: one child process for each plan."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import anyio
import msgspec
from anyio.abc import Process
from msgspec import structs

from engine import diagnostics
from engine.plans.fork import Failure, PlanError
from engine.plans.planning import Question
from engine.process.plans import protocol
from engine.process.views.line_protocol import Lines
from engine.simulation import faults, specs

_STOPPED: Final = "the process of the plan ended early; see the server log"


class PlanProcesses:
    """Predictions on the log in a directory, or at an address on Kafka; implements ``http.services.Planner``.

    ``statuses`` returns the simulated members of this process with their faults.
    """

    def __init__(
        self,
        directory: Path,
        where: str | None,
        simulated: Sequence[specs.MemberSpec],
        statuses: Callable[[], Sequence[faults.MemberStatus]],
    ) -> None:
        self._directory = directory
        self._where = where
        self._simulated = tuple(simulated)
        self._statuses = statuses

    async def predict(self, question: Question, progress: Callable[[int], None]) -> bytes:
        """Return the prediction of a change as JSON, with the members of this process.

        ``progress`` gets the virtual time that has passed, in milliseconds. Raises PlanError; cancelling ends the
        process.
        """
        question = structs.replace(question, simulated=self._simulated, faults=self._faults())
        ask = protocol.Ask(directory=str(self._directory), where=self._where, question=question)
        # A session of its own, so that Ctrl-C in the terminal signals only the parent.
        process = await anyio.open_process(
            [sys.executable, "-m", protocol.MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None,
            start_new_session=True,
            env={**os.environ, diagnostics.LEVEL_VARIABLE: "warning"},
        )
        try:
            return await _answer(process, msgspec.json.encode(ask), progress)
        finally:
            with anyio.CancelScope(shield=True):
                if process.returncode is None:
                    process.kill()
                await process.aclose()

    def _faults(self) -> tuple[Failure, ...]:
        """Return the faults of the simulated members, which are not in the log; a member that is down is."""
        found: list[Failure] = []
        for status in self._statuses() if self._simulated else ():
            if status.slowness > 1:
                found.append(Failure(member=status.name, kind="slow", amount=status.slowness))
            if status.lose_every:
                found.append(Failure(member=status.name, kind="losing", amount=status.lose_every))
        return tuple(found)


async def _answer(process: Process, ask: bytes, progress: Callable[[int], None]) -> bytes:
    lines = Lines()
    if process.stdin is None or process.stdout is None:
        raise PlanError(_STOPPED)
    try:
        await process.stdin.send(ask)
        await process.stdin.aclose()
        while True:
            for line in lines.take(await process.stdout.receive()):
                if line.startswith(protocol.FAILED):
                    raise PlanError(line.removeprefix(protocol.FAILED).decode())
                if line.isdigit():
                    progress(int(line))
                else:
                    return line
    except (anyio.BrokenResourceError, anyio.EndOfStream):
        raise PlanError(_STOPPED) from None
