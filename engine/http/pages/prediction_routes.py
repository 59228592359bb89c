"""HTML pages about predictions and comparisons: plans, the newest drill, decisions of an observed control plane.

They show only the current state. Plans and drills are not in the log, so a page whose content changes reloads
itself periodically. ``plan_values`` computes the values of plans and drills.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

import anyio.to_thread
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from engine.http.pages import errors, plan_values
from engine.http.plans.jobs import Jobs, State
from engine.http.query import parameters
from engine.http.query.api_routes import PREFIX, read_query
from engine.http.services import Services
from engine.observer import report as reports
from engine.observer import shadow
from engine.plans.drills import Latest
from events import keys, observations

_Page = tuple[str, Mapping[str, object]]
"""The template's name and its values."""


def routes(services: Services, plans: Jobs) -> list[Route]:
    pages = _Pages(plans, (services.periodic_drills, services.requested_drills), services.compared)
    table: tuple[tuple[str, Callable[[Request], _Page]], ...] = (
        ("/plans", pages.plans),
        ("/plans/{id}", pages.plan),
        ("/drills", pages.drills),
        ("/shadow", pages.shadow),
    )
    return [Route(path, pages.answering(show), methods=["GET"]) for path, show in table]


class _Pages:
    def __init__(self, plans: Jobs, drilled: Sequence[Latest], compared: reports.Report | None) -> None:
        self._plans = plans
        self._drilled = drilled
        self._compared = compared
        self._summaries = plan_values.Summaries()
        self._templates = errors.templates()

    def answering(self, show: Callable[[Request], _Page]) -> Callable[[Request], Awaitable[Response]]:
        """Wrap a page function as a request handler that calls it in a thread, since predictions may be large."""

        async def answer(request: Request) -> Response:
            read_query(request, parameters.Query)
            text = await anyio.to_thread.run_sync(self._rendered, show, request)
            return HTMLResponse(text)

        return answer

    def _rendered(self, show: Callable[[Request], _Page], request: Request) -> str:
        template, values = show(request)
        common = {"json": "", "moment": errors.NOW, "path": request.url.path, "feed": "", "types": ""}
        return self._templates.get_template(template).render({**common, **values})

    def plans(self, _request: Request) -> _Page:
        plans = self._plans.all()[::-1]
        is_running = any(plan.state == State.RUNNING for plan in plans)
        values = {"rows": self._summaries.rows(plans), "is_running": is_running}
        return "plans.html", {**values, "json": f"{PREFIX}/plans"}

    def plan(self, request: Request) -> _Page:
        """One plan; raises RefusalError (404) if it is unknown or no longer kept."""
        plan = self._plans.get(str(request.path_params["id"]))
        is_running = plan.state == State.RUNNING
        values = {"plan": plan_values.shown(plan), "is_running": is_running}
        return "plan.html", {**values, "json": f"{PREFIX}/plans/{plan.id}"}

    def drills(self, _request: Request) -> _Page:
        newest = max(self._drilled, key=lambda drill: drill.ended_ms)
        return "drills.html", {"drill": plan_values.drill(newest)}

    def shadow(self, _request: Request) -> _Page:
        report = self._compared
        values = {"report": None if report is None else shadow_values(report)}
        return "shadow.html", values


METER_PIXELS: Final = 240
_BADGES: Final = {
    shadow.SAME: "scheduled",
    shadow.RACE: "waiting",
    shadow.KNOWN: "waiting",
    shadow.UNEXPLAINED: "failed",
}
_MEANINGS: Final = {
    shadow.SAME: "Reballast makes the same decision.",
    shadow.RACE: "Karmada's scheduler decided from a cache that lagged behind its API.",
    shadow.KNOWN: "The results differ for a documented reason.",
    shadow.UNEXPLAINED: "No reason for the difference is known.",
}


class Verdict(Struct, frozen=True, kw_only=True):
    """A verdict of the comparison, its number of decisions, and their share of all compared decisions."""

    name: str
    badge: str
    meaning: str
    count: int
    percent: str
    pixels: int


class Example(Struct, frozen=True, kw_only=True):
    """A decision for which the observed and the computed result differ.

    ``why`` is the cause of the difference. ``reasons`` are pairs (cluster, reason): why the computed result excludes
    that cluster. ``key`` is the timeline key of the binding.
    """

    verdict: str
    badge: str
    key: str
    binding: str
    version: int
    why: str
    observed: str
    computed: str
    reasons: list[tuple[str, str]]


class Shown(Struct, frozen=True, kw_only=True):
    """The comparison with the observed control plane's decisions, as the page shows it.

    Unexplained examples come first; the examples of one verdict are ordered newest first.
    """

    decisions: int
    verdicts: list[Verdict]
    examples: list[Example]


def shadow_values(report: reports.Report) -> Shown:
    """Return the values of the page that compares an observed control plane's decisions with the engine's."""
    decisions = [
        (verdict, compared)
        for verdict in reversed(shadow.VERDICTS)
        # Copy the list, because the observer appends to it meanwhile.
        for compared in reversed(tuple(report.examples.get(verdict, ())))
    ]
    return Shown(
        decisions=report.decisions,
        verdicts=[_verdict(name, count, report.decisions) for name, count in report.verdicts.items()],
        examples=[_example(verdict, compared) for verdict, compared in decisions],
    )


def _verdict(name: str, count: int, total: int) -> Verdict:
    return Verdict(
        name=name,
        badge=_BADGES.get(name, "waiting"),
        meaning=_MEANINGS.get(name, ""),
        count=count,
        percent=f"{count / max(total, 1):.2%}",
        pixels=max(METER_PIXELS * count // max(total, 1), 1) if count else 0,
    )


def _example(verdict: str, compared: observations.DecisionCompared) -> Example:
    key = compared.timeline_key
    return Example(
        verdict=verdict,
        badge=_BADGES.get(verdict, "waiting"),
        key=key,
        binding=keys.full_name(*keys.split(key)),
        version=compared.version,
        why=compared.why,
        observed=reports.placed(compared.observed),
        computed=reports.placed(compared.computed),
        reasons=[(verdict.cluster, reports.reason(verdict)) for verdict in reports.differing(compared)],
    )
