"""New objects out of requests: created, replaced, patched, applied, scaled.

Each function here gives a computation from the object that stands to the one that is wanted, which the door carries
out, again where somebody else was faster. What is computed has its defaults, its owners, and has been looked at.
"""

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Struct, structs

from engine.gateway.door_changes import Compute
from engine.kube import (
    built_in_defaults,
    field_validation,
    karmada_defaults,
    karmada_rules,
    managed_fields,
    managers,
    patches,
    scales,
    statuses,
    strategic_merge,
    value_validation,
)
from engine.kube.managed_fields import Manager
from engine.kube.resources import Resource
from engine.kube.schemas import Json, as_list, as_object
from engine.kube.statuses import Cause
from events import forms, forms_kinds, times

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
_VERSION_DIGITS_MAX: Final = 18
STATUS: Final = "status"
APPLY_PATCHES: Final = ("application/apply-patch+yaml", "application/apply-patch")


class Writer(Struct, frozen=True, kw_only=True):
    """Who writes what kind of object, when, and how strictly its fields are looked at.

    ``warnings`` takes what is to be told beside the answer. ``namespace`` and ``name`` are those of the path.
    """

    resource: Resource
    namespace: str
    name: str
    manager: str
    now_ms: int
    validation: str
    warnings: list[str]
    part: str = ""

    def write(self, operation: str) -> managers.Write:
        """The write, for those who keep the owners of fields."""
        if reason := managed_fields.name_fault(self.manager):
            raise statuses.bad_request(f"metadata.managedFields: {reason}")
        return managers.Write(
            manager=Manager(
                name=self.manager,
                operation="Apply" if operation == managed_fields.APPLY else "Update",
                subresource=self.part,
            ),
            api_version=self.resource.api_version,
            time=times.to_seconds_text(self.now_ms),
            untouched=managers.untouched(self.resource, self.part),
        )


def creation(writer: Writer, body: Json) -> Compute:
    """The object in the body, where there is none yet."""

    def compute(live: Json | None) -> Json:
        if live is not None:
            raise statuses.already_exists(writer.resource, writer.name)
        return _updated(writer, None, _fitting(writer, body))

    return compute


def replacement(writer: Writer, body: Json) -> Compute:
    """The object in the body, in place of the one that stands."""

    def compute(live: Json | None) -> Json:
        if live is None:
            raise statuses.not_found(writer.resource, writer.name)
        return _updated(writer, live, _fitting(writer, body))

    return compute


def patched(writer: Writer, kind: str, patch: object) -> Compute:
    """The object that stands, with a JSON, merge or strategic merge patch; raises StatusError for another kind."""
    schema = writer.resource.schema
    if kind == STRATEGIC_PATCH and not strategic_merge.takes(schema):
        raise statuses.unsupported_media_type(patch=True)
    if kind not in (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH):
        raise statuses.unsupported_media_type(patch=True, strategic=strategic_merge.takes(schema))

    def compute(live: Json | None) -> Json:
        if live is None:
            raise statuses.not_found(writer.resource, writer.name)
        return _updated(writer, live, _fitting(writer, _patch(writer, kind, live, patch)))

    return compute


def applied(writer: Writer, wanted: Json, *, force: bool) -> Compute:
    """What stands with what is applied to it (server-side apply); an object that is not there is made."""

    def compute(live: Json | None) -> Json:
        fitting = _named(writer, _fitting(writer, wanted))
        _check_head(writer, live, fitting)
        found = _applied(writer, live, fitting, writer.write(managed_fields.APPLY), force=force)
        if found is live:
            return found
        filled = karmada_defaults.with_defaults(found, writer.now_ms)
        _check_whole(writer, live, filled)
        return filled

    return compute


def scaled(writer: Writer, change: Callable[[Json], Json]) -> Compute:
    """The object that stands, with the replicas of its changed Scale."""
    of_scale = structs.replace(writer, part="scale")

    def compute(live: Json | None) -> Json:
        if live is None:
            raise statuses.not_found(writer.resource, writer.name)
        scale = change(scales.scale_of(writer.resource, live))
        _check_version(writer, live, as_object(scale.get("metadata")) or {})
        try:
            found = scales.scaled(writer.resource, live, scale)
        except scales.ScaleError as error:
            cause = Cause(field=error.field, reason="FieldValueInvalid", message=error.reason)
            raise statuses.invalid(writer.resource, writer.name, [cause]) from None
        return _updated(of_scale, live, found)

    return compute


