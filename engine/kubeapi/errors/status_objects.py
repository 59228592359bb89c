"""Kubernetes Status objects: errors and successes with code, reason, details and causes.

The texts equal those of the API server to the letter: kubectl prints the messages, clients branch on the
reasons.
"""

import contextlib
from collections.abc import Generator, Iterable, Sequence
from typing import Final, NotRequired, TypedDict

from msgspec import Struct

from engine.kubeapi.patching import managed_fields
from engine.kubeapi.patching.server_side_apply import ApplyConflictError
from engine.kubeapi.rights.rbac import Act
from engine.kubeapi.schema.resources import Resource

MODIFIED: Final = (
    "the object has been modified; please apply your changes to the latest version and try again"
)
_BODY_TYPES: Final = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
_PATCH_TYPES: Final = (
    "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
)


class StatusCause(TypedDict):
    """A cause in the details of a Status."""

    reason: str
    message: str
    field: NotRequired[str]


class StatusDetails(TypedDict, total=False):
    """The details of a Status: the object of the request, and the causes of an error."""

    name: str
    group: str
    kind: str
    uid: str
    causes: list[StatusCause]
    retryAfterSeconds: int


class _Empty(TypedDict):
    """The metadata of a Status."""


class Status(TypedDict, total=False):
    """The result of a request."""

    kind: str
    apiVersion: str
    metadata: _Empty
    status: str
    message: str
    reason: str
    details: StatusDetails
    code: int


class Cause(Struct, frozen=True, kw_only=True, order=True):
    """One field error: its path, its type (such as ``FieldValueRequired``) and its message."""

    field: str
    reason: str
    message: str

    @property
    def text(self) -> str:
        """Field and message as one line."""
        return f"{self.field}: {self.message}"

    def plain(self) -> StatusCause:
        """Return the cause as an entry of ``details.causes`` in a Status."""
        return {"reason": self.reason, "message": self.message, "field": self.field}


