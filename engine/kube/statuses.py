"""Status objects: refusals and successes as Kubernetes words them, with codes, reasons, details and causes.

kubectl prints the messages, and programs go by the reasons; both are kept to the letter.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from engine.kube import field_sets
from engine.kube.managers import ApplyConflictError
from engine.kube.resources import Resource
from engine.kube.rights import Act
from engine.kube.schemas import Json

MODIFIED: Final = (
    "the object has been modified; please apply your changes to the latest version and try again"
)
_BODY_TYPES: Final = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
_PATCH_TYPES: Final = (
    "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
)


class Cause(Struct, frozen=True, kw_only=True, order=True):
    """One thing that is wrong: where, of which sort (``FieldValueRequired``), and in words."""

    field: str
    reason: str
    message: str

    @property
    def words(self) -> str:
        """Field and message as a line."""
        return f"{self.field}: {self.message}"

    def plain(self) -> Json:
        """The cause in a Status."""
        return {"reason": self.reason, "message": self.message, "field": self.field}


class StatusError(Exception):
    """A request that is refused: its code, and the body of the answer."""

    def __init__(self, code: int, reason: str, message: str, details: Json | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details

    @property
    def body(self) -> Json:
        """The Status object."""
        found: Json = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        if self.details is not None:
            found["details"] = self.details
        found["code"] = self.code
        return found


class UndecodableError(StatusError):
    """An object that is none of its kind; ``why`` says it without naming the kind."""

    def __init__(self, message: str, why: str) -> None:
        super().__init__(400, "BadRequest", message)
        self.why = why


def deleted(resource: Resource, name: str, uid: str) -> Json:
    """The answer to a deletion that is done."""
    details = {**_named(resource, name), "uid": uid}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def not_found(resource: Resource, name: str) -> StatusError:
    """There is no such object."""
    message = f'{resource.qualified} "{name}" not found'
    return StatusError(404, "NotFound", message, _named(resource, name))


def no_such_path() -> StatusError:
    """There is nothing at this path."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(resource: Resource, name: str, *, is_ending: bool = False) -> StatusError:
    """There is one already, or one that ``is_ending`` still."""
    ending = "object is being deleted: " if is_ending else ""
    message = f'{ending}{resource.qualified} "{name}" already exists'
    return StatusError(409, "AlreadyExists", message, _named(resource, name))


def conflict(resource: Resource, name: str, why: str = MODIFIED) -> StatusError:
    """Somebody else was quicker, or what was expected does not hold."""
    message = f'Operation cannot be fulfilled on {resource.qualified} "{name}": {why}'
    return StatusError(409, "Conflict", message, _named(resource, name))


def precondition_failed(resource: Resource, name: str, what: str, wanted: str, held: str) -> StatusError:
    """An object that is written is another one; ``what`` is UID or ResourceVersion."""
    why = f"Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {held}"
    return conflict(resource, name, why)


def unwanted_deletion(resource: Resource, name: str, what: str, wanted: str, held: str) -> StatusError:
    """A condition of a deletion does not hold; ``what`` is UID or ResourceVersion."""
    guess = "deleted and then recreated" if what == "UID" else "modified"
    message = (
        f'Operation cannot be fulfilled on {resource.kind} "{name}": the {what} in the precondition ({wanted})'
        f" does not match the {what} in record ({held}). The object might have been {guess}"
    )
    return StatusError(409, "Conflict", message, {**_named(resource, name), "kind": resource.kind})


def apply_conflict(error: ApplyConflictError) -> StatusError:
    """An apply that would change what others own."""
    causes = [
        Cause(
            field=field_sets.show(each.path),
            reason="FieldManagerConflict",
            message=f"conflict with {each.owner}",
        ).plain()
        for each in error.conflicts
    ]
    return StatusError(409, "Conflict", str(error), {"causes": causes})


def invalid(resource: Resource, name: str, causes: Iterable[Cause]) -> StatusError:
    """An object that its kind does not allow."""
    listed = list(causes)
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    details = {**_named(resource, name), "kind": resource.kind, "causes": [each.plain() for each in listed]}
    return StatusError(422, "Invalid", f'{kind} "{name}" is invalid: {_told(listed)}', details)


def invalid_options(kind: str, *causes: Cause) -> StatusError:
    """What is asked of a request (``DeleteOptions`` and the like) that can't be asked."""
    details: Json = {"group": "meta.k8s.io", "kind": kind, "causes": [each.plain() for each in causes]}
    return StatusError(422, "Invalid", f'{kind}.meta.k8s.io "" is invalid: {_told(causes)}', details)


def unfit_patch() -> StatusError:
    """A JSON patch that can't be carried out on what stands."""
    message = "the server rejected our request due to an error in our request"
    return StatusError(422, "Invalid", message, {})


def unfit_result(patch: Cause) -> StatusError:
    """A patch that makes something of an object that its kind can't be; ``patch`` says why."""
    return StatusError(422, "Invalid", f' "" is invalid: {patch.words}', {"causes": [patch.plain()]})


def undecodable_patch(why: str) -> StatusError:
    """A patch that can't be read."""
    return bad_request(f"error decoding patch: {why}")