def status_replaced(writer: Writer, body: Json) -> Compute:
    """The object that stands, with the status of the one in the body."""

    def make(live: Json) -> Json:
        _check_head(writer, live, body)
        return body

    return _with_status(writer, make)


def status_patched(writer: Writer, kind: str, patch: object) -> Compute:
    """The object that stands, with its status patched."""
    schema = writer.resource.schema
    if kind not in (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH) or (
        kind == STRATEGIC_PATCH and not strategic_merge.takes(schema)
    ):
        raise statuses.unsupported_media_type(patch=True, strategic=strategic_merge.takes(schema))
    return _with_status(writer, lambda live: _patch(writer, kind, live, patch))


def status_applied(writer: Writer, wanted: Json, *, force: bool) -> Compute:
    """The object that stands with a status applied to its own (server-side apply); all else of it is left out."""
    write = structs.replace(writer, part=STATUS).write(managed_fields.APPLY)

    def compute(live: Json | None) -> Json:
        if live is None:
            raise statuses.not_found(writer.resource, writer.name)
        fitting = _fitting(writer, wanted)
        _check_head(writer, live, fitting)
        found = _applied(writer, live, fitting, write, force=force)
        return live if found is live else _same_but_for_status(writer, live, found, is_owned=True)

    return compute


def _with_status(writer: Writer, make: Callable[[Json], Json]) -> Compute:
    write = structs.replace(writer, part=STATUS).write(managed_fields.UPDATE)

    def compute(live: Json | None) -> Json:
        if live is None:
            raise statuses.not_found(writer.resource, writer.name)
        made = _fitting(writer, make(live))
        _check_version(writer, live, as_object(made.get("metadata")) or {})
        new = _same_but_for_status(writer, live, made, is_owned=False)
        try:
            return managers.updated(live, new, writer.resource.schema, write)
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
    return {**live, **owners, "status": status}


def _named(writer: Writer, value: Json) -> Json:
    """The object with the name and the namespace of the path, where it says none itself."""
    held = as_object(value.get("metadata")) or {}
    place = {"name": writer.name, "namespace": writer.namespace}
    missing = {name: text for name, text in place.items() if text and not held.get(name)}
    return {**value, "metadata": {**held, **missing}} if missing else value


def _applied(writer: Writer, live: Json | None, wanted: Json, write: managers.Write, *, force: bool) -> Json:
    """What stands with what is applied to it; raises StatusError."""
    try:
        return managers.applied(live, wanted, writer.resource.schema, write, force=force)
    except managers.ApplyConflictError as error:
        raise statuses.apply_conflict(error) from None
    except (managers.ApplyError, managed_fields.ManagedFieldsError) as error:
        raise statuses.bad_request(str(error)) from None


def merged(patch: object, kind: str) -> Callable[[Json], Json]:
    """What a patch makes of a Scale."""

    def change(scale: Json) -> Json:
        if kind == JSON_PATCH:
            found = _json_patched(scale, patch)
        elif kind in (MERGE_PATCH, STRATEGIC_PATCH):
            found = as_object(patches.merge_patched(scale, patch))
        else:
            raise statuses.unsupported_media_type(patch=True)
        return found or {}

    return change


def _patch(writer: Writer, kind: str, live: Json, patch: object) -> Json:
    if kind == JSON_PATCH:
        return _json_patched(live, patch)
    changes = as_object(patch)
    if changes is None:
        raise statuses.bad_request("the patch is no object")
    if kind == MERGE_PATCH:
        return as_object(patches.merge_patched(live, changes)) or {}
    try:
        return strategic_merge.patched(live, changes, writer.resource.schema)
    except strategic_merge.StrategicMergeError as error:
        raise statuses.bad_request(str(error)) from None


def _json_patched(value: Json, patch: object) -> Json:
    try:
        found = as_object(patches.json_patched(value, patch))
    except patches.PatchError:
        raise statuses.unfit_patch() from None
    if found is None:
        raise statuses.unfit_patch()
    return found


def _fitting(writer: Writer, value: Json) -> Json:
    """The object with the fields that its kind has; raises StatusError where others are not to be left out."""
    schema = writer.resource.schema
    if not any(field_validation.unknown_fields(value, schema)):
        return value
    # The reference's guides write a field of a policy with a capital letter; what it means is clear, and told.
    notes: list[str] = []
    value = forms.canonical_object(value, notes, prune=False)
    writer.warnings.extend(note for note in notes if note not in writer.warnings)
    unknown = [field_validation.words(path) for path in field_validation.unknown_fields(value, schema)]
    if not unknown:
        return value
    if writer.validation == "Strict":
        raise statuses.strict_decoding(writer.resource, unknown)
    if writer.validation == "Warn":
        writer.warnings.extend(words for words in unknown if words not in writer.warnings)
    return field_validation.pruned(value, schema)


