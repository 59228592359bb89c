"""Parsing of Kubernetes API requests: query parameters, and objects in JSON, YAML or protobuf.

Bodies are limited in size and nesting depth before they are parsed.
"""

import contextlib
import re
from typing import Final, Literal

import msgspec
from msgspec import Struct
from starlette.requests import Request

from engine import loop_share
from engine.http import bodies
from engine.kubeapi.errors import causes, status_objects
from engine.kubeapi.errors.status_objects import StatusError
from engine.kubeapi.requests import kind_check, repeated_fields
from engine.kubeapi.requests.options import of_manager
from engine.kubeapi.schema import type_errors
from engine.kubeapi.schema.resources import Resource
from engine.kubeapi.schema.schemas import Json, Named, as_object
from engine.kubeapi.schema.types.parsing import resolved
from engine.kubeapi.wire import protobuf
from engine.objects import manifests
from engine.objects.manifest_limits import Limits
from events import limits
from events.validation import depths

Validation = Literal["Strict", "Warn", "Ignore"]

BODY_BYTES_MAX: Final = 3 * 1024 * 1024
"""Kubernetes' limit for bodies; a stored object may have less (``limits.OBJECT_BYTES_MAX``)."""

_TEXT_CHARS_MAX: Final = 4096
_LIMITS: Final = Limits(
    content_bytes_max=BODY_BYTES_MAX,
    documents_max=1,
    depth_max=limits.DEPTH_MAX,
    repeated_bytes_max=limits.OBJECT_BYTES_MAX,
)
_NUMBER: Final = re.compile(r"[+-]?[0-9]+")
_DIGITS_MAX: Final = 18
"""Digits that surely fit into 64 bits."""

_SHOWN_CHARS_MAX: Final = 40
_NULL: Final = b"null"
_CUT: Final = "truncated"
_END_OF_JSON: Final = "unexpected end of JSON input"
_OPTIONS: Final = Named(name="meta.DeleteOptions")
_JSON: Final = ("", "application/json")
_YAML: Final = ("application/yaml", "application/x-yaml", "text/yaml")
_DELETION: Final = "DeleteOptions"
_POLICIES: Final = ("Foreground", "Background", "Orphan")
_OPTIONS_BY_METHOD: Final = {
    "POST": "CreateOptions",
    "PUT": "UpdateOptions",
    "PATCH": "PatchOptions",
    "DELETE": _DELETION,
}
_WRITES: Final = ("POST", "PUT", "PATCH")
APPLY_PATCHES: Final = ("application/apply-patch+yaml", "application/apply-patch")
_VALIDATIONS: Final[dict[str, Validation]] = {"Strict": "Strict", "Warn": "Warn", "Ignore": "Ignore"}


class _CutError(StatusError):
    """The JSON ends too early."""


class Query(Struct, frozen=True, kw_only=True):
    """The query parameters; absent ones have Kubernetes' defaults."""

    label_selector: str = ""
    field_selector: str = ""
    limit: int = 0
    after: str = ""
    resource_version: str = ""
    match: str = ""
    watch: bool = False
    bookmarks: bool = False
    initial_events: bool | None = None
    timeout_s: int = 0
    field_manager: str = ""
    validation: Validation = "Warn"
    force: bool = False
    dry_run: bool = False
    include: Literal["None", "Metadata", "Object"] = "Metadata"


def query(request: Request) -> Query:
    """Parse the query parameters; raises StatusError."""
    found = {name: value for name, value in request.query_params.items() if value}
    for name, value in found.items():
        if name not in {"labelSelector", "fieldSelector", "continue"} and len(value) > _TEXT_CHARS_MAX:
            raise status_objects.bad_request(f"{name} is too long")
    validation = found.get("fieldValidation", "Warn")
    options = _OPTIONS_BY_METHOD.get(request.method, "ListOptions")
    manager = found.get("fieldManager", "")
    is_applied = request.method == "PATCH" and media_type(request) in APPLY_PATCHES
    if request.method in _WRITES and (wrong := list(of_manager(manager, needed=is_applied))):
        raise status_objects.invalid_options(options, *wrong)
    if validation not in _VALIDATIONS:
        cause = causes.unsupported("fieldValidation", validation, ("", *sorted(_VALIDATIONS)))
        raise status_objects.invalid_options(options, cause)
    dry_run = found.get("dryRun", "")
    if dry_run not in ("", "All"):
        raise status_objects.invalid_options(options, causes.unsupported("dryRun", [dry_run], ("All",)))
    include = found.get("includeObject", "Metadata")
    return Query(
        label_selector=found.get("labelSelector", ""),
        field_selector=found.get("fieldSelector", ""),
        limit=max(_number(found, "limit"), 0),
        after=found.get("continue", ""),
        resource_version=found.get("resourceVersion", ""),
        match=found.get("resourceVersionMatch", ""),
        watch=_flag(found, "watch"),
        bookmarks=_flag(found, "allowWatchBookmarks"),
        initial_events=_flag(found, "sendInitialEvents") if "sendInitialEvents" in found else None,
        timeout_s=max(_number(found, "timeoutSeconds"), 0),
        field_manager=manager,
        validation=_VALIDATIONS[validation],
        force=_flag(found, "force"),
        dry_run=bool(dry_run),
        include=include if include in ("None", "Metadata", "Object") else "Metadata",
    )


