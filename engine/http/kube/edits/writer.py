"""The request of an edit, and the checks of an object against the request's path and the current object."""

from typing import Final

from msgspec import Struct

from engine.karmada.default_tolerations import TolerationSeconds
from engine.kubeapi.errors import status_objects
from engine.kubeapi.errors.status_objects import StatusError
from engine.kubeapi.patching import managed_fields, server_side_apply
from engine.kubeapi.patching.managed_fields import Manager
from engine.kubeapi.requests import body_checks
from engine.kubeapi.schema.resources import Resource
from engine.writing.mutations import Edited
from events import times
from events.kube_objects import KubeObject

STATUS: Final = "status"
APPROVAL: Final = "approval"
STATUSES: Final = (STATUS, APPROVAL)
"""Subresources that are written into the status."""

SCALE: Final = "scale"
_VERSION_DIGITS_MAX: Final = 18


class AheadError(StatusError):
    """The object's resourceVersion is newer than any this server knows; another replica may have returned it."""

    def __init__(self, resource: Resource, name: str) -> None:
        conflict = status_objects.conflict(resource, name)
        super().__init__(conflict.code, conflict.reason, conflict.message, conflict.details)


class Writer(Struct, frozen=True, kw_only=True):
    """Properties of a write: object, field manager, time, strictness of field validation.

    ``namespace`` and ``name`` are those of the path. ``newest`` is the highest resourceVersion that this server
    knows. ``tolerated`` is the default toleration of failing clusters for policies that set none.
    """

    resource: Resource
    namespace: str
    name: str
    manager: str
    now_ms: int
    validation: str
    newest: int
    part: str = ""
    tolerated: TolerationSeconds = TolerationSeconds()

    def write(self, operation: str) -> server_side_apply.Write:
        """The field manager's write, for ``managers``."""
        return server_side_apply.Write(
            manager=Manager(
                name=self.manager,
                operation="Apply" if operation == managed_fields.APPLY else "Update",
                subresource=self.part,
            ),
            api_version=self.resource.api_version,
            # Kubernetes records no time for owners of the scale subresource.
            time="" if self.part == SCALE else times.to_seconds_text(self.now_ms),
            untouched=server_side_apply.untouched(self.resource, self.part),
        )


class RequestedEdit(Struct, frozen=True):
    """An edit that a request asks for."""

    writer: Writer

    def apply(self, live: KubeObject | None) -> Edited:
        """Return the new object; ``live`` is the current one, if it exists. Pure; raises StatusError."""
        raise NotImplementedError

    def existing(self, live: KubeObject | None) -> KubeObject:
        """The current object; raises StatusError (404) if there is none."""
        if live is None:
            raise status_objects.not_found(self.writer.resource, self.writer.name)
        return live


def check_head(writer: Writer, live: KubeObject | None, new: KubeObject) -> None:
    """Raise StatusError if name or namespace are not the path's, or uid or resourceVersion not the current object's."""
    body_checks.check_kind(writer.resource, new)
    check_named(writer, new)
    if live is not None:
        check_version(writer, live, new)


def check_named(writer: Writer, new: KubeObject) -> None:
    """Raise StatusError if name or namespace differ from those of the path."""
    metadata = new.metadata
    name, namespace = metadata.get("name"), metadata.get("namespace") or writer.namespace
    if not name:
        message = (
            f"the name of the object ({writer.name} based on URL) was undeterminable: name must be provided"
        )
        raise status_objects.bad_request(message)
    if name != writer.name:
        message = f"the name of the object ({name}) does not match the name on the URL ({writer.name})"
        raise status_objects.bad_request(message)
    if namespace != writer.namespace:
        message = "the namespace of the provided object does not match the namespace sent on the request"
        raise status_objects.bad_request(message)


def check_version(writer: Writer, live: KubeObject, new: KubeObject) -> None:
    """Raise StatusError if uid or resourceVersion of ``new`` are set and not those of ``live``."""
    metadata = new.metadata
    uid = metadata.get("uid")
    if uid and uid != live.uid:
        raise status_objects.precondition_failed(writer.resource, writer.name, "UID", str(uid), live.uid)
    seen = metadata.get("resourceVersion")
    # A resourceVersion also grows with the status, so one newer than the last write is no conflict.
    if seen and (not _is_number(seen) or int(str(seen)) < int(live.resource_version)):
        raise status_objects.conflict(writer.resource, writer.name)
    if seen and int(str(seen)) > writer.newest:
        raise AheadError(writer.resource, writer.name)


def _is_number(text: object) -> bool:
    return isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) <= _VERSION_DIGITS_MAX