def bad_request(message: str) -> StatusError:
    """A request that can't be read."""
    return StatusError(400, "BadRequest", message)


def strict_decoding(resource: Resource, faults: Iterable[str]) -> UndecodableError:
    """Fields that the kind doesn't have, or that stand twice; each in words: ``unknown field "spec.x"``."""
    return undecodable(resource, f"strict decoding error: {', '.join(faults)}")


def undecodable(resource: Resource, why: str, kind: str = "", version: str = "") -> UndecodableError:
    """An object that is none of its kind; ``kind`` and ``version`` are those that it claims, if they are others."""
    named = f'{kind or resource.kind} in version "{version or resource.version}"'
    return UndecodableError(f"{named} cannot be handled as a {resource.kind}: {why}", why)


def unauthorized() -> StatusError:
    """Nobody knows who asks."""
    return StatusError(401, "Unauthorized", "Unauthorized")


def forbidden_act(user: str, act: Act) -> StatusError:
    """Somebody who may not do this; without a namespace it is asked for all of them."""
    qualified = f"{act.resource}.{act.group}" if act.group else act.resource
    named = f'{qualified} "{act.name}"' if act.name else qualified
    where = f'in the namespace "{act.namespace}"' if act.namespace else "at the cluster scope"
    message = (
        f'{named} is forbidden: User "{user}" cannot {act.verb} resource "{act.whole}"'
        f' in API group "{act.group}" {where}'
    )
    details: Json = {"name": act.name, "group": act.group, "kind": act.resource}
    return StatusError(403, "Forbidden", message, {key: value for key, value in details.items() if value})


def forbidden_path(user: str, verb: str, path: str) -> StatusError:
    """Somebody who may not ask for a path that is no resource."""
    message = f'forbidden: User "{user}" cannot {verb} path "{path}"'
    return StatusError(403, "Forbidden", message)


def denied(webhook: str, why: str) -> StatusError:
    """What the reference's admission refuses; ``webhook`` is the name of the one that would."""
    return StatusError(403, "Forbidden", f'admission webhook "{webhook}" denied the request: {why}')


def in_terminating_namespace(resource: Resource, name: str, namespace: str) -> StatusError:
    """Nothing is created in a namespace that goes away."""
    message = (
        f'{resource.qualified} "{name}" is forbidden: unable to create new content in namespace {namespace}'
        " because it is being terminated"
    )
    cause = Cause(
        field="metadata.namespace",
        reason="NamespaceTerminating",
        message=f"namespace {namespace} is being terminated",
    )
    details = {**_named(resource, name), "causes": [cause.plain()]}
    return StatusError(403, "Forbidden", message, details)


def method_not_allowed() -> StatusError:
    """The resource is there, the verb isn't."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message, {})


def not_acceptable(*, known: bool) -> StatusError:
    """The client takes none of the forms that there are; ``known`` where only what it wants of them is none."""
    if known:
        message = f"only the following media types are accepted: {_BODY_TYPES}"
        return StatusError(406, "NotAcceptable", message)
    streams = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
    message = f"406: Not Acceptable\n\nAvailable representations: {_BODY_TYPES}, {streams}"
    return StatusError(406, "NotAcceptable", message, {})


def expired(message: str = "The resourceVersion for the provided watch is too old.") -> StatusError:
    """What was asked for is kept no longer."""
    return StatusError(410, "Expired", message)


def too_large(bytes_max: int) -> StatusError:
    """A body over the limit."""
    message = f"Request entity too large: limit is {bytes_max}"
    return StatusError(413, "RequestEntityTooLarge", message)


def unsupported_media_type(*, patch: bool, known: bool = True) -> StatusError:
    """A body of another form than is read; ``known`` forms of patches are read for other kinds."""
    if patch and not known:
        return StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
    accepted = _PATCH_TYPES if patch else _BODY_TYPES
    message = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
    return StatusError(415, "UnsupportedMediaType", message)


def too_many_requests(retry_after_s: int, why: str = "") -> StatusError:
    """The client is to come back later."""
    message = why or "Too many requests, please try again later."
    return StatusError(429, "TooManyRequests", message, {"retryAfterSeconds": retry_after_s})


def internal(message: str) -> StatusError:
    """A fault of ours."""
    return StatusError(500, "InternalError", f"Internal error occurred: {message}")


def unavailable(message: str, retry_after_s: int = 1) -> StatusError:
    """What is needed for the answer can't be reached."""
    return StatusError(503, "ServiceUnavailable", message, {"retryAfterSeconds": retry_after_s})


def timed_out(message: str, retry_after_s: int = 1) -> StatusError:
    """The answer did not come in time; what was asked for may still happen."""
    return StatusError(504, "Timeout", f"Timeout: {message}", {"retryAfterSeconds": retry_after_s})


def _told(causes: Sequence[Cause]) -> str:
    """Causes as a message has them, each once."""
    words = list(dict.fromkeys(each.words for each in causes))
    return words[0] if len(words) == 1 else f"[{', '.join(words)}]"


def _named(resource: Resource, name: str) -> Json:
    found: Json = {"name": name, "group": resource.group, "kind": resource.plural}
    return {key: value for key, value in found.items() if value}
