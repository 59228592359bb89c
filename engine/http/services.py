"""Dependencies of the server's routes: the log, the views, the write API, explanations."""

import asyncio
import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from msgspec import Struct
from prometheus_client.registry import Collector

from engine.http.sessions import NO_LOGIN, Login
from engine.http.tunnels import Tunnels
from engine.log.port import NumberedLog
from engine.observer.report import Report
from engine.plans import drills
from engine.plans.questions import Question
from engine.reconcilers.explained import Explained
from engine.writing.write_api import WriteApi
from events.records import StoredRecord
from projections.as_of_views import AsOfViews
from projections.port import Views

_AFTER_FAILURE_S: Final = 1.0


class Inquiry(Protocol):
    """Explanations and verifications, computed from the log instead of the views."""

    async def explain(self, key: str, number: int | None) -> Explained | None:
        """Explain a binding's placement, now or at a sequence number of the log; None if there is no decision."""
        ...

    async def verify(self, *, views: bool = False) -> Struct:
        """Verify the whole log, and with ``views`` the views too; return the report."""
        ...


class Planner(Protocol):
    """Predictions of the effect of a change."""

    async def predict(self, question: Question, progress: Callable[[int], None]) -> bytes:
        """Return the prediction of a change as JSON (``plans.predictions.Prediction``).

        ``progress`` gets the virtual time that has passed, in milliseconds. Raises questions.PlanError.
        """
        ...


def _always() -> bool:
    return True


@dataclass(frozen=True, kw_only=True)
class Services:
    """Dependencies of the server's routes; ``is_ready`` returns whether the rest of the process is ready.

    ``url`` is the address of the Kubernetes API, ``token`` the administrator's token, ``login`` the code that starts a
    browser session, ``hosts`` are further host names to answer for. ``collectors`` provide the metrics of the rest of
    the process and are called on the event loop. ``drilled`` has the results of the periodic drills, ``asked`` those
    of the newest drill that a client started. ``compared`` is the observer's report, None if no other control plane is
    observed. ``sign`` signs client certificates (``identity.client_certificates``); None disables that. Set
    ``stopping`` when the process shuts down: live feeds then end with a bookmark.
    """

    log: NumberedLog
    views: Views
    as_of_views: AsOfViews
    write_api: WriteApi
    inquiry: Inquiry
    planner: Planner
    token: str
    url: str = ""
    sign: Callable[[bytes, dt.datetime, dt.timedelta], bytes] | None = None
    login: Login = NO_LOGIN
    hosts: Sequence[str] = ()
    is_ready: Callable[[], bool] = _always
    collectors: Sequence[Collector] = ()
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    tunnels: Tunnels = field(default_factory=Tunnels)
    drilled: drills.Latest = field(default_factory=drills.Latest)
    asked: drills.Latest = field(default_factory=drills.Latest)
    compared: Report | None = None

    async def catch_up(self) -> int:
        """Wait until the views include every write that any replica answered before the call.

        Return the sequence number of the newest record at that time. Raises LogError if the log can't be reached.
        """
        number = await self.log.newest()
        await self.views.wait_folded(number)
        return number

    async def folded_records(self, after: int, limit: int) -> tuple[list[StoredRecord], int]:
        """Return folded records after a sequence number, and the number up to which they are complete.

        At most ``limit`` records are read. Sequence numbers have gaps, so the read may return records that are not
        folded yet; they are left out.
        """
        folded = self.views.folded
        records = await self.log.read_all(after, min(limit, folded - after))
        known = [record for record in records if record.number <= folded]
        return known, known[-1].number if known and len(known) == len(records) else folded

    async def is_more(self, after: int) -> bool:
        """Wait until the views have folded beyond this sequence number; return False if the process stops."""
        while not self.stopping.is_set() and self.views.folded <= after:
            more = asyncio.ensure_future(self.views.wait_folded(after + 1))
            stopping = asyncio.ensure_future(self.stopping.wait())
            try:
                await asyncio.wait((more, stopping), return_when=asyncio.FIRST_COMPLETED)
                if more.done() and more.exception() is not None:
                    # The projection failed and is being retried; pause instead of spinning.
                    await asyncio.wait((stopping,), timeout=_AFTER_FAILURE_S)
            finally:
                more.cancel()
                stopping.cancel()
        return not self.stopping.is_set()
