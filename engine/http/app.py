"""The query server: its routes, middleware and error handlers; all errors have one JSON form."""

import time
from typing import Final, cast

import anyio.to_thread
import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match, Mount, Route
from starlette.types import ASGIApp

from engine import diagnostics
from engine.http import incoming_requests, openapi
from engine.http.agents import routes as agents_routes
from engine.http.errors import RefusalError
from engine.http.guards import Guard
from engine.http.incoming_requests import HostCheck, Traced
from engine.http.pages import errors, prediction_routes
from engine.http.pages import routes as pages_routes
from engine.http.plans import jobs, planned_requests
from engine.http.plans import routes as plan_routes
from engine.http.query import health, live_feed, member_routes, queries
from engine.http.services import Services
from engine.http.sessions import Sessions
from engine.log.port import LogCutError, LogError
from engine.simulation.member_fleet import Members
from projections.port import NotKeptError, ProjectionError

_log: Final = diagnostics.logger("gateway")
_REMEDIES: Final = {
    404: "see /openapi.json for the paths",
    405: "see /openapi.json for the methods of this path",
}


KUBERNETES: Final = "/kubernetes"
"""Path of the Kubernetes API on this port, for clients that authenticate with this server's token, such as the CLI."""


def create_app(
    services: Services,
    members: Members | None = None,
    kubernetes: ASGIApp | None = None,
    planning: planned_requests.PlanningApi | None = None,
) -> Starlette:
    """Build the ASGI application; the caller keeps the projector running.

    ``members`` are the simulated clusters, if any. ``kubernetes`` is the Kubernetes API, the same application
    that is served with TLS on its own port; ``planning`` returns a Kubernetes API that computes writes for a plan.
    """
    made_plans = jobs.Jobs(services.planner, plan_routes.now_ms, services.requested_drills)
    app = Starlette(
        routes=[
            *queries.routes(services),
            live_feed.route(services),
            *member_routes.routes(members),
            *agents_routes.routes(services),
            *(plan_routes.routes(services, planning, made_plans) if planning is not None else ()),
            *health.routes(services),
            *pages_routes.routes(services),
            *prediction_routes.routes(services, made_plans),
            Route("/openapi.json", _openapi, methods=["GET"]),
            *([Mount(KUBERNETES, kubernetes)] if kubernetes is not None else []),
        ],
        middleware=[
            # Outermost first: refuse foreign hosts before looking at credentials.
            Middleware(HostCheck, allowed=services.hosts, refuse=_refuse_host),
            Middleware(Guard, sessions=Sessions(services.token, services.login, time.time)),
            Middleware(Traced),
        ],
        exception_handlers={
            RefusalError: _refuse,
            HTTPException: _refuse_route,
            ClientDisconnect: incoming_requests.disconnected,
            incoming_requests.StalledError: _refuse_stalled,
            LogCutError: _refuse_not_kept,
            NotKeptError: _refuse_not_kept,
            LogError: _refuse_for_now,
            ProjectionError: _refuse_for_now,
            Exception: _apologise,
        },
    )
    # Otherwise ``/bindings`` would redirect to the page of a binding with an empty key.
    app.router.redirect_slashes = False
    return app


async def _openapi(_request: Request) -> Response:
    body = await anyio.to_thread.run_sync(lambda: msgspec.json.encode(openapi.document()))
    return Response(body, media_type="application/json")


async def _refuse_host(request: Request, host: str) -> Response:
    reason = f"host {host!r} is not allowed"
    return await errors.answer(
        request, RefusalError(421, "Host", reason, incoming_requests.host_remedy(host))
    )


async def _refuse(request: Request, error: Exception) -> Response:
    return await errors.answer(request, cast("RefusalError", error))


async def _refuse_route(request: Request, error: Exception) -> Response:
    http_error = cast("HTTPException", error)
    reason = f"{request.method[:20]} {request.url.path[:200]}: {http_error.detail}"
    refusal = RefusalError(
        http_error.status_code, "path", reason, _REMEDIES.get(http_error.status_code, "see /openapi.json")
    )
    return await errors.answer(request, refusal, _allowed(request) or http_error.headers)


def _allowed(request: Request) -> dict[str, str]:
    """Return the header ``Allow`` with the methods of all routes of a path; Starlette names only the first route's."""
    methods = {
        method
        for route in cast("Starlette", request.app).routes
        if isinstance(route, Route) and route.matches(request.scope)[0] is Match.PARTIAL
        for method in route.methods or ()
    }
    return {"Allow": ", ".join(sorted(methods))} if methods else {}


async def _refuse_stalled(_request: Request, error: Exception) -> Response:
    refusal = RefusalError(408, "body", str(error), "send the whole body without pauses")
    # Close the connection: the rest of the body may still arrive and must not be read as another request.
    return refusal.response({"connection": "close"})


async def _refuse_not_kept(request: Request, error: Exception) -> Response:
    return await errors.answer(request, RefusalError(410, "log", str(error), "use a newer number or instant"))


async def _refuse_for_now(request: Request, error: Exception) -> Response:
    return await errors.answer(request, RefusalError(503, "log", str(error), "try again"))


def _apologise(request: Request, error: Exception) -> Response:
    # The handler is not async, so Starlette runs it in a thread: formatting the traceback reads source files.
    _log.error("request failed", path=request.url.path, error=repr(error), exc_info=error)
    refusal = RefusalError(500, "server", "internal error; see the server log", "please report it")
    return errors.chosen(request, refusal)
