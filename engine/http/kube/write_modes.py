"""How a Kubernetes API carries out writes: a server appends them to the log, a plan only computes them."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from msgspec import Struct

from engine.controllers.namespace_deletion import GRACE_MS
from engine.http.kube.write_warnings import Forecasts
from engine.http.services import Services
from engine.writing.edits.certificate_requests import Sign
from engine.writing.execution import Report
from engine.writing.planned_writes import PlannedWrites
from engine.writing.write_api import WritePath

_OBSERVES: Final = "this server only observes another control plane; write to that one"


class WriteMode(Struct, frozen=True, kw_only=True):
    """How an API carries out writes; the defaults are those of a plan.

    - ``refusal``: why all writes are refused; empty if they are accepted.
    - ``report``: appends Events that clients write; None if they are refused.
    - ``forecasts``: predicts the effect of dry runs.
    - ``sign``: signs the certificates of approved requests; None if this server signs none.
    - ``grace_ms``: milliseconds from marking a namespace as terminating to deleting its contents.
    - ``definitions``: returns the CustomResourceDefinitions that a plan adds, as JSON.
    """

    write_api: WritePath
    refusal: str = ""
    report: Callable[[Sequence[Report], str], Awaitable[None]] | None = None
    forecasts: Forecasts | None = None
    sign: Sign | None = None
    grace_ms: int = 0
    definitions: Callable[[], Sequence[bytes]] = tuple

    @property
    def is_planned(self) -> bool:
        """Whether writes are only computed; then no controller completes deletions later."""
        return isinstance(self.write_api, PlannedWrites)


def served(services: Services, clock_ms: Callable[[], int]) -> WriteMode:
    """Return the mode of a server, which writes to the log."""
    return WriteMode(
        write_api=services.write_api,
        refusal="" if services.compared is None else _OBSERVES,
        report=services.write_api.report,
        forecasts=Forecasts(services.write_api, services.planner, clock_ms),
        sign=services.sign,
        grace_ms=GRACE_MS,
    )


def planned(writes: PlannedWrites) -> WriteMode:
    """Return the mode of a plan, whose writes are computed and collected."""
    return WriteMode(write_api=writes, definitions=writes.definitions)
