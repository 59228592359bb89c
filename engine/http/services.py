"""Dependencies of the server's routes: the log, the views, the write API, explanations."""

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from msgspec import Struct
from prometheus_client.registry import Collector

from engine.http.sessions import NO_LOGIN, Login
from engine.http.tunnels import Tunnels
from engine.observer.report import Report
from engine.plans import drills
from engine.plans.questions import Question
from engine.reconcilers.explanation_types import Explained
from engine.writing.read_side import ReadSide
from engine.writing.write_api import WriteApi
from projections.as_of_views import AsOfViews


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


@dataclass(frozen=True, kw_only=True)
class Services(ReadSide):
    """Dependencies of the server's routes; ``faults`` returns why the rest of the process is not ready.

    ``url`` is the address of the Kubernetes API, ``token`` the administrator's token, ``login`` the code that starts a
    browser session, ``hosts`` are further host names to answer for. ``collectors`` provide the metrics of the rest of
    the process and are called on the event loop. ``periodic_drills`` has the newest results of the server's own drills,
    ``requested_drills`` those of the newest drill that a client started. ``compared`` is the observer's report, None if
    no other control plane is observed. ``sign`` signs client certificates (``identity.client_certificates``); None
    disables that. When ``stopping`` is set, live feeds end with a bookmark.
    """

    as_of_views: AsOfViews
    write_api: WriteApi
    inquiry: Inquiry
    planner: Planner
    token: str
    url: str = ""
    sign: Callable[[bytes, dt.datetime, dt.timedelta], bytes] | None = None
    login: Login = NO_LOGIN
    hosts: Sequence[str] = ()
    faults: Callable[[], Sequence[str]] = tuple[str, ...]
    collectors: Sequence[Collector] = ()
    tunnels: Tunnels = field(default_factory=Tunnels)
    periodic_drills: drills.Latest = field(default_factory=drills.Latest)
    requested_drills: drills.Latest = field(default_factory=drills.Latest)
    compared: Report | None = None
