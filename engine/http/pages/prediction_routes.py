"""HTML pages about predictions and comparisons: plans, the newest drill, decisions of an observed control plane.

They show only the current state. Plans and drills are not in the log, so a page whose content changes reloads
itself periodically. ``plan_values`` computes the values of plans and drills.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

import anyio.to_thread
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
from events import keys

_Page = tuple[str, Mapping[str, object]]
"""The name of the HTML template, and the values for it."""


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
        self._effects = plan_values.Effects()
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
        common = {"json": "", "view": errors.NOW, "path": request.url.path, "feed": "", "types": ""}
        return self._templates.get_template(template).render({**common, **values})

    def plans(self, _request: Request) -> _Page:
        plans = self._plans.all()[::-1]
        is_running = any(plan.state == State.RUNNING for plan in plans)
        values = {"rows": self._effects.of(plans), "badges": plan_values.BADGES, "is_running": is_running}
        return "plans.html", {**values, "json": f"{PREFIX}/plans"}

    def plan(self, request: Request) -> _Page:
        """One plan; raises RefusalError (404) if it is unknown or no longer kept."""
        plan = self._plans.get(str(request.path_params["id"]))
        is_running = plan.state == State.RUNNING
        values = {**plan_values.shown(plan), "badges": plan_values.BADGES, "is_running": is_running}
        return "plan.html", {**values, "json": f"{PREFIX}/plans/{plan.id}"}

    def drills(self, _request: Request) -> _Page:
        newest = max(self._drilled, key=lambda drill: drill.ended_ms)
        return "drills.html", plan_values.drill(newest)

    def shadow(self, _request: Request) -> _Page:
        report = self._compared
        values = {"is_observing": False} if report is None else {"is_observing": True, **_compared(report)}
        return "shadow.html", values


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


def _compared(report: reports.Report) -> dict[str, object]:
    """Return the values of the page that compares an observed control plane's decisions with the engine's.

    Unexplained examples come first; the examples of one verdict are ordered newest first.
    """
    examples = [
        (compared, keys.full_name(*keys.split(compared.timeline_key)), reports.differing(compared))
        for verdict in reversed(shadow.VERDICTS)
        # Copy the list, because the observer appends to it meanwhile.
        for compared in reversed(tuple(report.examples.get(verdict, ())))
    ]
    names = {"badges": _BADGES, "meanings": _MEANINGS, "placed": reports.placed, "reason": reports.reason}
    return {**names, "decisions": report.decisions, "verdicts": dict(report.verdicts), "examples": examples}
