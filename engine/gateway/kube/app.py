"""The server of the Kubernetes API: the control plane at the root, each simulated member behind its proxy.

What it refuses, it refuses as Kubernetes does, with a Status.
"""

import hmac
from collections.abc import Callable
from typing import Final, cast

import structlog
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from engine.gateway.kube import rendering, reviews
from engine.gateway.kube.control import ControlPlane
from engine.gateway.kube.members import MemberApis, Members
from engine.gateway.kube.serving import KubeApi
from engine.gateway.kube.watching import Watching
from engine.gateway.kube.writing import Writing
from engine.gateway.services import Services
from engine.gateway.tracing import Traced
from engine.kube import statuses
from engine.kube.statuses import StatusError, internal
from engine.log.port import LogError
from projections.port import ProjectionError

_log: Final = structlog.get_logger("gateway.kube")
_METHODS: Final = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
_OPEN: Final = ("/healthz", "/livez", "/readyz", "/version")
_TOO_MANY: Final = 429


def create_app(services: Services, clock_ms: Callable[[], int], members: Members | None = None) -> Starlette:
    """The server over these services, and over the members that are simulated here, if any are."""
    proxied = MemberApis(members, services, clock_ms)
    plane = ControlPlane(services)
    api = KubeApi(
        plane,
        Watching(services, plane, clock_ms),
        Writing(services.door, plane, clock_ms),
        clock_ms,
        parts={("clusters.cluster.karmada.io", "proxy"): proxied.answer},
        reviews=reviews.answering(lambda given: _is_token(given, services.token)),
    )

    async def answer(request: Request) -> Response:
        return await api.answer(request, request.url.path)

    return Starlette(
        routes=[Route("/{path:path}", answer, methods=_METHODS)],
        middleware=[Middleware(TokenGuard, token=services.token), Middleware(Traced)],
        exception_handlers={
            StatusError: _refuse,
            LogError: _refuse_for_now,
            ProjectionError: _refuse_for_now,
            Exception: _apologise,
        },
    )


class TokenGuard:
    """Middleware that lets nobody in without the token; health and release are told to everybody."""

    def __init__(self, app: ASGIApp, *, token: str) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Lets a request pass, or answers it."""
        if scope["type"] != "http" or scope["path"] in _OPEN:
            await self._app(scope, receive, send)
            return
        scheme, _, given = Headers(scope=scope).get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and _is_token(given.strip(), self._token):
            await self._app(scope, receive, send)
        else:
            await _status(statuses.unauthorized())(scope, receive, send)


def _is_token(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())


def _status(error: StatusError) -> Response:
    response = rendering.answer(error.body, error.code)
    if error.code == _TOO_MANY:
        response.headers["retry-after"] = "1"
    return response


async def _refuse(_request: Request, error: Exception) -> Response:
    return _status(cast("StatusError", error))


async def _refuse_for_now(_request: Request, error: Exception) -> Response:
    return _status(statuses.unavailable(str(error)))


def _apologise(request: Request, error: Exception) -> Response:
    # Not async, so that it runs in a thread: telling where an error came from reads files.
    _log.error("request failed", path=request.url.path, error=repr(error), exc_info=error)
    words = "something went wrong that should not; it stands in the server's log"
    return _status(internal(words))
