"""Request routing of a Kubernetes API, for both the control plane and the members."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final, Protocol

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from engine.http.incoming_requests import READS
from engine.http.kube import api_metadata, list_responses, rendering, requests
from engine.http.kube.control_plane import Listed
from engine.http.kube.requests import ObjectFilter
from engine.kubeapi.conversion import scales
from engine.kubeapi.errors import status_objects
from engine.kubeapi.errors.status_objects import Cause
from engine.kubeapi.requests import options
from engine.kubeapi.schema.resources import ApiPath, Catalogue, Resource, control_plane, parse_path
from events.kube_fields import ListMeta
from events.kube_objects import KubeObject

Verb = Callable[[Request, Resource, ApiPath], Awaitable[Response]]
SubresourceHandler = Callable[[Request, Resource, ApiPath], Awaitable[Response | str]]
"""A handler of a subresource. If it returns a path, the API answers as if the request were for that path."""

Watch = Callable[[Resource, ApiPath, requests.Query, requests.Form, ObjectFilter], Awaitable[Response]]
"""A function that returns the response to a watch; it raises StatusError."""

Guard = Callable[[Request, ApiPath | None, str], Awaitable[None]]
"""A function that raises StatusError if the user may not send the request.

The last argument is the path of the request; it is checked if the ``ApiPath`` is None.
"""

_VERBS: Final = {"PUT": "update", "PATCH": "patch"}
_TOKEN_CHARS_MAX: Final = 4_096


class Plane(Protocol):
    """Reads of the kinds and objects of an API."""

    async def catalogue(self) -> Catalogue:
        """The kinds that are served now."""
        ...

    async def resource(self, api_path: ApiPath) -> Resource | None:
        """The kind that a path names; None if it is unknown."""
        ...

    async def newest(self) -> int:
        """The highest resourceVersion that this API has returned, on any replica."""
        ...

    async def get(
        self, resource: Resource, namespace: str, name: str, *, is_fresh: bool = True
    ) -> KubeObject | None:
        """One object, None if there is none; ``is_fresh``: first wait until this server knows the newest version."""
        ...

    async def listed(
        self,
        resource: Resource,
        namespace: str,
        fits: ObjectFilter,
        *,
        limit: int = 0,
        after: str = "",
        brief: bool = False,
        is_fresh: bool = True,
    ) -> Listed:
        """A page of the objects that fit; raises ValueError if ``after`` is not a continue token of ``Listed``.

        With ``brief`` the objects have only the fields that a table shows. ``is_fresh``: first wait until this
        server knows the newest versions.
        """
        ...


class WriteHandlers(Struct, frozen=True):
    """The write requests of an API. All raise StatusError.

    - ``write``: POST to a collection, and PUT and PATCH of an object or subresource.
    - ``delete``: DELETE of an object.
    - ``delete_all``: DELETE of a collection; it gets the objects that the selectors chose.
    """

    write: Verb
    delete: Verb
    delete_all: Callable[[Request, Resource, ApiPath, list[KubeObject]], Awaitable[Response]]


class _Position(Struct, frozen=True, array_like=True):
    """Continue token: the key to continue after, the resourceVersion of the first page, and how many objects follow."""

    after: str
    number: int
    left: int = 0


class KubeApi:
    """Handle requests below a root path.

    ``subresource_handlers`` are the handlers of subresources that only this API serves, by (resource, subresource).
    ``writes`` is None for a read-only API.
    """

    def __init__(
        self,
        plane: Plane,
        watch: Watch,
        writes: WriteHandlers | None,
        clock_ms: Callable[[], int],
        subresource_handlers: Mapping[tuple[str, str], SubresourceHandler] | None = None,
        reviews: Verb | None = None,
        guard: Guard | None = None,
    ) -> None:
        self._plane = plane
        self._watch = watch
        self._writes = writes
        self._clock_ms = clock_ms
        self._subresource_handlers = subresource_handlers or {}
        self._reviews = reviews
        self._guard = guard

    async def answer(self, request: Request, path: str) -> Response:
        """Handle a request for a path below the root; raises StatusError."""
        steps = path.strip("/").split("/")
        api_path = parse_path(path)
        if self._guard is not None:
            await self._guard(request, api_path, path)
        if request.method in READS:
            response = await api_metadata.answer(request, steps, self._plane.catalogue)
            if response is not None:
                return response
        if api_path is None:
            return await self._not_found(steps)
        resource = await self._plane.resource(api_path)
        if resource is None:
            return await self._not_found(steps)
        if api_path.namespace and not resource.namespaced:
            raise status_objects.no_such_path()
        if resource.namespaced and api_path.name and not api_path.namespace:
            raise status_objects.no_such_path()
        handle = self._subresource_request if api_path.part else self._object_request
        response = await handle(request, resource, api_path)
        if resource.deprecation:
            rendering.add_warning(response, resource.deprecation[: rendering.WARNING_CHARS_MAX])
        return response

    async def _has_group(self, group: str) -> bool:
        known = control_plane().groups
        return any(served.name == group for served in known) or any(
            served.name == group for served in (await self._plane.catalogue()).groups
        )

    async def _not_found(self, steps: list[str]) -> Response:
        """The response for an unknown path: a Status if its API group exists, else plain text, as in Kubernetes."""
        match steps:
            case ["api", _, *_]:
                raise status_objects.no_such_path()
            case ["apis", group, *_] if await self._has_group(group):
                raise status_objects.no_such_path()
            case _:
                return PlainTextResponse("404 page not found\n", 404)

    async def _object_request(self, request: Request, resource: Resource, api_path: ApiPath) -> Response:
        """Handle a request for a collection or an object."""
        match request.method:
            case "GET" | "HEAD" if "get" in resource.verbs:
                return await self._read(request, resource, api_path)
            case "POST" | "DELETE" if not api_path.name and resource.namespaced and not api_path.namespace:
                raise status_objects.method_not_allowed()
            case "POST" if not api_path.name and "create" in resource.verbs:
                # Kinds that can only be created, such as SubjectAccessReview, are answered at once and not
                # stored.
                if resource.verbs == ("create",) and self._reviews is not None:
                    return await self._reviews(request, resource, api_path)
                return await self._handlers().write(request, resource, api_path)
            case "PUT" | "PATCH" if api_path.name and _VERBS[request.method] in resource.verbs:
                return await self._handlers().write(request, resource, api_path)
            case "DELETE" if api_path.name and "delete" in resource.verbs:
                return await self._handlers().delete(request, resource, api_path)
            case "DELETE" if "deletecollection" in resource.verbs:
                fits = ObjectFilter(resource, requests.query(request))
                listed = await self._plane.listed(resource, api_path.namespace, fits)
                return await self._handlers().delete_all(request, resource, api_path, listed.items)
            case _:
                raise status_objects.method_not_allowed()

    async def _subresource_request(self, request: Request, resource: Resource, api_path: ApiPath) -> Response:
        """Handle a request for a subresource."""
        own = self._subresource_handlers.get((resource.qualified, api_path.part))
        if own is not None:
            answered = await own(request, resource, api_path)
            return await self.answer(request, answered) if isinstance(answered, str) else answered
        if api_path.rest or resource.subresource(api_path.part) is None:
            raise status_objects.no_such_path()
        match request.method, api_path.part:
            case "GET", "scale":
                form = requests.form(request.headers.get("accept", ""), requests.query(request).include)
                scale = scales.scale_of(resource, await self._object(resource, api_path))
                shown = rendering.render_object(scales.SCALE, scale, form, self._clock_ms())
                return rendering.answer(shown)
            case "GET", "status" | "approval":
                return await self._read(request, resource, api_path)
            case ("PUT" | "PATCH", "scale" | "status" | "approval") | ("PUT", "finalize"):
                return await self._handlers().write(request, resource, api_path)
            case _:
                raise status_objects.method_not_allowed()

    async def _read(self, request: Request, resource: Resource, api_path: ApiPath) -> Response:
        query = requests.query(request)
        form = requests.form(request.headers.get("accept", ""), query.include)
        is_watch = query.watch and not api_path.name
        if is_watch and "watch" not in resource.verbs:
            raise status_objects.method_not_allowed()
        if is_watch:
            _check_options(options.of_watch(query.match, query.after, initial_events=query.initial_events))
            if request.headers.get("upgrade", "").lower() == "websocket":
                # Watches over WebSockets are not served. After a 200, the client of fabric8 watches over HTTP at once;
                # after a 503 it first repeats the request for minutes. It reads the whole body, so send an empty one.
                return Response()
            return await self._watch(
                resource, api_path, query, form, ObjectFilter(resource, query, api_path.name)
            )
        if api_path.name:
            if wrong := requests.version_fault(query.resource_version):
                raise status_objects.bad_request(wrong)
            # Do not wait 3 s for the version as Kubernetes does: the log has every version that a replica returned.
            if query.is_versioned and int(query.resource_version) > (newest := await self._plane.newest()):
                raise status_objects.version_too_large(query.resource_version, newest)
            value = await self._object(resource, api_path, is_fresh=query.resource_version != "0")
            return rendering.answer(rendering.render_object(resource, value, form, self._clock_ms()))
        return await self._list(resource, api_path, query, form)

    async def _list(
        self, resource: Resource, api_path: ApiPath, query: requests.Query, form: requests.Form
    ) -> Response:
        version = query.resource_version
        _check_options(
            options.of_list(version, query.match, query.after, initial_events=query.initial_events)
        )
        if query.after and version not in ("", "0"):
            raise status_objects.bad_request("specifying resource version is not allowed when using continue")
        if wrong := requests.version_fault(version):
            raise status_objects.bad_request(f"invalid resource version: {wrong}")
        start = _position(query.after)
        fits = ObjectFilter(resource, query)
        try:
            listed = await self._plane.listed(
                resource,
                api_path.namespace,
                fits,
                limit=query.limit,
                after=start.after,
                brief=form.is_brief,
                is_fresh=query.resource_version != "0",
            )
        except (ValueError, msgspec.MsgspecError):
            raise status_objects.bad_request("continue key is not valid") from None
        if int(query.resource_version or 0) > listed.number:
            raise status_objects.version_too_large(query.resource_version, listed.number)
        if query.match == options.EXACT and int(query.resource_version) != listed.number:
            raise status_objects.expired(
                f"the objects at resourceVersion {query.resource_version} are no longer stored"
            )
        number = start.number or listed.number
        metadata: ListMeta = {"resourceVersion": str(number)}
        if listed.after:
            left = max(start.left - len(listed.items), 0) if query.after else listed.left
            metadata["continue"] = msgspec.json.encode(_Position(listed.after, number, left)).hex()
            if left and not (query.label_selector or query.field_selector):
                metadata["remainingItemCount"] = left
        elif resource.custom:
            metadata["continue"] = ""

        return await list_responses.answer(resource, listed.items, form, self._clock_ms(), metadata)

    async def _object(self, resource: Resource, api_path: ApiPath, *, is_fresh: bool = True) -> KubeObject:
        value = await self._plane.get(resource, api_path.namespace, api_path.name, is_fresh=is_fresh)
        if value is None:
            raise status_objects.not_found(resource, api_path.name)
        return value

    def _handlers(self) -> WriteHandlers:
        if self._writes is None:
            raise status_objects.method_not_allowed()
        return self._writes


def _check_options(wrong: Iterable[Cause]) -> None:
    """Raise StatusError for query options that are invalid together."""
    if faults := list(wrong):
        raise status_objects.invalid_options("ListOptions", *faults)


def _position(text: str) -> _Position:
    if not text:
        return _Position("", 0)
    if len(text) > _TOKEN_CHARS_MAX:
        raise status_objects.bad_request("continue key is too long")
    try:
        return msgspec.json.decode(bytes.fromhex(text), type=_Position)
    except (ValueError, msgspec.MsgspecError):
        raise status_objects.bad_request("continue key is not valid") from None
