"""The Kubernetes API server: the control plane at the root, each simulated member behind its cluster's proxy.

Requests are authenticated by client certificate or token, and authorized by RBAC; errors are Status objects.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from http import HTTPStatus
from typing import Final

import anyio.to_thread
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocketClose

from engine import diagnostics
from engine.controllers.controller import Access
from engine.controllers.garbage_collection import GarbageCollection
from engine.controllers.namespace_deletion import Namespaces
from engine.http import incoming_requests
from engine.http.incoming_requests import Hosts, traced
from engine.http.kube import access, rendering, write_modes
from engine.http.kube.access import Authorizer, Users
from engine.http.kube.account_tokens import AccountTokens
from engine.http.kube.bootstrap_objects import CLUSTER_INFO_PATH, BootstrapObjects
from engine.http.kube.control_plane import ControlPlane
from engine.http.kube.deletion_requests import DeletionRequests
from engine.http.kube.derived_fields import DerivedFields
from engine.http.kube.kubernetes_events.client_writes import EventWrites
from engine.http.kube.line_streams import Lines
from engine.http.kube.members.apis import CONNECTIONS, MemberApis, elsewhere
from engine.http.kube.members.planes import MemberPlanes
from engine.http.kube.members.search import Proxying, Search
from engine.http.kube.rate_limits import Limits, Meter
from engine.http.kube.reviews import Reviews
from engine.http.kube.routing import Guard, KubeApi, WriteHandlers
from engine.http.kube.watches import Watching
from engine.http.kube.write_modes import WriteMode
from engine.http.kube.write_requests import WriteRequests
from engine.http.services import Services
from engine.kubeapi.errors import status_objects
from engine.kubeapi.errors.status_objects import StatusError, internal
from engine.kubeapi.schema.resources import ApiPath
from engine.log.port import LogCutError, LogError
from engine.simulation.member_fleet import Members
from projections.port import NotKeptError, ProjectionError

_log: Final = diagnostics.logger("gateway.kube")
_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_REVIEWS: Final = ("authentication.k8s.io", "authorization.k8s.io")
"""API groups whose objects, such as SubjectAccessReviews, are answered at once and not stored."""


class KubeApplication:
    """The ASGI application of the Kubernetes API.

    It authenticates each request and counts it against the rate limits of its user, from which members of
    ``system:masters`` are exempt; errors become Status objects.
    """

    def __init__(
        self,
        api: KubeApi,
        plane: ControlPlane,
        known: Users,
        meter: Meter,
        allowed_hosts: Hosts,
        controllers: Sequence[Callable[[], Awaitable[None]]],
    ) -> None:
        self.plane = plane
        self._api = api
        self._known = known
        self._meter = meter
        self._hosts = allowed_hosts
        self._controllers = controllers

    async def run(self) -> None:
        """Complete deletions in the background until the process stops."""
        await asyncio.gather(*(controller() for controller in self._controllers))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await WebSocketClose()(scope, receive, send)
            return
        request = Request(scope, receive)
        with traced(request.headers):
            try:
                response = await self._answer(request)
            except Exception as error:  # noqa: BLE001  # every error becomes a Status object
                response = await _refusal(request, error)
            try:
                await response(scope, receive, send)
            except Exception as error:
                # The response has begun, so the server can only close the connection.
                await anyio.to_thread.run_sync(_report, request, error)
                raise

    async def _answer(self, request: Request) -> Response:
        """The response to a request; raises StatusError, and the errors of the log and the views."""
        scope = request.scope
        if host := self._hosts.refused(scope):
            message = f"host {host!r} is not allowed; {incoming_requests.host_remedy(host)}"
            raise StatusError(421, "MisdirectedRequest", message)
        if request.method not in _METHODS:
            return PlainTextResponse("Method Not Allowed", 405, {"allow": ", ".join(_METHODS)})
        # The path below this application's root, since it may be mounted in another application.
        path: str = scope["path"].removeprefix(scope.get("root_path", ""))
        if "\n" in path:
            # A line break must not get into the head of a request to a member.
            return PlainTextResponse("Not Found", 404)
        is_open = path in access.OPEN
        if is_open or (path == CLUSTER_INFO_PATH and "authorization" not in request.headers):
            user = access.ANONYMOUS
        else:
            user = await self._known.authenticate(request)
        access.keep_user(request, user)
        if not (is_open or user.is_master):
            self._meter.count_request(user.name)
        answered = await self._api.answer(request, path)
        if isinstance(answered, Lines) and not user.is_master:
            answered.ended = self._meter.watch(user.name)
        return answered


def create_app(
    services: Services,
    clock_ms: Callable[[], int],
    members: Members | None = None,
    *,
    authority: bytes = b"",
    limits: Limits | None = None,
    writes: WriteMode | None = None,
) -> KubeApplication:
    """Build the ASGI application.

    ``members`` are the members simulated in this process, if any; ``authority`` is the CA certificate (PEM)
    that clients verify the server with; ``limits`` apply per user; by default, ``writes`` are appended to the log.
    """
    bounds, mode = limits or Limits(), writes or write_modes.served(services, clock_ms)
    derived_fields = DerivedFields(services.token, authority)
    planes = MemberPlanes(members, services, clock_ms, derived_fields)
    bootstrap = BootstrapObjects(services, services.url, authority, clock_ms)
    plane = ControlPlane(services, bootstrap, derived_fields, planes.figures, mode.definitions)
    authorizer = Authorizer(services, planes.rights)
    known = Users(plane, planes.plane, authorizer, services.token, clock_ms)
    reviews = Reviews(known, authorizer).answer
    member_apis = MemberApis(
        planes, services, services.tunnels, derived_fields.key, authorizer, reviews, clock_ms
    )
    guard_member = authorizer.check_member_request
    search = Search(plane, planes, guard_member, clock_ms)
    proxying = Proxying(plane, planes, member_apis.answer, guard_member, services.stopping, clock_ms)
    event_writes = None if mode.report is None else EventWrites(services, mode.report, plane, clock_ms)
    remove_events = None if event_writes is None else event_writes.remove_all
    namespaces = Namespaces(
        mode.write_api, services, clock_ms, planes.delete_namespace, mode.grace_ms, remove_events
    )
    garbage = GarbageCollection(Access(services, plane, mode.write_api, clock_ms))
    deletions = DeletionRequests(mode, plane, clock_ms, namespaces, garbage, event_writes)
    writing = WriteRequests(mode, plane, clock_ms, authorizer, namespaces, event_writes)
    guard = authorizer.check_request
    api = KubeApi(
        plane,
        Watching(services, plane, clock_ms, bounds).answer,
        WriteHandlers(writing.write, deletions.delete, deletions.delete_all),
        clock_ms,
        subresource_handlers={
            ("clusters.cluster.karmada.io", "proxy"): member_apis.answer,
            **{("search.search.karmada.io", part): search.answer for part in ("api", "apis")},
            ("proxying.search.karmada.io", "proxy"): proxying.answer,
            ("serviceaccounts", "token"): AccountTokens(plane, derived_fields.key, clock_ms).answer,
            **{("pods", part): elsewhere for part in ("log", "eviction", *CONNECTIONS)},
        },
        reviews=reviews,
        guard=_without_writes(guard, mode.refusal) if mode.refusal else guard,
    )
    meter = Meter(bounds, time.monotonic)
    namespace_controller = partial(namespaces.run, services.stopping)
    # With a ``refusal``, the log has observations of a control plane, whose own garbage collector deletes objects.
    controllers = (namespace_controller,) if mode.refusal else (namespace_controller, garbage.run)
    return KubeApplication(api, plane, known, meter, Hosts(services.hosts), controllers)


def _without_writes(guard: Guard, reason: str) -> Guard:
    """Return a guard that also refuses all writes."""

    async def check(request: Request, api_path: ApiPath | None, path: str) -> None:
        await guard(request, api_path, path)
        is_write = request.method not in incoming_requests.READS
        if is_write and api_path is not None and api_path.group not in _REVIEWS:
            raise StatusError(403, "Forbidden", reason)

    return check


def _status(error: StatusError) -> Response:
    response = rendering.answer(error.body, error.code)
    if error.code == HTTPStatus.TOO_MANY_REQUESTS and error.details is not None:
        response.headers["retry-after"] = str(error.details.get("retryAfterSeconds", 1))
    return response


async def _refusal(request: Request, error: Exception) -> Response:
    """The response to a request that failed with this error."""
    match error:
        case StatusError():
            return _status(error)
        case LogCutError() | NotKeptError():
            return _status(status_objects.expired(str(error)))
        case LogError() | ProjectionError():
            return _status(status_objects.unavailable(str(error)))
        case incoming_requests.StalledError():
            response = _status(StatusError(408, "Timeout", str(error)))
            response.headers["connection"] = "close"
            return response
        case ClientDisconnect():
            return await incoming_requests.disconnected(request, error)
        case _:
            await anyio.to_thread.run_sync(_report, request, error)
            return _status(internal())


def _report(request: Request, error: Exception) -> None:
    """Log an error; slow, because formatting the traceback reads source files."""
    _log.error("request failed", path=request.url.path, error=repr(error), exc_info=error)