def media_type(request: Request) -> str:
    """The media type of the body, without parameters; empty if the client sends none."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def content(request: Request) -> bytes:
    """The whole body; raises StatusError (413) if it exceeds the limit."""
    try:
        return await bodies.read(request, BODY_BYTES_MAX)
    except bodies.TooLargeError:
        raise status_objects.too_large(BODY_BYTES_MAX) from None


async def body(request: Request, resource: Resource, repeated: list[str] | None = None) -> Json:
    """Parse the object in the body and check it against its resource; raises StatusError.

    The paths of duplicate fields are appended to ``repeated``.
    """
    kind, held = media_type(request), await content(request)
    size = _parsing_size(held, is_yaml=kind in _YAML)
    return await loop_share.apart(size, _read, kind, held, resource, repeated)


def _parsing_size(held: bytes, *, is_yaml: bool) -> int:
    """Size of a body for ``loop_share.apart``; YAML is slow to parse, so it always counts as large."""
    return loop_share.LARGE_BYTES + 1 if is_yaml else len(held)


def _read(kind: str, held: bytes, resource: Resource, repeated: list[str] | None) -> Json:
    if kind == protobuf.MEDIA_TYPE:
        return _protobuf(held, resource)
    if kind in _JSON:
        found = {} if held == _NULL else _json_of(held, resource)
        if repeated is not None:
            repeated.extend(repeated_fields.repeated(held, found))
    elif kind in _YAML:
        found = yaml_object(held, repeated)
    else:
        raise status_objects.unsupported_media_type(patch=False)
    found = _named(found, resource)
    kind_check.check(resource, found, held)
    if resource.is_kubernetes_own and (wrong := type_errors.mistyped(found, resource.schema)) is not None:
        raise status_objects.undecodable(resource, wrong.message)
    return found


async def patch_value(held: bytes, repeated: list[str]) -> object:
    """Parse a JSON patch; appends the paths of duplicate fields to ``repeated``. Raises StatusError."""
    return await loop_share.apart(len(held), _patch_value, held, repeated)


def _patch_value(held: bytes, repeated: list[str]) -> object:
    try:
        found = json_value(held)
    except _CutError:
        raise status_objects.undecodable_patch(_END_OF_JSON) from None
    repeated.extend(repeated_fields.repeated(held, found))
    return found


async def applied_object(held: bytes, repeated: list[str]) -> Json:
    """Parse the object of a server-side apply from YAML or JSON; arguments and errors as in ``patch_value``."""
    size = _parsing_size(held, is_yaml=not held.lstrip().startswith(b"{"))
    return await loop_share.apart(size, yaml_object, held, repeated)


def _json_of(held: bytes, resource: Resource) -> Json:
    """Parse a JSON object; the error for incomplete JSON is worded as in Kubernetes."""
    try:
        return json_object(held)
    except _CutError:
        why = f"couldn't get version/kind; json parse error: {_END_OF_JSON}"
        raise kind_check.unrecognized(resource, why, held) from None


def _named(value: Json, resource: Resource) -> Json:
    """Fill in apiVersion and kind of built-in kinds from the path, where clients may omit them."""
    if "." in resource.group and not resource.group.endswith(".k8s.io"):
        return value
    missing = {"apiVersion": resource.api_version, "kind": resource.kind}
    return {**value, **{name: text for name, text in missing.items() if not value.get(name)}}


async def options(request: Request) -> Json:
    """The DeleteOptions in the body, empty if there is no body. Raises StatusError if they are invalid."""
    found = await _options(request)
    policy, dry_run = found.get("propagationPolicy"), found.get("dryRun")
    if policy is not None and found.get("orphanDependents") is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        cause = causes.invalid("propagationPolicy", policy, detail)
        raise status_objects.invalid_options(_DELETION, cause)
    if policy is not None and policy not in _POLICIES:
        cause = causes.unsupported("propagationPolicy", policy, (*_POLICIES, "nil"))
        raise status_objects.invalid_options(_DELETION, cause)
    if dry_run not in (None, [], ["All"]):
        raise status_objects.invalid_options(_DELETION, causes.unsupported("dryRun", dry_run, ("All",)))
    return found


async def _options(request: Request) -> Json:
    kind, held = media_type(request), await content(request)
    if not held:
        return {}
    size = _parsing_size(held, is_yaml=kind in _YAML)
    return await loop_share.apart(size, _options_in, kind, held)


def _options_in(kind: str, held: bytes) -> Json:
    if kind == protobuf.MEDIA_TYPE:
        try:
            if protobuf.kind_of(held)[1] != "DeleteOptions":
                raise status_objects.bad_request("the body of a deletion holds DeleteOptions")
            return protobuf.decode(held, _OPTIONS, depth_max=limits.DEPTH_MAX)
        except protobuf.ProtobufError as error:
            raise status_objects.bad_request(f"the body can't be read as protobuf: {error}") from None
    if kind in _YAML:
        return yaml_object(held)
    return json_object(held)


def json_value(held: bytes) -> object:
    """Parse JSON; raises StatusError (400)."""
    if depths.is_deeper(held, limits.DEPTH_MAX):
        raise status_objects.bad_request(f"the body is nested deeper than {limits.DEPTH_MAX} levels")
    try:
        return msgspec.json.decode(held)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        sort = _CutError if _CUT in str(error) else StatusError
        raise sort(400, "BadRequest", f"the body can't be read as JSON: {error}") from None


def json_object(held: bytes) -> Json:
    """Parse a JSON object; raises StatusError (400)."""
    found = as_object(json_value(held))
    if found is None:
        raise status_objects.bad_request("the body is no object")
    return found


def yaml_object(held: bytes, repeated: list[str] | None = None) -> Json:
    """Parse one object from YAML or JSON; raises StatusError (400).

    The paths of duplicate fields are appended to ``repeated``; the last value counts.
    """
    noted: list[str] = [] if repeated is None else repeated
    if held.lstrip().startswith(b"{"):
        with contextlib.suppress(StatusError):  # flow mappings of YAML begin with a brace too
            found = json_object(held)
            noted.extend(repeated_fields.repeated(held, found))
            return found
    read = manifests.read(held, file="", limits=_LIMITS, repeated=noted)
    if len(read) != 1:
        raise status_objects.bad_request(f"the body holds {len(read)} objects instead of one")
    found = read[0]
    if isinstance(found, manifests.Fault):
        raise status_objects.bad_request(f"the body can't be read as YAML: {found.reason}")
    return found.value


def _protobuf(held: bytes, resource: Resource) -> Json:
    try:
        api_version, kind = protobuf.kind_of(held)
        if (api_version, kind) != (resource.api_version, resource.kind):
            message = f"the object provided is a {kind} of {api_version}, not a {resource.kind}"
            raise status_objects.bad_request(message)
        found = protobuf.decode(held, resolved(resource.schema), depth_max=limits.DEPTH_MAX)
    except protobuf.ProtobufError as error:
        raise status_objects.bad_request(f"the body can't be read as protobuf: {error}") from None
    return {"apiVersion": api_version, "kind": kind, **found}


def version_fault(text: str) -> str:
    """Why a text is not a valid resourceVersion; empty if it is valid or empty."""
    if not text or (text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX):
        return ""
    detail = f'strconv.ParseUint: parsing "{text[:_SHOWN_CHARS_MAX]}": invalid syntax'
    return causes.invalid("resourceVersion", text[:_SHOWN_CHARS_MAX], detail).text


def _number(found: dict[str, str], name: str) -> int:
    text = found.get(name, "0")
    if not _NUMBER.fullmatch(text):
        raise status_objects.bad_request(
            f'strconv.ParseInt: parsing "{text[:_SHOWN_CHARS_MAX]}": invalid syntax'
        )
    if len(text) > _DIGITS_MAX:
        raise status_objects.bad_request(
            f'strconv.ParseInt: parsing "{text[:_SHOWN_CHARS_MAX]}": value out of range'
        )
    return int(text)


def _flag(found: dict[str, str], name: str) -> bool:
    return found.get(name, "").lower() in ("1", "true", "t")
