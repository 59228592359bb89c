"""Objects with another status, that is replaced, patched or applied; computations as in ``changing``."""

from collections.abc import Callable

from msgspec import Struct, structs

from engine.gateway.door_changes import Compute
from engine.gateway.kube import changing
from engine.gateway.kube.changing import Writer
from engine.kube import leaves, managed_fields, managers, rules_statuses, statuses
from engine.kube.schemas import Json, as_list, as_object
from engine.kube.statuses import Cause


class Said(Struct, frozen=True, kw_only=True):
    """What the engine says in the status of an object, and the entry of ``managedFields`` by which it owns that."""

    status: Json
    entry: Json


def replaced(writer: Writer, body: Json, said: Said | None = None) -> Compute:
    """The object that stands, with the status of the one in the body."""

    def make(live: Json) -> Json:
        changing.check_head(writer, live, body)
        return body

    return _with_status(writer, make, said)


def patched(writer: Writer, kind: str, patch: object, said: Said | None = None) -> Compute:
    """The object that stands, with its status patched."""
    changing.check_patch_type(writer, kind)
    return _with_status(writer, lambda live: changing.patched_to(writer, kind, live, patch), said)


def applied(writer: Writer, wanted: Json, *, force: bool, said: Said | None = None) -> Compute:
    """The object that stands with a status applied to its own (server-side apply); all else of it is left out.

    What the engine says has an owner as anything else: who applies another value has a conflict with it, and who
    forces it owns the field, but sees the engine's value again, as any controller would write it again.
    """
    write = structs.replace(writer, part=changing.STATUS).write(managed_fields.APPLY)

    def compute(live: Json | None) -> Json:
        if live is None:
            raise statuses.not_found(writer.resource, writer.name)
        fitting = changing.with_place(writer, changing.with_known_fields(writer, wanted))
        changing.check_head(writer, live, fitting)
        changing.check_types(writer, fitting)
        seen = live if said is None else _with_said(live, said)
        found = changing.applied_to(writer, seen, fitting, write, force=force)
        if found is seen:
            return live
        _check_counts(writer, found, said)
        return _same_but_for_status(writer, live, _without_said(found, live, fitting, said), is_owned=True)

    return compute


def _with_said(live: Json, said: Said) -> Json:
    status = {**(as_object(live.get("status")) or {}), **said.status}
    entries = [*(as_list(managed_fields.in_object(live)) or []), said.entry]
    metadata = {**(as_object(live.get("metadata")) or {}), "managedFields": entries}
    return {**live, "metadata": metadata, "status": status}


def _without_said(found: Json, live: Json, wanted: Json, said: Said | None) -> Json:
    """The object without what only the engine says, which is put on again when it is shown."""
    if said is None:
        return found
    written = {*(as_object(live.get("status")) or {}), *(as_object(wanted.get("status")) or {})}
    status = as_object(found.get("status")) or {}
    kept = {name: item for name, item in status.items() if name in written or name not in said.status}
    return {**found, "status": kept}


def _with_status(writer: Writer, make: Callable[[Json], Json], said: Said | None) -> Compute:
    write = structs.replace(writer, part=changing.STATUS).write(managed_fields.UPDATE)

    def compute(live: Json | None) -> Json:
        if live is None:
            raise statuses.not_found(writer.resource, writer.name)
        made = changing.with_known_fields(writer, make(live))
        changing.check_version(writer, live, as_object(made.get("metadata")) or {})
        new = _same_but_for_status(writer, live, made, is_owned=False)
        _check_counts(writer, new, said)
        # Nobody owns the status as such of a kind that always has one.
        begun: Json = {"status": {}} if "status" in leaves.blank(writer.resource.schema) else {}
        try:
            return managers.updated({**begun, **live}, new, writer.resource.schema, write)
        except managed_fields.ManagedFieldsError as error:
            raise statuses.bad_request(str(error)) from None

    return compute


def _same_but_for_status(writer: Writer, live: Json, made: Json, *, is_owned: bool) -> Json:
    """The object that stands with the status of another; ``is_owned`` takes who owns its fields from it too."""
    status = as_object({} if made.get("status") is None else made["status"])
    if status is None:
        message = "Invalid value: must be an object"
        cause = Cause(field="status", reason="FieldValueInvalid", message=message)
        raise statuses.invalid(writer.resource, writer.name, [cause])
    owners: Json = {"metadata": made["metadata"]} if is_owned else {}
    found = {**live, **owners, "status": status}
    changing.check_structure(writer, live, found, changing.STATUS)
    return found


def _check_counts(writer: Writer, value: Json, said: Said | None) -> None:
    """Raises StatusError where a status can't be, as it will be shown: with what the engine says."""
    status = {**(as_object(value.get("status")) or {}), **({} if said is None else said.status)}
    if wrong := list(rules_statuses.faults(writer.resource, status)):
        raise statuses.invalid(writer.resource, writer.name, wrong)
