"""Bodies of Kubernetes API requests: objects in JSON, YAML or protobuf, patches, and options of deletions.

Bodies are limited in size and nesting depth before they are parsed.
"""

import contextlib
from typing import Final

import msgspec
from msgspec import Struct, structs
from starlette.requests import Request

from engine import loop_share
from engine.http import incoming_requests
from engine.http.kube.requests import is_set, media_type, parameters_of, query
from engine.kubeapi.errors import causes, status_objects
from engine.kubeapi.errors.status_objects import StatusError
from engine.kubeapi.requests import body_checks
from engine.kubeapi.schema import type_errors
from engine.kubeapi.schema.resources import Resource
from engine.kubeapi.schema.schemas import Named
from engine.kubeapi.schema.types.parsing import resolved
from engine.kubeapi.wire import protobuf
from engine.objects import manifests
from engine.objects.manifest_limits import Limits
from engine.objects.owner_references import Propagation
from events import limits, records
from events.json_values import DECODING_ERRORS, Json, as_object, object_at
from events.kube_objects import KubeObject

BODY_BYTES_MAX: Final = 3 * 1024 * 1024
"""Kubernetes' limit for bodies; the limit for stored objects is lower (``limits.OBJECT_BYTES_MAX``)."""
_LIMITS: Final = Limits(
    content_bytes_max=BODY_BYTES_MAX,
    documents_max=1,
    depth_max=limits.DEPTH_MAX,
    repeated_bytes_max=limits.OBJECT_BYTES_MAX,
)
_NULL: Final = b"null"
_CUT: Final = "truncated"
_END_OF_JSON: Final = "unexpected end of JSON input"
_OPTIONS: Final = Named(name="meta.DeleteOptions")
_JSON: Final = ("", "application/json")
_YAML: Final = ("application/yaml", "application/x-yaml", "text/yaml")
_DELETION: Final = "DeleteOptions"
_EVICTION: Final = Resource(
    group="policy",
    version="v1",
    kind="Eviction",
    plural="evictions",
    singular="eviction",
    schema=Named(name="policy.Eviction"),
)
_POLICIES: Final = (Propagation.FOREGROUND, Propagation.BACKGROUND, Propagation.ORPHAN)
_OF_FIELD: Final = (Propagation.BACKGROUND, Propagation.ORPHAN)
"""The propagation policies for the values false and true of the deprecated field ``orphanDependents``."""


class _CutError(StatusError):
    """The JSON ends too early."""


async def content(request: Request) -> bytes:
    """The whole body; raises StatusError (413) if it exceeds the limit."""
    try:
        return await incoming_requests.read_body(request, BODY_BYTES_MAX)
    except incoming_requests.TooLargeError:
        raise status_objects.too_large(BODY_BYTES_MAX) from None


async def read_object(request: Request, resource: Resource, repeated: list[str] | None = None) -> KubeObject:
    """Parse the object in the body and check it against its resource; raises StatusError.

    The paths of duplicate fields are appended to ``repeated``.
    """
    return await _object_in(request, await content(request), resource, repeated)


async def _object_in(
    request: Request, raw: bytes, resource: Resource, repeated: list[str] | None = None
) -> KubeObject:
    kind = media_type(request)
    size = _parsing_size(raw, is_yaml=kind in _YAML)
    return await loop_share.in_thread_if_large(size, _read, kind, raw, resource, repeated)


def is_yaml(request: Request) -> bool:
    """Whether the client names YAML as the format of the body."""
    return media_type(request) in _YAML


def is_expanding(raw: bytes) -> bool:
    """Whether a text may be YAML with aliases, with which a short text can expand to a large object."""
    return b"&" in raw and b"*" in raw


def _parsing_size(raw: bytes, *, is_yaml: bool) -> int:
    """Body size in bytes; for YAML, which is slow to parse, a size so large that it is parsed in a thread."""
    return loop_share.LARGE_BYTES + 1 if is_yaml else len(raw)


