"""Parsing of write requests: the object that the path names, the options, and the edit that the body describes.

The control plane and the APIs of simulated members parse requests alike, but carry the edits out differently.
"""

import secrets
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from msgspec import Struct, structs
from starlette.requests import Request
from starlette.responses import Response

from engine import loop_share
from engine.http import incoming_requests
from engine.http.kube import access, bodies, requests
from engine.karmada.default_tolerations import TolerationSeconds
from engine.kubeapi.conversion import scales, versions
from engine.kubeapi.errors import causes, status_objects
from engine.kubeapi.errors.status_objects import StatusError
from engine.kubeapi.patching import managed_fields
from engine.kubeapi.rights.rbac import User
from engine.kubeapi.schema.resources import ApiPath, Resource
from engine.writing.edits.applying import Application
from engine.writing.edits.objects import SCALE, STATUSES, Creation, Replacement, RequestedEdit, Writer
from engine.writing.edits.patching import Patch, check_patch_type, is_expanding
from engine.writing.edits.scale import ScaleApplication, ScalePatch, ScaleReplacement
from engine.writing.edits.status import StatusApplication, StatusPatch, StatusReplacement
from engine.writing.mutations import Target
from events import vocabulary
from events.kube_objects import KubeObject

_LARGE: Final = loop_share.LARGE_BYTES + 1
_GENERATED_LETTERS: Final = 5
_GENERATED_TRIES: Final = 8
"""Maximum number of names that are tried for an object with ``generateName``, if they are taken; as in Kubernetes."""

_GENERATED_PREFIX_MAX: Final = 58


class _Edits(NamedTuple):
    """Functions that return the edits of a PUT, a PATCH and a server-side apply, for one kind of path."""

    replacement: Callable[[Writer, KubeObject], RequestedEdit]
    patch: Callable[[Writer, str, object], RequestedEdit]
    application: Callable[[Writer, KubeObject, bool], RequestedEdit]


_OF_OBJECTS: Final = _Edits(Replacement, Patch, Application)
_OF_PARTS: Final = {
    **dict.fromkeys(STATUSES, _Edits(StatusReplacement, StatusPatch, StatusApplication)),
    SCALE: _Edits(ScaleReplacement, ScalePatch, ScaleApplication),
}
"""Edits by subresource; requests for other subresources, such as ``finalize``, edit the whole object."""


class WriteRequest(Struct, frozen=True, kw_only=True):
    """A write request and what was parsed from it.

    ``body_bytes`` is the size of the body for ``loop_share.in_thread_if_large``; if a short body can expand to a large
    object, such as YAML with aliases, it is a large number instead.
    ``prefix`` is the ``generateName`` from which the name was generated; empty if the client named the object.
    """

    resource: Resource
    path: ApiPath
    query: requests.Query
    form: requests.Form
    writer: Writer
    warnings: tuple[str, ...] = ()
    user: User
    method: str
    body_bytes: int
    prefix: str = ""

    @property
    def target(self) -> Target:
        """The object to write, in the version in which its kind is stored."""
        return Target(
            api_version=versions.stored(self.resource).api_version,
            kind=self.resource.kind,
            namespace=self.writer.namespace,
            name=self.writer.name,
        )


