"""The APIs of members, behind the subresource ``proxy`` of their Cluster objects.

This server answers for simulated members; requests to real members go through their agents.
"""

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import Send

from engine import diagnostics
from engine.domain import namespaces
from engine.http.kube import access, bodies
from engine.http.kube.access import act_at
from engine.http.kube.account_tokens import AccountTokens
from engine.http.kube.derived_fields import Showing
from engine.http.kube.list_filters import ObjectFilter
from engine.http.kube.members.plane import MemberPlane, Members
from engine.http.kube.members.watches import MemberWatches
from engine.http.kube.members.writes import MemberWrites
from engine.http.kube.routing import Guard, KubeApi, Verb
from engine.http.services import Services
from engine.http.tunnels import Call, IncompleteError, NotReachableError, Reply
from engine.kubeapi.errors import status_objects
from engine.kubeapi.errors.status_objects import StatusError
from engine.kubeapi.rights import bootstrap_roles, parsing
from engine.kubeapi.rights.rbac import Rights, User
from engine.kubeapi.schema.resources import ApiPath, Resource, parse_path
from engine.simulation import faults, unmanaged
from engine.simulation.state import MemberState
from events import clusters, shapes
from events.kube_objects import KubeObject
from events.validation import known_kinds
from events.validation.known_kinds import CLUSTER_GROUP
from projections import object_tables

_FORBIDDEN: Final = 403
_CLUSTER: Final = object_tables.Kind(CLUSTER_GROUP, "Cluster")
_PATH_SAFE: Final = "/:@!$&'()*+,;="
_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")
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
            _log.warning("response cut off", reason=str(error))


class MemberApis:
    """The APIs of all members; ``answer`` handles the subresource ``clusters/NAME/proxy``.

    ``guard`` authorizes requests by the control plane's roles; ``rights`` returns the rights that these grant.
    """

    def __init__(
        self,
        members: Members | None,
        services: Services,
        clock_ms: Callable[[], int],
        showing: Showing,
        guard: Guard,
        reviews: Verb,
        rights: Callable[[], Awaitable[Rights]],
    ) -> None:
        self._members = members
        self._services = services
        self._clock_ms = clock_ms
        self._showing = showing
        self._guard = guard
        self._reviews = reviews
        self._control_plane_rights = rights
        self._apis: dict[str, KubeApi] = {}
        self._requests: dict[str, int] = {}
        self._planes: dict[str, MemberPlane] = {}

    async def answer(self, request: Request, resource: Resource, api_path: ApiPath) -> Response:
        """Forward a request to the member's API, for the path after ``proxy``; raises StatusError."""
        if api_path.name not in self._apis and not await self._is_known(api_path.name):
            raise status_objects.not_found(resource, api_path.name)
        path = "/" + api_path.rest
        if self._members is None or not _is_simulated(self._members, api_path.name):
            return await self._through_agent(request, api_path.name, path)
        api = self._api(self._members, api_path.name)
        await self._meet_faults(self._members.state_of(api_path.name))
        return await api.answer(request, path)

    async def _meet_faults(self, state: MemberState) -> None:
        """Delay or refuse a request to a member according to the member's faults; raises StatusError."""
        name, own = state.spec.name, state.faults
        number = self._requests[name] = self._requests.get(name, 0) + 1
        if own.lag_ms:
            await asyncio.sleep(own.lag_ms / 1000)
        match faults.refusal(own, number):
            case HTTPStatus.TOO_MANY_REQUESTS:
                raise status_objects.too_many_requests(
                    1, f"cluster {name} throttles requests because of an injected fault"
                )
            case HTTPStatus.SERVICE_UNAVAILABLE:
                raise status_objects.unavailable(
                    f"cluster {name} fails requests because of an injected fault"
                )
            case _:
                pass

    async def _through_agent(self, request: Request, name: str, path: str) -> Response:
        """Send a request through the cluster's agent; the agent's rights in the member apply too."""
        await self._guard(request, parse_path(path), path)
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
            reply = await self._services.tunnels.call(name, call)
        except NotReachableError as error:
            raise status_objects.unavailable(str(error)) from None
        return PassedOn(reply)

    async def _is_known(self, name: str) -> bool:
        """Whether a Cluster of this name exists, simulated or not."""
        if await anyio.to_thread.run_sync(self._is_stored, name):
            return True
        # Another replica may have just stored it.
        await self._services.catch_up()
        return await anyio.to_thread.run_sync(self._is_stored, name)

    def _is_stored(self, name: str) -> bool:
        with self._services.views.store.reading() as rows:
            return object_tables.get(rows, _CLUSTER, "", name) is not None

    def _api(self, members: Members, name: str) -> KubeApi:
        api = self._apis.get(name)
        if api is None:
            plane = MemberPlane(members, name, self._services, self._clock_ms, self._showing)
            watches = MemberWatches(plane, self._clock_ms, self._services.stopping)

            async def log(request: Request, resource: Resource, api_path: ApiPath) -> Response:
                pod = await plane.get(resource, api_path.namespace, api_path.name)
                if pod is None:
                    raise status_objects.not_found(resource, api_path.name)
                container = request.query_params.get("container")
                if container and container not in _containers(pod):
                    raise status_objects.bad_request(
                        f"container {container} is not valid for pod {api_path.name}"
                    )
                return PlainTextResponse(f"{api_path.name} is simulated in {name}\n")

            async def enter(_request: Request, resource: Resource, api_path: ApiPath) -> Response:
                if await plane.get(resource, api_path.namespace, api_path.name) is None:
                    raise status_objects.not_found(resource, api_path.name)
                raise status_objects.bad_request(
                    f"{api_path.name} is simulated in {name}: no command can run in it"
                )

            async def rights(user: User) -> Rights | None:
                return await _rights_of(user, plane, self._control_plane_rights)

            writes = MemberWrites(members, name, plane, self._clock_ms, rights)
            parts: dict[tuple[str, str], Verb] = {
                ("pods", "eviction"): writes.evict,
                ("pods", "log"): log,
                ("pods", "exec"): enter,
                ("serviceaccounts", "token"): AccountTokens(
                    plane, self._showing.key, self._clock_ms, name
                ).answer,
            }
            api = KubeApi(
                plane,
                watches,
                writes,
                self._clock_ms,
                parts=parts,
                reviews=self._reviews,
                guard=_with_members_roles(self._guard, plane),
            )
            self._apis[name] = api
            self._planes[name] = plane
        return api

    def plane(self, name: str) -> MemberPlane | None:
        """The objects of a simulated member; None for others."""
        members = self._members
        if members is None or not _is_simulated(members, name):
            return None
        self._api(members, name)
        return self._planes[name]

    async def rights(self, name: str) -> Rights:
        """The rights of the service accounts of a simulated member; raises StatusError if it does not respond."""
        plane = self.plane(name)
        if plane is None:
            raise status_objects.unauthorized()
        return await _rights_in(plane)

    async def namespace_gone(self, name: str) -> None:
        """Delete a propagated namespace from the simulated members in which clients edited it or wrote objects to it.

        All objects in it are deleted too.
        """
        members = self._members
        if members is None:
            return
        api_version, kind = namespaces.KIND
        ref = shapes.WorkloadRef(api_version=api_version, kind=kind, name=name)
        for member in members.names():
            if unmanaged.fills(members.state_of(member), ref):
                await members.write(member, clusters.MemberObjectDeleted(name=member, object=ref))

    async def figures(self, resource: Resource, namespace: str, fits: ObjectFilter) -> list[KubeObject]:
        """Resource metrics of nodes or pods, from joined simulated members that respond."""
        result: list[KubeObject] = []
        members = self._members
        if members is None:
            return result
        for name in members.names():
            if not members.state_of(name).joined:
                continue
            try:
                await self._meet_faults(members.state_of(name))
                self._api(members, name)
                result.extend((await self._planes[name].listed(resource, namespace, fits)).items)
            except status_objects.StatusError:
                continue  # this member does not respond; report the others
        return result