def _read(kind: str, raw: bytes, resource: Resource, repeated: list[str] | None) -> KubeObject:
    if kind == protobuf.MEDIA_TYPE:
        return _typed(_protobuf(raw, resource), resource)
    if kind in _JSON:
        value: Json = {} if raw == _NULL else _json_of(raw, resource)
        if repeated is not None:
            repeated.extend(body_checks.repeated_fields(raw, value))
    elif kind in _YAML:
        value = yaml_object(raw, repeated)
    else:
        raise status_objects.unsupported_media_type(patch=False)
    named = KubeObject(value)
    if "." not in resource.group or resource.group.endswith(".k8s.io"):
        named = body_checks.with_kind(resource, named)
    body_checks.check_kind(resource, named, raw)
    return _typed(named, resource)


def _typed(value: KubeObject, resource: Resource) -> KubeObject:
    """Return the object; raises StatusError if a value of a built-in kind has another type or syntax than its field."""
    if not resource.is_kubernetes_own or body_checks.is_typed(value.document, resource.schema):
        return value
    if (wrong := type_errors.mistyped(value.document, resource.schema)) is not None:
        raise status_objects.undecodable(resource, wrong.message)
    return value


async def patch_value(raw: bytes, repeated: list[str]) -> object:
    """Parse a JSON patch; appends the paths of duplicate fields to ``repeated``. Raises StatusError."""
    return await loop_share.in_thread_if_large(len(raw), _patch_value, raw, repeated)


def _patch_value(raw: bytes, repeated: list[str]) -> object:
    try:
        patch = json_value(raw)
    except _CutError:
        raise status_objects.undecodable_patch(_END_OF_JSON) from None
    repeated.extend(body_checks.repeated_fields(raw, patch))
    return patch


async def applied_object(raw: bytes, repeated: list[str]) -> KubeObject:
    """Parse the object of a server-side apply from YAML or JSON; raises StatusError.

    The paths of duplicate fields are appended to ``repeated``.
    """
    size = _parsing_size(raw, is_yaml=is_expanding(raw) or not raw.lstrip().startswith(b"{"))
    return KubeObject(await loop_share.in_thread_if_large(size, yaml_object, raw, repeated))


def _json_of(raw: bytes, resource: Resource) -> Json:
    """Parse a JSON object; the error for incomplete JSON is worded as in Kubernetes."""
    try:
        return json_object(raw)
    except _CutError:
        message = f"couldn't get version/kind; json parse error: {_END_OF_JSON}"
        raise body_checks.unrecognized(resource, message, raw) from None


class DeleteOptions(Struct, frozen=True, kw_only=True):
    """The options of a deletion.

    The object must have this ``uid`` and ``resource_version``, unless they are empty.
    """

    dry_run: bool = False
    propagation: Propagation = Propagation.UNSET
    uid: str = ""
    resource_version: str = ""


async def deletion_options(request: Request) -> DeleteOptions:
    """The DeleteOptions in the body, or in the query if there is no body. Raises StatusError if they are invalid.

    A ``dryRun`` in the query takes effect in both cases.
    """
    return _checked(await _options(request), request)


async def eviction_options(request: Request) -> DeleteOptions:
    """The DeleteOptions of the Eviction in the body. Raises StatusError if they are invalid."""
    raw = await content(request)
    # Kubernetes also accepts Evictions of policy/v1beta1, although it serves no other kinds of that version.
    version = "v1beta1" if b"policy/v1beta1" in raw else _EVICTION.version
    eviction = await _object_in(request, raw, structs.replace(_EVICTION, version=version))
    return _checked(eviction.object_at("deleteOptions"), request)


def _checked(fields: Json, request: Request) -> DeleteOptions:
    policy, dry_run = fields.get("propagationPolicy"), fields.get("dryRun")
    orphans = fields.get("orphanDependents")
    if policy is not None and orphans is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        cause = causes.invalid("propagationPolicy", policy, detail)
        raise status_objects.invalid_options(_DELETION, cause)
    if policy is not None and policy not in _POLICIES:
        cause = causes.unsupported("propagationPolicy", policy, (*_POLICIES, "nil"))
        raise status_objects.invalid_options(_DELETION, cause)
    if dry_run not in (None, [], ["All"]):
        raise status_objects.invalid_options(_DELETION, causes.unsupported("dryRun", dry_run, ("All",)))
    required = object_at(fields, "preconditions")
    return DeleteOptions(
        dry_run=dry_run == ["All"] or query(request).dry_run,
        propagation=_OF_FIELD[orphans is True] if orphans is not None else Propagation(policy or ""),
        uid=str(required.get("uid") or ""),
        resource_version=str(required.get("resourceVersion") or ""),
    )


