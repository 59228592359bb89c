"""The control plane that a plan is about: that of the server, or an existing Karmada."""

import contextlib
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from msgspec import Struct

from engine.cli import options, server_location


class Opened(Struct, frozen=True):
    """The data directory of a server to plan on, and the time or position to plan from (empty: now).

    With ``is_copy``, the server holds a copy of an existing Karmada, and ``notes`` list the differences.
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
    context: options.Context = ""
    log: Annotated[
        str,
        Parameter(
            help="Plan for the Karmada that `reballast observe` recorded in this log: a data directory, a log file, or "
            "a kafka:// address."
        ),
    ] = ""

    @contextlib.contextmanager
    def opened(self, as_of: str = "") -> Generator[Opened]:
        """Provide a server to plan on until the block ends; raises Failure."""
        if not self._is_of_karmada():
            yield Opened(self.data, as_of)
            return
        # ``copies`` imports the readers of Karmada and of logs: that takes longer than most plans, which need neither.
        from engine.cli.karmada import copies  # noqa: PLC0415

        if self.kubeconfig is not None:
            state = copies.live_state(self.kubeconfig, self.context, as_of)
        else:
            state = copies.recorded_state(self.log, self, as_of)
        with copies.running(state) as copy:
            yield Opened(copy.directory, "", is_copy=True, notes=copy.notes)

    def _is_of_karmada(self) -> bool:
        """Whether the plan is about an existing Karmada, not about the server's own control plane."""
        if self.kubeconfig is not None or self.log:
            return True
        return bool(server_location.find(self.data).observes)


SUBJECT = Subject()