def _with_members_roles(guard: Guard, plane: MemberPlane) -> Guard:
    """Return a guard that also accepts what roles and bindings in the member permit, even for control plane users."""

    async def check(request: Request, api_path: ApiPath | None, path: str) -> None:
        try:
            await guard(request, api_path, path)
        except StatusError as refusal:
            user, act = access.user_of(request), act_at(request, api_path, path)
            if refusal.code != _FORBIDDEN or not (await _rights_in(plane)).may(user, act):
                raise

    return check


def _containers(pod: KubeObject) -> set[object]:
    return {container.get("name") for field in _CONTAINERS for container in pod.objects_at("spec", field)}


def _is_simulated(members: Members, name: str) -> bool:
    try:
        members.state_of(name)
    except LookupError:
        return False
    return True


async def elsewhere(_request: Request, _resource: Resource, api_path: ApiPath) -> Response:
    """Refuse logs and exec of pods in the control plane; the error names kubectl contexts of members to use instead."""
    raise status_objects.bad_request(
        f"{api_path.name} runs in member clusters, not here: send the request to one of them (kubectl --context MEMBER)"
    )


async def _rights_in(plane: MemberPlane) -> Rights:
    """Return the rights that a member's current roles and bindings grant; raises StatusError if it does not respond."""
    values, catalogue = bootstrap_roles.objects(), await plane.catalogue()
    for kind in parsing.KINDS:
        plural = known_kinds.plural_of(parsing.API_VERSION, kind)
        resource = catalogue.resource(parsing.GROUP, "v1", plural)
        if resource is not None:
            _number, look = await plane.snapshot(resource)
            values.extend(value for _, value in look.items.values())
    return parsing.rights(values)


async def _rights_of(
    user: User, plane: MemberPlane, control_plane: Callable[[], Awaitable[Rights]]
) -> Rights | None:
    """Return the rights that a user has in a member and may grant to others; None if the user may do everything.

    Users of the control plane also have the rights that ``control_plane`` returns.
    """
    if user.is_master or user.may_all:
        return None
    rights = await _rights_in(plane)
    return rights if user.is_account else rights.with_grants_of(await control_plane())
