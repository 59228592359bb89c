"""The APIs of members, behind the subresource ``proxy`` of their Cluster objects.

This server answers for simulated members; requests to real members go through their agents.
"""

from collections.abc import Callable
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import Send

from engine import diagnostics
from engine.http.kube import access, bodies
from engine.http.kube.access import Authorizer, act_at
from engine.http.kube.account_tokens import AccountTokens
from engine.http.kube.members.plane import MemberPlane
from engine.http.kube.members.planes import MemberPlanes, rights_in
from engine.http.kube.members.watches import MemberWatches
from engine.http.kube.members.writes import MemberWrites
from engine.http.kube.routing import Guard, KubeApi, Verb, WriteHandlers
from engine.http.tunnels import Call, IncompleteError, NotReachableError, Reply, Tunnels, UnansweredError
from engine.kubeapi.errors import status_objects
from engine.kubeapi.errors.status_objects import StatusError
from engine.kubeapi.rights.rbac import Rights, User
from engine.kubeapi.schema.resources import ApiPath, Resource, parse_path
from engine.objects import dependencies
from engine.writing.read_side import ReadSide
from events.validation.known_kinds import CLUSTER_GROUP
from projections import object_tables
from projections.port import Rows

CONNECTIONS: Final = ("exec", "attach", "portforward")
"""Subresources of pods that connect a client with a process of the pod."""

_CLUSTER: Final = object_tables.Kind(CLUSTER_GROUP, "Cluster")
_PATH_SAFE: Final = "/:@!$&'()*+,;="
_log = diagnostics.logger("gateway")


class PassedOn(StreamingResponse):
    """The response of a member's API, passed on to the client.

    If the agent does not complete the response, the connection is closed before the end of the body.
    """

    def __init__(self, reply: Reply) -> None:
        headers = {"content-type": reply.content_type} if reply.content_type else {}
        super().__init__(reply.chunks, reply.status, headers)

    async def stream_response(self, send: Send) -> None:
        try:
            await super().stream_response(send)
        except IncompleteError as error:
            # The last part of the body is not sent, so the client sees that the response is incomplete.
            _log.warning("response cut off", error=str(error))