async def _options(request: Request) -> Json:
    kind, raw = media_type(request), await content(request)
    if not raw:
        return _options_in_query(request)
    size = _parsing_size(raw, is_yaml=kind in _YAML)
    options = await loop_share.in_thread_if_large(size, _options_in, kind, raw)
    if options.get("kind") not in (None, "", _DELETION):
        raise status_objects.bad_request(f"decoded object cannot be converted to {_DELETION}")
    if (wrong := type_errors.mistyped(options, _OPTIONS)) is not None:
        # Options of a wrong type, such as preconditions, must not be ignored: they protect objects.
        raise status_objects.bad_request(wrong.message)
    return options


def _options_in_query(request: Request) -> Json:
    """The DeleteOptions in the query, without ``dryRun``."""
    parameters = parameters_of(request)
    options: Json = {}
    if policy := parameters.get("propagationPolicy"):
        options["propagationPolicy"] = policy
    if "orphanDependents" in parameters:
        options["orphanDependents"] = is_set(parameters, "orphanDependents")
    return options


def _options_in(kind: str, raw: bytes) -> Json:
    if kind == protobuf.MEDIA_TYPE:
        try:
            if protobuf.kind_of(raw)[1] != _DELETION:
                raise status_objects.bad_request(f"the body of a deletion must be {_DELETION}")
            return protobuf.decode(raw, _OPTIONS, depth_max=limits.DEPTH_MAX)
        except protobuf.ProtobufError as error:
            raise status_objects.bad_request(f"the body can't be read as protobuf: {error}") from None
    if kind in _YAML:
        return yaml_object(raw)
    if kind not in _JSON:
        raise status_objects.unsupported_media_type(patch=False)
    return {} if raw == _NULL else json_object(raw)


def json_value(raw: bytes) -> object:
    """Parse JSON; raises StatusError (400)."""
    if records.is_deeper(raw, limits.DEPTH_MAX):
        raise status_objects.bad_request(f"the body is nested deeper than {limits.DEPTH_MAX} levels")
    try:
        return msgspec.json.decode(raw)
    except DECODING_ERRORS as error:
        error_type = _CutError if _CUT in str(error) else StatusError
        raise error_type(400, "BadRequest", f"the body can't be read as JSON: {error}") from None


def json_object(raw: bytes) -> Json:
    """Parse a JSON object; raises StatusError (400)."""
    value = as_object(json_value(raw))
    if value is None:
        raise status_objects.bad_request("the body is not an object")
    return value


def yaml_object(raw: bytes, repeated: list[str] | None = None) -> Json:
    """Parse one object from YAML or JSON; raises StatusError (400).

    The paths of duplicate fields are appended to ``repeated``; the last value of such a field is used.
    """
    noted: list[str] = [] if repeated is None else repeated
    if raw.lstrip().startswith(b"{"):
        with contextlib.suppress(StatusError):  # it may be YAML: flow mappings begin with a brace too
            document = json_object(raw)
            noted.extend(body_checks.repeated_fields(raw, document))
            return document
    # Do not split a list into its items: a body with a list is invalid, unless the request is for a custom kind
    # that has the name of a list.
    read = manifests.read(raw, file="", limits=_LIMITS, repeated=noted, splits_lists=False)
    if len(read) != 1:
        raise status_objects.bad_request(f"the body contains {len(read)} objects instead of one")
    document = read[0]
    if isinstance(document, manifests.Fault):
        raise status_objects.bad_request(f"the body can't be read as YAML: {document.reason}")
    return document.value


def _protobuf(raw: bytes, resource: Resource) -> KubeObject:
    try:
        api_version, kind = protobuf.kind_of(raw)
        if (api_version, kind) != (resource.api_version, resource.kind):
            message = f"the object provided is a {kind} of {api_version}, not a {resource.kind}"
            raise status_objects.bad_request(message)
        value = protobuf.decode(raw, resolved(resource.schema), depth_max=limits.DEPTH_MAX)
    except protobuf.ProtobufError as error:
        raise status_objects.bad_request(f"the body can't be read as protobuf: {error}") from None
    return KubeObject({"apiVersion": api_version, "kind": kind, **value})
