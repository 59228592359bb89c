"""The Kubernetes API server: the control plane at the root, each simulated member behind its cluster's proxy.

Requests are authenticated by token and authorized by RBAC; errors are Status objects.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from typing import Final, cast

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from engine import diagnostics
from engine.http import bodies, hosts
from engine.http.hosts import Hosts
from engine.http.kube import authentication, rendering
from engine.http.kube.account_tokens import AccountTokens
from engine.http.kube.authentication import Users
from engine.http.kube.authorizer import Authorizer, act_at
from engine.http.kube.bootstrap_objects import CLUSTER_INFO_PATH
from engine.http.kube.control_plane import ControlPlane
from engine.http.kube.forecasts import Forecasts
from engine.http.kube.kubernetes_events.client_writes import EventWrites
from engine.http.kube.line_streams import Lines
from engine.http.kube.members.apis import MemberApis, elsewhere
from engine.http.kube.members.plane import Members
from engine.http.kube.members.proxying import Proxying
from engine.http.kube.members.search import Search
from engine.http.kube.namespace_deletion import GRACE_MS, Namespaces
from engine.http.kube.paths import ApiPath
from engine.http.kube.rate_limits import Limits, Meter
from engine.http.kube.reviews import Reviews
from engine.http.kube.routing import KubeApi
from engine.http.kube.watches import Watching
from engine.http.kube.write_requests import WriteRequests
from engine.http.services import Services
from engine.http.tracing import Traced
from engine.kubeapi.errors import status_objects
from engine.kubeapi.errors.status_objects import StatusError, internal
from engine.kubeapi.rights.rbac import User
from engine.log.port import LogCutError, LogError
from engine.writing.planned_writes import PlannedWrites
from engine.writing.write_api import Writes
from projections.port import NotKeptError, ProjectionError

_log: Final = diagnostics.logger("gateway.kube")
_METHODS: Final = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
_OPEN: Final = ("/healthz", "/livez", "/readyz", "/version")


class KubeApplication(Starlette):
    """The ASGI application, with what it does between requests."""

    def __init__(
        self,
        answer: Callable[[Request], Awaitable[Response]],
        allowed_hosts: Sequence[str],
        namespaces: Namespaces,
    ) -> None:
        super().__init__(
            routes=[Route("/{path:path}", answer, methods=_METHODS)],
            middleware=[
                Middleware(Hosts, allowed=allowed_hosts, refuse=_refuse_host),
                Middleware(Traced),
            ],
            exception_handlers=_HANDLERS,
        )
        self._namespaces = namespaces

    async def run(self, stopping: asyncio.Event) -> None:
        """Finish the deletions of namespaces, until the process stops."""
        await self._namespaces.run(stopping)


def create_app(
    services: Services,
    clock_ms: Callable[[], int],
    members: Members | None = None,
    *,
    authority: bytes = b"",
    limits: Limits | None = None,
    writes: Writes | None = None,
) -> KubeApplication:
    """Build the ASGI application.

    ``members`` are the members simulated in this process, if any; ``authority`` is the CA certificate (PEM)
    that clients verify the server with; ``limits`` apply per user. ``writes`` is used instead of the write API
    of ``services``, for plans.
    """
    bounds = limits or Limits()
    plane = ControlPlane(services, clock_ms, authority, _planned_definitions(writes))
    authorizer = Authorizer(services)
    known = Users(plane, authorizer, services.token, clock_ms)
    reviews = Reviews(known, authorizer).answer

    async def guard_member(request: Request, api_path: ApiPath | None, path: str) -> None:
        if path not in _OPEN and not (user := authentication.of(request)).may_all:
            await authorizer.check(user, act_at(request, api_path, path))

    proxied = MemberApis(members, services, clock_ms, plane.shown, guard_member, reviews, authorizer.rights)
    search = Search(plane, proxied, guard_member, clock_ms)
    proxying = Proxying(plane, proxied, guard_member, services, clock_ms)
    plane.figures, known.member_plane = proxied.figures, proxied.plane
    authorizer.member_rights = proxied.rights

    async def guard(request: Request, api_path: ApiPath | None, path: str) -> None:
        if path not in _OPEN:
            await authorizer.check_request(request, authentication.of(request), api_path, path)

    write_requests = _write_requests(services, writes, plane, clock_ms, authorizer, proxied)
    api = KubeApi(
        plane,
        Watching(services, plane, clock_ms, bounds),
        write_requests,
        clock_ms,
        parts={
            ("clusters.cluster.karmada.io", "proxy"): proxied.answer,
            **{("search.search.karmada.io", part): search.answer for part in ("api", "apis")},
            ("proxying.search.karmada.io", "proxy"): proxying.answer,
            ("serviceaccounts", "token"): AccountTokens(plane, plane.shown.key, clock_ms).answer,
            **{("pods", part): elsewhere for part in ("log", "exec", "eviction")},
        },
        reviews=reviews,
        guard=guard,
    )
    proxying.elsewhere = api.answer

    entrance = _Entrance(api, known, Meter(bounds, time.monotonic))
    return KubeApplication(entrance.answer, services.hosts, write_requests.namespaces)


class _Entrance:
    """Authenticates each request, and counts it against the rate limits of its user."""

    def __init__(self, api: KubeApi, known: Users, meter: Meter) -> None:
        self._api = api
        self._known = known
        self._meter = meter

    async def answer(self, request: Request) -> Response:
        # The path below this application's root, since it may be mounted in another application.
        path = f"/{request.path_params['path']}"
        user = await self._user(request, path)
        authentication.keep(request, user)
        if path not in _OPEN:
            self._meter.spend(user)
        answered = await self._api.answer(request, path)
        if isinstance(answered, Lines):
            answered.ended = self._meter.watch(user)
        return answered

    async def _user(self, request: Request, path: str) -> User:
        """The user of a request: anonymous for health and version, and without credentials for ``cluster-info``."""
        is_anonymous = path == CLUSTER_INFO_PATH and "authorization" not in request.headers
        if path in _OPEN or is_anonymous:
            return authentication.ANONYMOUS
        return await self._known.authenticate(request)


def _planned_definitions(writes: Writes | None) -> Callable[[], Sequence[bytes]]:
    if not isinstance(writes, PlannedWrites):
        return tuple
    return lambda: [manifest for _, manifest in writes.manifests("CustomResourceDefinition")]


def _write_requests(
    services: Services,
    planned: Writes | None,
    plane: ControlPlane,
    clock_ms: Callable[[], int],
    authorizer: Authorizer,
    proxied: MemberApis,
) -> WriteRequests:
    """Return the handlers of writes: of real ones, or of planned ones, whose dry runs are not forecast again."""
    writes, forecasts = (
        (services.write_api, Forecasts(services, clock_ms)) if planned is None else (planned, None)
    )
    event_writes = EventWrites(services, plane, clock_ms) if planned is None else None
    grace_ms = GRACE_MS if planned is None else 0
    namespaces = Namespaces(writes, plane, clock_ms, proxied.namespace_gone, grace_ms)
    requests = WriteRequests(writes, plane, clock_ms, authorizer, namespaces, forecasts, event_writes)
    requests.sign = services.sign if planned is None else None
    return requests


def _status(error: StatusError) -> Response:
    response = rendering.answer(error.body, error.code)
    if error.code == HTTPStatus.TOO_MANY_REQUESTS and error.details is not None:
        response.headers["retry-after"] = str(error.details.get("retryAfterSeconds", 1))
    return response


async def _refuse_host(_request: Request, host: str) -> Response:
    message = f"host {host!r} is not allowed; {hosts.remedy(host)}"
    return _status(StatusError(421, "MisdirectedRequest", message))


async def _refuse(_request: Request, error: Exception) -> Response:
    return _status(cast("StatusError", error))


async def _refuse_stalled(_request: Request, error: Exception) -> Response:
    response = _status(StatusError(408, "Timeout", str(error)))
    response.headers["connection"] = "close"
    return response


async def _refuse_not_kept(_request: Request, error: Exception) -> Response:
    return _status(status_objects.expired(str(error)))


async def _refuse_for_now(_request: Request, error: Exception) -> Response:
    return _status(status_objects.unavailable(str(error)))


def _apologise(request: Request, error: Exception) -> Response:
    # Not async, so that it runs in a thread: formatting the traceback reads source files.
    _log.error("request failed", path=request.url.path, error=repr(error), exc_info=error)
    return _status(internal("internal error; see the server log"))


_HANDLERS: Final = {
    StatusError: _refuse,
    ClientDisconnect: bodies.disconnected,
    bodies.StalledError: _refuse_stalled,
    LogCutError: _refuse_not_kept,
    NotKeptError: _refuse_not_kept,
    LogError: _refuse_for_now,
    ProjectionError: _refuse_for_now,
    Exception: _apologise,
}
