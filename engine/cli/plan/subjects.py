"""The control plane that a plan is about: that of the server, or an existing Karmada."""

import asyncio
import contextlib
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from msgspec import Struct

from engine.cli import failures, log_checkpoint, options, server_location
from engine.cli.karmada import copies, serving, states
from engine.log import port
from engine.process import log_places
from events import times
from projections import as_of_views


class Opened(Struct, frozen=True):
    """A server to plan on: its data directory, and the earlier time or position to plan from (empty: now).

    ``is_copy``: it holds a copy of an existing Karmada; ``notes`` list the differences.
    """

    directory: Path | None
    as_of: str = ""
    is_copy: bool = False
    notes: list[str] = []


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Subject(options.Server):
    """The server to connect to, or the Karmada to plan for."""

    kubeconfig: Annotated[Path | None, Parameter(help="Plan for this Karmada instead; it is only read.")] = (
        None
    )
    context: Annotated[str, Parameter(help="Context in the kubeconfig; by default the current one.")] = ""
    log: Annotated[
        str,
        Parameter(
            help="Plan for the Karmada that `reballast observe` recorded here: a data directory, a log file, or kafka://."
        ),
    ] = ""

    @contextlib.contextmanager
    def opened(self, as_of: str = "") -> Generator[Opened]:
        """Provide a server to plan on until the block ends; raises Failure."""
        if (state := self._state(as_of)) is None:
            yield Opened(self.data, as_of)
            return
        with copies.running(state) as copy:
            yield Opened(copy.directory, "", is_copy=True, notes=copy.notes)

    def _state(self, as_of: str) -> states.State | None:
        """The state of the existing Karmada; None if the plan is about the server's own control plane."""
        if self.kubeconfig is not None:
            if as_of:
                raise failures.usage(
                    "an API does not show earlier states", "plan on the log of `reballast observe`: --log"
                )
            return states.of_api(serving.Source(kubeconfig=self.kubeconfig, context=self.context).access())
        directory = self.data or server_location.default_directory()
        if not self.log and not server_location.find(directory).observes:
            return None
        log_place = log_checkpoint.place_of(self.log, self)
        try:
            state = asyncio.run(_of_log(log_place, as_of))
        except port.LogError as error:
            raise failures.Failure(str(error), "check the log: reballast log verify") from None
        if state is None:
            raise failures.Failure(
                "no observations up to that time",
                "observe a control plane: reballast observe --kubeconfig FILE",
            )
        return state


SUBJECT = Subject()


async def _of_log(place: log_places.LogPlace, as_of: str) -> states.State | None:
    async with log_places.opened(place) as log:
        return await states.of_log(log, await _number(log, as_of))


async def _number(log: port.NumberedLog, as_of: str) -> int | None:
    if not as_of:
        return None
    if as_of.isascii() and as_of.isdecimal():
        return int(as_of)
    try:
        return await as_of_views.number_at(log, times.from_text(as_of))
    except (ValueError, OverflowError):
        raise failures.usage(
            f"--as-of: {as_of!r} is neither a number of the log nor a time",
            "write 10m, or 2026-05-25T09:49:51Z",
        ) from None