class Parsing:
    """Parse write requests and carry them out. All public methods raise StatusError.

    ``newest`` returns the highest resourceVersion that this server knows. ``tolerated`` is the default toleration of
    failing clusters.
    """

    def __init__(
        self,
        clock_ms: Callable[[], int],
        newest: Callable[[], int],
        tolerated: TolerationSeconds | None = None,
    ) -> None:
        self._clock_ms = clock_ms
        self._newest = newest
        self._tolerated = tolerated or TolerationSeconds()

    async def carry_out(
        self,
        request: Request,
        resource: Resource,
        api_path: ApiPath,
        execute: Callable[[WriteRequest, RequestedEdit], Awaitable[Response]],
    ) -> Response:
        """Parse a POST to a collection, or a PUT or PATCH, and execute its edit.

        If the generated name of a new object is taken, try other names.
        """
        match request.method:
            case "POST":
                return await _created(execute, *await self._creation(request, resource, api_path))
            case "PUT":
                return await execute(*await self._replacement(request, resource, api_path))
            case _:
                return await execute(*await self._patch(request, resource, api_path))

    async def _creation(
        self, request: Request, resource: Resource, api_path: ApiPath
    ) -> tuple[WriteRequest, Creation]:
        repeated: list[str] = []
        body = await bodies.read_object(request, resource, repeated)
        metadata = body.metadata
        name = metadata.get("name")
        prefix = "" if name else str(metadata.get("generateName") or "")
        if prefix:
            name = _generated(prefix)
        if not isinstance(name, str) or not name:
            cause = causes.required("metadata.name", "name or generateName is required")
            raise status_objects.invalid(resource, "", [cause])
        namespace = api_path.namespace or body.namespace
        if resource.namespaced and not namespace:
            namespace = "default"
        if metadata.get("resourceVersion"):
            raise status_objects.bad_request("resourceVersion should not be set on objects to be created")
        write = self.read(request, resource, api_path, name, namespace if resource.namespaced else "")
        if prefix:
            write = structs.replace(write, prefix=prefix)
        if repeated:
            write = _with_duplicate_warnings(write, repeated)
        return write, Creation(write.writer, body.with_metadata({"name": name}))

    async def _replacement(
        self, request: Request, resource: Resource, api_path: ApiPath
    ) -> tuple[WriteRequest, RequestedEdit]:
        write = self.read(request, resource, api_path, api_path.name, api_path.namespace)
        repeated: list[str] = []
        body_resource = scales.SCALE if api_path.part == SCALE else resource
        body = await bodies.read_object(request, body_resource, repeated)
        return _with_duplicate_warnings(write, repeated), _edits(write).replacement(write.writer, body)

    async def _patch(
        self, request: Request, resource: Resource, api_path: ApiPath
    ) -> tuple[WriteRequest, RequestedEdit]:
        write = self.read(request, resource, api_path, api_path.name, api_path.namespace)
        kind, content = requests.media_type(request), await bodies.content(request)
        if kind in requests.APPLY_PATCHES:
            return await self._application(write, content)
        if api_path.part not in STATUSES and write.query.force:
            cause = causes.forbidden("force", "may not be specified for non-apply patch")
            raise status_objects.invalid_options("PatchOptions", cause)
        repeated: list[str] = []
        patch = await bodies.patch_value(content, repeated)
        write = _with_duplicate_warnings(write, repeated)
        if is_expanding(patch):
            write = structs.replace(write, body_bytes=_LARGE)
        check_patch_type(write.writer, kind)
        return write, _edits(write).patch(write.writer, kind, patch)

    async def _application(self, write: WriteRequest, content: bytes) -> tuple[WriteRequest, RequestedEdit]:
        """Parse a server-side apply."""
        repeated: list[str] = []
        desired = await bodies.applied_object(content, repeated)
        write = _with_duplicate_warnings(write, repeated)
        if bodies.is_expanding(content):
            write = structs.replace(write, body_bytes=_LARGE)
        return write, _edits(write).application(write.writer, desired, write.query.force)

    def read(
        self, request: Request, resource: Resource, api_path: ApiPath, name: str, namespace: str
    ) -> WriteRequest:
        """Parse all parts of a write request except the body."""
        query = requests.query(request)
        agent = managed_fields.name_of_agent(request.headers.get("user-agent", ""))
        writer = Writer(
            resource=resource,
            namespace=namespace,
            name=name,
            manager=query.field_manager or agent or "unknown",
            now_ms=self._clock_ms(),
            validation=query.validation,
            newest=self._newest(),
            tolerated=self._tolerated,
        )
        return WriteRequest(
            resource=resource,
            path=api_path,
            query=query,
            form=requests.form(request.headers.get("accept", ""), query.include),
            writer=writer,
            user=access.user_of(request),
            method=request.method,
            body_bytes=_LARGE if bodies.is_yaml(request) else incoming_requests.announced_bytes(request),
        )


async def _created(
    execute: Callable[[WriteRequest, RequestedEdit], Awaitable[Response]],
    write: WriteRequest,
    creation: Creation,
) -> Response:
    for _ in range(_GENERATED_TRIES - 1):
        try:
            return await execute(write, creation)
        except StatusError as error:
            if not write.prefix or error.reason != "AlreadyExists":
                raise
        name = _generated(write.prefix)
        write = structs.replace(write, writer=structs.replace(write.writer, name=name))
        creation = Creation(write.writer, creation.body.with_metadata({"name": name}))
    return await execute(write, creation)


def _edits(write: WriteRequest) -> _Edits:
    return _OF_PARTS.get(write.path.part, _OF_OBJECTS)


def _generated(prefix: str) -> str:
    letters = "".join(secrets.choice(vocabulary.SAFE_LETTERS) for _ in range(_GENERATED_LETTERS))
    return prefix[:_GENERATED_PREFIX_MAX] + letters


def _with_duplicate_warnings(write: WriteRequest, paths: list[str]) -> WriteRequest:
    """Return the request with warnings of duplicate fields; with fieldValidation=Strict raise StatusError instead."""
    messages = tuple(f'duplicate field "{path}"' for path in paths)
    if messages and write.query.validation == "Strict":
        raise status_objects.strict_decoding(write.resource, messages)
    if not messages or write.query.validation != "Warn":
        return write
    return structs.replace(write, warnings=write.warnings + messages)