def _updated(writer: Writer, live: Json | None, new: Json) -> Json:
    _check_head(writer, live, new)
    metadata = as_object(new.get("metadata")) or {}
    if live is not None:
        # What a body leaves out of what only the server sets is not meant to go.
        held = as_object(live.get("metadata")) or {}
        kept = ("uid", "resourceVersion", "generation", "creationTimestamp")
        kept += ("deletionTimestamp", "deletionGracePeriodSeconds")
        metadata = {
            **{name: item for name, item in metadata.items() if name not in kept},
            **{name: held[name] for name in kept if name in held},
        }
    else:
        gone = ("deletionTimestamp", "deletionGracePeriodSeconds")
        metadata = {name: item for name, item in metadata.items() if name not in gone}
    metadata = {**metadata, "name": writer.name}
    if writer.namespace:
        metadata["namespace"] = writer.namespace
    filled = karmada_defaults.with_defaults({**new, "metadata": metadata}, writer.now_ms)
    if live is not None and built_in_defaults.same(live, filled):
        # What was shown is written back: what the API fills in is no change.
        filled = {**live, "metadata": metadata}
    _check_whole(writer, live, filled)
    try:
        return managers.updated(live, filled, writer.resource.schema, writer.write(managed_fields.UPDATE))
    except managed_fields.ManagedFieldsError as error:
        raise statuses.bad_request(str(error)) from None


def _check_head(writer: Writer, live: Json | None, new: Json) -> None:
    """Raises StatusError where the object isn't the one that the path names, or was computed from another version."""
    resource = writer.resource
    named = (new.get("apiVersion"), new.get("kind"))
    if named != (resource.api_version, resource.kind):
        message = (
            f"the API version in the data ({named[0]}, {named[1]}) does not match the expected API version "
            f"({resource.api_version}, {resource.kind})"
        )
        raise statuses.bad_request(message)
    metadata = as_object(new.get("metadata")) or {}
    name, namespace = metadata.get("name", writer.name), metadata.get("namespace") or writer.namespace
    if name != writer.name:
        message = f"the name of the object ({name}) does not match the name on the URL ({writer.name})"
        raise statuses.bad_request(message)
    if namespace != writer.namespace:
        message = "the namespace of the provided object does not match the namespace sent on the request"
        raise statuses.bad_request(message)
    if live is not None:
        _check_version(writer, live, metadata)


def _check_version(writer: Writer, live: Json, metadata: Json) -> None:
    held = as_object(live.get("metadata")) or {}
    uid = metadata.get("uid")
    if uid and uid != held.get("uid"):
        raise statuses.precondition_failed(
            writer.resource, writer.name, "UID", str(uid), str(held.get("uid"))
        )
    seen = metadata.get("resourceVersion")
    # What was shown may be newer than the last write, since it grows with the status too.
    if seen and (not _is_number(seen) or int(str(seen)) < int(str(held.get("resourceVersion")))):
        raise statuses.conflict(writer.resource, writer.name)


def _check_whole(writer: Writer, live: Json | None, value: Json) -> None:
    """Raises StatusError where the object can't be, by its form or by the rules of its kind."""
    resource = writer.resource
    finalizers = as_list((as_object(value.get("metadata")) or {}).get("finalizers")) or []
    if not all(isinstance(each, str) for each in finalizers):
        raise statuses.bad_request("metadata.finalizers: must be texts")
    try:
        listed = karmada_rules.form_causes(value)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as error:
        raise statuses.bad_request(f"the object can't be written as JSON: {error}") from None
    if forms_kinds.route_of(resource.api_version, resource.kind) == "configuration":
        worded = value_validation.faults(value, resource.schema)
        told = {cause.field for cause in worded}
        listed = [*worded, *(cause for cause in listed if cause.field not in told)]
    if listed:
        raise statuses.invalid(resource, writer.name, listed)
    if words := karmada_rules.denial(karmada_rules.rule_causes(value, live)):
        raise statuses.denied(karmada_rules.webhook(resource.kind), words)


def _is_number(text: object) -> bool:
    return isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) <= _VERSION_DIGITS_MAX