class StatusError(Exception):
    """A refused request: the HTTP code and the content of the Status to return."""

    def __init__(self, code: int, reason: str, message: str, details: StatusDetails | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details

    @property
    def body(self) -> Status:
        """The Status object of the response."""
        result: Status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        if self.details is not None:
            result["details"] = self.details
        result["code"] = self.code
        return result


class UndecodableError(StatusError):
    """A body that does not decode as the expected kind; ``detail`` is the message without the name of the kind."""

    def __init__(self, message: str, detail: str) -> None:
        super().__init__(400, "BadRequest", message)
        self.detail = detail


def deleted(resource: Resource, name: str, uid: str) -> Status:
    """Return the Status of a completed deletion."""
    details: StatusDetails = {**_named(resource, name), "uid": uid}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def not_found(resource: Resource, name: str) -> StatusError:
    # The metrics server names the missing pod or node itself, not its metrics.
    qualified = resource.plural if resource.group == "metrics.k8s.io" else resource.qualified
    message = f'{qualified} "{name}" not found'
    return StatusError(404, "NotFound", message, _named(resource, name))


def namespace_not_found(name: str) -> StatusError:
    """404 for an object in a namespace that does not exist."""
    return StatusError(404, "NotFound", f'namespaces "{name}" not found', _identity(name, "", "namespaces"))


@contextlib.contextmanager
def already_gone() -> Generator[None]:
    """Ignore a NotFound error for an object that was deleted after its collection was read."""
    try:
        yield
    except StatusError as error:
        if error.reason != "NotFound":
            raise


def no_such_path() -> StatusError:
    """404 for a path that the API does not serve."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(resource: Resource, name: str, *, is_ending: bool = False) -> StatusError:
    """409 for a create of an existing object; ``is_ending``: the existing object is still being deleted."""
    ending = "object is being deleted: " if is_ending else ""
    message = f'{ending}{resource.qualified} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, _named(resource, name))


def conflict(resource: Resource, name: str, why: str = MODIFIED) -> StatusError:
    """409 for a write based on an outdated object, or for another reason that ``why`` states."""
    message = f'Operation cannot be fulfilled on {resource.qualified} "{name}": {why}'
    return StatusError(409, "Conflict", message, _named(resource, name))


def other_uid(resource: Resource, name: str, expected: str, actual: str) -> StatusError:
    """409 for a write that names another uid than the object's."""
    why = f"Precondition failed: UID in precondition: {expected}, UID in object meta: {actual}"
    return conflict(resource, name, why)


def unwanted_deletion(resource: Resource, name: str, field: str, expected: str, actual: str) -> StatusError:
    """409 for a deletion whose precondition does not hold; ``field`` is UID or ResourceVersion."""
    guess = "deleted and then recreated" if field == "UID" else "modified"
    message = (
        f'Operation cannot be fulfilled on {resource.qualified_kind} "{name}": the {field} in the precondition'
        f" ({expected}) does not match the {field} in record ({actual}). The object might have been {guess}"
    )
    return StatusError(409, "Conflict", message, {**_named(resource, name), "kind": resource.kind})


def apply_conflict(error: ApplyConflictError) -> StatusError:
    """409 for an apply that would change fields owned by other managers; one cause per field."""
    causes = [
        Cause(
            field=managed_fields.shown_path(conflict.path),
            reason="FieldManagerConflict",
            message=f"conflict with {conflict.owner}",
        ).plain()
        for conflict in error.conflicts
    ]
    return StatusError(409, "Conflict", str(error), {"causes": causes})


def invalid(resource: Resource, name: str, causes: Iterable[Cause]) -> StatusError:
    """422 for an object that fails validation."""
    listed = list(causes)
    details: StatusDetails = {
        **_named(resource, name),
        "kind": resource.kind,
        "causes": [cause.plain() for cause in listed],
    }
    message = f'{resource.qualified_kind} "{name}" is invalid: {_joined_messages(listed)}'
    return StatusError(422, "Invalid", message, details)


def invalid_options(kind: str, *causes: Cause) -> StatusError:
    """422 for invalid request options; ``kind`` is ``DeleteOptions``, ``PatchOptions`` and the like."""
    details: StatusDetails = {
        "group": "meta.k8s.io",
        "kind": kind,
        "causes": [cause.plain() for cause in causes],
    }
    return StatusError(
        422, "Invalid", f'{kind}.meta.k8s.io "" is invalid: {_joined_messages(causes)}', details
    )


def not_versioned(resource: Resource, name: str) -> StatusError:
    """422 for a replacement without a resourceVersion, of a kind whose replacements need one."""
    cause = Cause(
        field="metadata.resourceVersion",
        reason="FieldValueInvalid",
        message="Invalid value: 0: must be specified for an update",
    )
    details: StatusDetails = {**_named(resource, name), "causes": [cause.plain()]}
    return StatusError(422, "Invalid", f'{resource.qualified} "{name}" is invalid: {cause.text}', details)


def unfit_patch() -> StatusError:
    """422 for a JSON patch that does not apply to the stored object."""
    message = "the server rejected our request due to an error in our request"
    return StatusError(422, "Invalid", message, {})


def unfit_result(patch: Cause) -> StatusError:
    """422 for a patch whose result does not decode as the kind of the object; ``patch`` is the cause."""
    return StatusError(422, "Invalid", f' "" is invalid: {patch.text}', {"causes": [patch.plain()]})


def undecodable_patch(why: str) -> StatusError:
    return bad_request(f"error decoding patch: {why}")


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def strict_decoding(resource: Resource, faults: Iterable[str]) -> UndecodableError:
    """400 for unknown or duplicate fields; each fault is a message such as ``unknown field "spec.x"``."""
    return undecodable(resource, f"strict decoding error: {', '.join(faults)}")


def undecodable(resource: Resource, why: str, kind: str = "", version: str = "") -> UndecodableError:
    """400 for a body that does not decode as this kind; ``kind`` and ``version`` are the body's, if they differ."""
    named = f'{kind or resource.kind} in version "{version or resource.version}"'
    return UndecodableError(f"{named} cannot be handled as a {resource.kind}: {why}", why)


def unauthorized() -> StatusError:
    """401 for a request without valid credentials."""
    return StatusError(401, "Unauthorized", "Unauthorized")


def forbidden_act(user: str, act: Act) -> StatusError:
    """403 for an action that RBAC does not allow; an act without namespace covers the whole cluster."""
    qualified = f"{act.resource}.{act.group}" if act.group else act.resource
    named = f'{qualified} "{act.name}"' if act.name else qualified
    where = f'in the namespace "{act.namespace}"' if act.namespace else "at the cluster scope"
    message = (
        f'{named} is forbidden: User "{user}" cannot {act.verb} resource "{act.whole}"'
        f' in API group "{act.group}" {where}'
    )
    return StatusError(403, "Forbidden", message, _identity(act.name, act.group, act.resource))


def forbidden_path(user: str, verb: str, path: str) -> StatusError:
    """403 for a path that is not a resource, such as ``/metrics``."""
    message = f'forbidden: User "{user}" cannot {verb} path "{path}"'
    return StatusError(403, "Forbidden", message)


def denied(webhook: str, why: str) -> StatusError:
    """403 in the wording of an admission webhook of Karmada; ``webhook`` is that webhook's name."""
    return StatusError(403, "Forbidden", f'admission webhook "{webhook}" denied the request: {why}')


def forbidden(resource: Resource, name: str, reason: str) -> StatusError:
    """403 for an object that may not be written or deleted, with the reason."""
    message = f'{resource.qualified} "{name}" is forbidden: {reason}'
    return StatusError(403, "Forbidden", message, _named(resource, name))


def in_terminating_namespace(resource: Resource, name: str, namespace: str) -> StatusError:
    """403 for a create in a namespace that is being deleted."""
    reason = f"unable to create new content in namespace {namespace} because it is being terminated"
    cause = Cause(
        field="metadata.namespace",
        reason="NamespaceTerminating",
        message=f"namespace {namespace} is being terminated",
    )
    details: StatusDetails = {**_named(resource, name), "causes": [cause.plain()]}
    return StatusError(403, "Forbidden", forbidden(resource, name, reason).message, details)


def method_not_allowed() -> StatusError:
    """405 for a verb that the resource does not support."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message, {})


def not_acceptable(*, known: bool) -> StatusError:
    """406 for an Accept header without a supported type.

    ``known``: the media type is supported, but not with the requested parameters.
    """
    if known:
        message = f"only the following media types are accepted: {_BODY_TYPES}"
        return StatusError(406, "NotAcceptable", message)
    streams = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
    message = f"406: Not Acceptable\n\nAvailable representations: {_BODY_TYPES}, {streams}"
    return StatusError(406, "NotAcceptable", message, {})


def expired(message: str = "The resourceVersion for the provided watch is too old.") -> StatusError:
    """410 for a resourceVersion that is no longer kept."""
    return StatusError(410, "Expired", message)


def version_too_large(requested: str, newest: int) -> StatusError:
    """504 for a resourceVersion newer than the newest that is known."""
    causes: list[StatusCause] = [
        {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    ]
    message = f"Timeout: Too large resource version: {requested}, current: {newest}"
    return StatusError(504, "Timeout", message, {"causes": causes, "retryAfterSeconds": 1})


def too_large(bytes_max: int) -> StatusError:
    """413 for a request body over the limit, in bytes."""
    message = f"Request entity too large: limit is {bytes_max}"
    return StatusError(413, "RequestEntityTooLarge", message)


def too_many_operations(count: int, count_max: int) -> StatusError:
    """413 for a JSON patch of too many operations."""
    message = f"The allowed maximum operations in a JSON patch is {count_max}, got {count}"
    return StatusError(413, "RequestEntityTooLarge", f"Request entity too large: {message}")


def unsupported_media_type(*, patch: bool, known: bool = True) -> StatusError:
    """415 for an unsupported body type.

    ``patch``: the body is a patch; ``known``: other kinds accept this patch type.
    """
    if patch and not known:
        return StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
    accepted = _PATCH_TYPES if patch else _BODY_TYPES
    message = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
    return StatusError(415, "UnsupportedMediaType", message)


def too_many_requests(retry_after_s: int, why: str = "") -> StatusError:
    """429 with the number of seconds after which the client may retry."""
    message = why or "Too many requests, please try again later."
    return StatusError(429, "TooManyRequests", message, {"retryAfterSeconds": retry_after_s})


def internal() -> StatusError:
    """500 for a fault of the server itself."""
    message = "Internal error occurred: internal error; see the server log"
    return StatusError(500, "InternalError", message)


def unavailable(message: str) -> StatusError:
    """503 for a request that needs a dependency that is unreachable now."""
    return StatusError(503, "ServiceUnavailable", message, {"retryAfterSeconds": 1})


def timed_out(message: str) -> StatusError:
    """504 for a request without an answer in time; the request may still take effect."""
    return StatusError(504, "Timeout", f"Timeout: {message}", {"retryAfterSeconds": 1})


def _joined_messages(causes: Sequence[Cause]) -> str:
    """Return the message of an ``Invalid`` Status: the texts of all causes, each text once."""
    texts = list(dict.fromkeys(cause.text for cause in causes))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _named(resource: Resource, name: str) -> StatusDetails:
    return _identity(name, resource.group, resource.plural)


def _identity(name: str, group: str, kind: str) -> StatusDetails:
    """Return the details that identify an object, without empty ones."""
    details: StatusDetails = {}
    if name:
        details["name"] = name
    if group:
        details["group"] = group
    if kind:
        details["kind"] = kind
    return details