class MemberApis:
    """The APIs of all members; ``answer`` handles the subresource ``clusters/NAME/proxy``."""

    def __init__(
        self,
        planes: MemberPlanes,
        reads: ReadSide,
        tunnels: Tunnels,
        token_key: bytes,
        authorizer: Authorizer,
        reviews: Verb,
        clock_ms: Callable[[], int],
    ) -> None:
        self._planes = planes
        self._reads = reads
        self._tunnels = tunnels
        self._token_key = token_key
        self._authorizer = authorizer
        self._reviews = reviews
        self._clock_ms = clock_ms
        self._apis: dict[str, KubeApi] = {}

    async def answer(self, request: Request, resource: Resource, api_path: ApiPath) -> Response:
        """Forward a request to the member's API, for the path after ``proxy``; raises StatusError."""
        if api_path.name not in self._apis and not await self._is_known(api_path.name):
            raise status_objects.not_found(resource, api_path.name)
        path = "/" + api_path.rest
        plane = self._planes.plane(api_path.name)
        if plane is None:
            return await self._through_agent(request, api_path.name, path)
        await plane.apply_faults()
        if plane.name not in self._apis:
            self._apis[plane.name] = self._api(plane)
        return await self._apis[plane.name].answer(request, path)

    async def _through_agent(self, request: Request, name: str, path: str) -> Response:
        """Send a request through the cluster's agent; the agent's rights in the member apply too."""
        await self._authorizer.check_member_request(request, parse_path(path), path)
        if request.headers.get("upgrade"):
            raise status_objects.bad_request(
                f"cluster {name} is reached through its agent, which forwards no connections to pods"
            )
        query = request.url.query
        # Percent-encode the decoded path again. Otherwise a ``?`` in a name would begin the query, and the
        # member would get a request for another object than the one whose rights were checked.
        target = quote(path, safe=_PATH_SAFE)
        call = Call(
            method=request.method,
            target=f"{target}?{query}" if query else target,
            accept=request.headers.get("accept", ""),
            content_type=request.headers.get("content-type", ""),
            body=await bodies.content(request),
        )
        try:
            reply = await self._tunnels.call(name, call)
        except UnansweredError as error:
            raise status_objects.timed_out(str(error)) from None
        except NotReachableError as error:
            raise status_objects.unavailable(str(error)) from None
        return PassedOn(reply)

    async def _is_known(self, name: str) -> bool:
        """Whether a Cluster of this name exists, simulated or not."""

        def is_stored(rows: Rows) -> bool:
            return object_tables.get(rows, _CLUSTER, "", name) is not None

        # If the Cluster is missing, catch up with the log: another replica may have just stored it.
        return await self._reads.peek(is_stored) or await self._reads.read(is_stored)

    def _api(self, plane: MemberPlane) -> KubeApi:
        async def log(request: Request, resource: Resource, api_path: ApiPath) -> Response:
            pod = await plane.get(resource, api_path.namespace, api_path.name)
            if pod is None:
                raise status_objects.not_found(resource, api_path.name)
            container = request.query_params.get("container")
            fields = (pod.objects_at("spec", field) for field in dependencies.CONTAINERS)
            if container and container not in {item.get("name") for listed in fields for item in listed}:
                raise status_objects.bad_request(
                    f"container {container} is not valid for pod {api_path.name}"
                )
            return PlainTextResponse(f"{api_path.name} is simulated in {plane.name}\n")

        async def enter(_request: Request, resource: Resource, api_path: ApiPath) -> Response:
            if await plane.get(resource, api_path.namespace, api_path.name) is None:
                raise status_objects.not_found(resource, api_path.name)
            raise status_objects.bad_request(
                f"{api_path.name} is simulated in {plane.name}: no command can run in it, and it has no open ports"
            )

        async def rights(user: User) -> Rights | None:
            """Return the rights that a user may grant to others in the member; None if the user may do everything."""
            if user.is_master or user.may_all:
                return None
            own = await rights_in(plane)
            return own if user.is_account else own.with_grants_of(await self._authorizer.rights())

        writes = MemberWrites(plane, self._clock_ms, rights)
        return KubeApi(
            plane,
            MemberWatches(plane, self._clock_ms, self._reads.stopping).answer,
            WriteHandlers(writes.write, writes.delete, writes.delete_all),
            self._clock_ms,
            subresource_handlers={
                ("pods", "eviction"): writes.evict,
                ("pods", "log"): log,
                **{("pods", part): enter for part in CONNECTIONS},
                ("serviceaccounts", "token"): AccountTokens(
                    plane, self._token_key, self._clock_ms, plane.name
                ).answer,
            },
            reviews=self._reviews,
            guard=_with_members_roles(self._authorizer.check_member_request, plane),
        )


def _with_members_roles(guard: Guard, plane: MemberPlane) -> Guard:
    """Return a guard that also accepts what roles and bindings in the member permit, even for control plane users."""

    async def check(request: Request, api_path: ApiPath | None, path: str) -> None:
        try:
            await guard(request, api_path, path)
        except StatusError as refusal:
            user, act = access.user_of(request), act_at(request, api_path, path)
            if refusal.code != HTTPStatus.FORBIDDEN or not (await rights_in(plane)).may(user, act):
                raise

    return check


async def elsewhere(_request: Request, _resource: Resource, api_path: ApiPath) -> Response:
    """Refuse requests to pods in the control plane; the error names kubectl contexts of members to use instead."""
    raise status_objects.bad_request(
        f"{api_path.name} runs in member clusters, not here: send the request to one of them (kubectl --context MEMBER)"
    )
