"""The status subresource: replace, patch or apply a status; returns computations as in ``mutations``."""

from collections.abc import Callable

from msgspec import Struct, structs

from engine.http.kube import mutations
from engine.http.kube.mutations import Writer
from engine.kubeapi.admission.rules import replica_counts
from engine.kubeapi.errors import status_objects
from engine.kubeapi.errors.status_objects import Cause
from engine.kubeapi.patching import field_paths, managed_fields, server_side_apply
from engine.writing.object_changes import Compute
from events.json_values import Json, as_list, as_object


class DerivedStatus(Struct, frozen=True, kw_only=True):
    """The part of a status that the engine derives, and the ``managedFields`` entry by which the engine owns it."""

    status: Json
    entry: Json


def replaced(writer: Writer, body: Json, derived: DerivedStatus | None = None) -> Compute:
    """The current object with the status of the body."""

    def make(live: Json) -> Json:
        mutations.check_head(writer, live, body)
        return body

    return _with_status(writer, make, derived)


def patched(writer: Writer, kind: str, patch: object, derived: DerivedStatus | None = None) -> Compute:
    """The current object with its status patched."""
    mutations.check_patch_type(writer, kind)
    return _with_status(writer, lambda live: mutations.patched_to(writer, kind, live, patch), derived)


def applied(writer: Writer, desired: Json, *, force: bool, derived: DerivedStatus | None = None) -> Compute:
    """The current object with a status applied to its own (server-side apply); other fields are ignored.

    The engine owns the values that it derives: applying another value is a conflict, and forcing it gives
    shared ownership, but the derived value is still rendered over it.
    """
    write = structs.replace(writer, part=mutations.STATUS).write(managed_fields.APPLY)

    def compute(live: Json | None) -> Json:
        if live is None:
            raise status_objects.not_found(writer.resource, writer.name)
        fitting = mutations.with_path_identity(writer, mutations.with_known_fields(writer, desired))
        mutations.check_head(writer, live, fitting)
        mutations.check_types(writer, fitting)
        seen = live if derived is None else _with_derived(live, derived)
        merged = mutations.applied_to(writer, seen, fitting, write, force=force)
        if merged is seen:
            return live
        _check_counts(writer, merged, derived)
        return _same_but_for_status(
            writer, live, _without_derived(merged, live, fitting, derived), is_owned=True
        )

    return compute


def _with_derived(live: Json, derived: DerivedStatus) -> Json:
    status = {**(as_object(live.get("status")) or {}), **derived.status}
    entries = [*(as_list(managed_fields.in_object(live)) or []), derived.entry]
    metadata = {**(as_object(live.get("metadata")) or {}), "managedFields": entries}
    return {**live, "metadata": metadata, "status": status}


def _without_derived(merged: Json, live: Json, desired: Json, derived: DerivedStatus | None) -> Json:
    """The object without the engine's derived status, which is rendered again on each read.

    Fields that this client or an earlier one wrote are kept.
    """
    if derived is None:
        return merged
    written = {*(as_object(live.get("status")) or {}), *(as_object(desired.get("status")) or {})}
    status = as_object(merged.get("status")) or {}
    kept = {name: item for name, item in status.items() if name in written or name not in derived.status}
    return {**merged, "status": kept}


def _with_status(writer: Writer, make: Callable[[Json], Json], derived: DerivedStatus | None) -> Compute:
    write = structs.replace(writer, part=mutations.STATUS).write(managed_fields.UPDATE)

    def compute(live: Json | None) -> Json:
        if live is None:
            raise status_objects.not_found(writer.resource, writer.name)
        made = mutations.with_known_fields(writer, make(live))
        mutations.check_version(writer, live, as_object(made.get("metadata")) or {})
        new = _same_but_for_status(writer, live, made, is_owned=False)
        _check_counts(writer, new, derived)
        # A built-in kind always has a status, so the field ``status`` itself has no owner.
        begun: Json = {"status": {}} if "status" in field_paths.blank(writer.resource.schema) else {}
        try:
            return server_side_apply.updated({**begun, **live}, new, writer.resource.schema, write)
        except managed_fields.ManagedFieldsError as error:
            raise status_objects.bad_request(str(error)) from None

    return compute


def _same_but_for_status(writer: Writer, live: Json, made: Json, *, is_owned: bool) -> Json:
    """The current object with the status of ``made``; with ``is_owned`` also its metadata, for the field owners."""
    status = as_object({} if made.get("status") is None else made["status"])
    if status is None:
        message = "Invalid value: must be an object"
        cause = Cause(field="status", reason="FieldValueInvalid", message=message)
        raise status_objects.invalid(writer.resource, writer.name, [cause])
    owners: Json = {"metadata": made["metadata"]} if is_owned else {}
    result = {**live, **owners, "status": status}
    mutations.check_structure(writer, live, result, mutations.STATUS)
    return result


def _check_counts(writer: Writer, value: Json, derived: DerivedStatus | None) -> None:
    """Raise StatusError if the rendered status (with the engine's values) is invalid."""
    status = {**(as_object(value.get("status")) or {}), **({} if derived is None else derived.status)}
    if wrong := list(replica_counts.faults(writer.resource, status)):
        raise status_objects.invalid(writer.resource, writer.name, wrong)
