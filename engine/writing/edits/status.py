"""Edits of the status subresource: replace, patch or apply a status."""

from msgspec import Struct, structs

from engine.kubeapi.admission.rules import workloads
from engine.kubeapi.errors import status_objects
from engine.kubeapi.errors.status_objects import Cause
from engine.kubeapi.patching import managed_fields, server_side_apply
from engine.kubeapi.schema.types import parsing
from engine.writing.edits import applying, patching, preconditions
from engine.writing.edits.objects import (
    STATUS,
    RequestedEdit,
    Writer,
    check_head,
    check_structure,
    check_types,
    with_known_fields,
)
from engine.writing.mutations import Edited
from events.json_values import Json, as_object
from events.kube_objects import KubeObject


class DerivedStatus(Struct, frozen=True, kw_only=True):
    """The part of a status that the engine derives, and the ``managedFields`` entry by which the engine owns it."""

    status: Json
    entry: Json


class StatusReplacement(RequestedEdit, frozen=True):
    """Replace the status of the current object by that of the body."""

    body: KubeObject
    derived: DerivedStatus | None = None

    def apply(self, live: KubeObject | None) -> Edited:
        """Return the object with the new status."""
        current = self.existing(live)
        preconditions.check_versioned(self.writer.resource, self.writer.name, self.body)
        check_head(self.writer, current, self.body)
        return _with_status(self.writer, current, with_known_fields(self.writer, self.body), self.derived)


class StatusPatch(RequestedEdit, frozen=True):
    """Patch the status of the current object; ``kind`` is the media type of the patch."""

    kind: str
    patch: object
    derived: DerivedStatus | None = None

    def apply(self, live: KubeObject | None) -> Edited:
        """Return the object with the patched status."""
        current = self.existing(live)
        patched = patching.patched_to(self.writer, self.kind, current, self.patch)
        return _with_status(self.writer, current, patched, self.derived)


class StatusApplication(RequestedEdit, frozen=True):
    """Server-side apply of a status to the current object; other fields are ignored.

    The engine owns the values that it derives: applying another value is a conflict. With force the client shares
    the ownership, but reads still show the derived value.
    """

    desired: KubeObject
    force: bool
    derived: DerivedStatus | None = None

    def apply(self, live: KubeObject | None) -> Edited:
        """Return the object with the merged status, which is ``live`` itself if nothing changes."""
        current, writer, derived = self.existing(live), self.writer, self.derived
        known = with_known_fields(writer, self.desired)
        desired = applying.with_path_identity(writer, known.value)
        check_head(writer, current, desired)
        check_types(writer, desired)
        seen = current if derived is None else _with_derived(current, derived)
        write = structs.replace(writer, part=STATUS).write(managed_fields.APPLY)
        merged = applying.applied_to(writer, seen, desired, write, force=self.force)
        if merged is seen:
            return Edited(current, known.warnings)
        _check_counts(writer, merged, derived)
        own = _without_derived(merged, current, desired, derived)
        return Edited(_same_but_for_status(writer, current, own, is_owned=True), known.warnings)


def _with_status(writer: Writer, live: KubeObject, edited: Edited, derived: DerivedStatus | None) -> Edited:
    preconditions.check_version(writer.resource, live, edited.value, writer.newest)
    new = _same_but_for_status(writer, live, edited.value, is_owned=False)
    _check_counts(writer, new, derived)
    # Objects of built-in kinds always have a status. Start with an empty one, so that no client owns ``status`` itself.
    begun: Json = {"status": {}} if "status" in parsing.blank(writer.resource.schema) else {}
    write = structs.replace(writer, part=STATUS).write(managed_fields.UPDATE)
    try:
        owned = server_side_apply.updated(
            KubeObject({**begun, **live.document}), new, writer.resource.schema, write
        )
    except managed_fields.ManagedFieldsError as error:
        raise status_objects.bad_request(str(error)) from None
    return Edited(owned, edited.warnings)


def _with_derived(live: KubeObject, derived: DerivedStatus) -> KubeObject:
    owners = [*managed_fields.entries(live), derived.entry]
    shown = live.with_metadata({"managedFields": owners})
    return shown.with_fields({"status": {**live.object_at("status"), **derived.status}})


def _without_derived(
    merged: KubeObject, live: KubeObject, desired: KubeObject, derived: DerivedStatus | None
) -> KubeObject:
    """Return the object without the status fields that the engine derives, except those that clients have written.

    Each read adds the derived fields again.
    """
    if derived is None:
        return merged
    written = {*live.object_at("status"), *desired.object_at("status")}
    status = merged.object_at("status")
    kept = {name: item for name, item in status.items() if name in written or name not in derived.status}
    return merged.with_fields({"status": kept})


def _same_but_for_status(writer: Writer, live: KubeObject, made: KubeObject, *, is_owned: bool) -> KubeObject:
    """Return the current object with the status of ``made``.

    With ``is_owned``, the metadata are also those of ``made``; they contain the field owners.
    """
    current = made.at("status")
    status = as_object({} if current is None else current)
    if status is None:
        message = "Invalid value: must be an object"
        cause = Cause(field="status", reason="FieldValueInvalid", message=message)
        raise status_objects.invalid(writer.resource, writer.name, [cause])
    owners: Json = {"metadata": made.metadata} if is_owned else {}
    result = live.with_fields({**owners, "status": status})
    check_structure(writer, live, result, STATUS)
    return result


def _check_counts(writer: Writer, value: KubeObject, derived: DerivedStatus | None) -> None:
    """Raise StatusError if the status has invalid replica counts.

    For fields that the engine derives, its values are checked instead of the written ones.
    """
    status = {**value.object_at("status"), **({} if derived is None else derived.status)}
    if wrong := list(workloads.status_faults(writer.resource, status)):
        raise status_objects.invalid(writer.resource, writer.name, wrong)
