"""Computation of new objects from requests: created, replaced, patched, applied.

Each function returns a computation from the current object to the new one. The write API runs it, again if
another client wrote in between. Results have defaults, field owners, and are validated.
"""

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Struct

from engine.karmada import defaults, rules
from engine.karmada.default_tolerations import TolerationSeconds
from engine.kubeapi.admission import built_in_defaults, structural, unknown_fields, value_validation
from engine.kubeapi.admission.rules import built_in
from engine.kubeapi.errors import causes, status_objects
from engine.kubeapi.errors.status_objects import StatusError
from engine.kubeapi.patching import (
    empty_values,
    field_paths,
    managed_fields,
    patches,
    server_side_apply,
    strategic_merge,
)
from engine.kubeapi.patching.managed_fields import Manager
from engine.kubeapi.requests import kind_check
from engine.kubeapi.schema import type_errors
from engine.kubeapi.schema.resources import Resource
from engine.kubeapi.values import go_texts
from engine.writing.object_changes import Compute
from events import times
from events.json_values import Json, as_list, as_object
from events.validation import known_kinds, manifests

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
_VERSION_DIGITS_MAX: Final = 18
STATUS: Final = "status"
SCALE: Final = "scale"


class AheadError(StatusError):
    """The object's resourceVersion is newer than any this server knows; another replica may have returned it."""

    def __init__(self, resource: Resource, name: str) -> None:
        conflict = status_objects.conflict(resource, name)
        super().__init__(conflict.code, conflict.reason, conflict.message, conflict.details)


class Writer(Struct, frozen=True, kw_only=True):
    """Properties of a write: object, field manager, time, strictness of field validation.

    Warnings for the client are appended to ``warnings``. ``namespace`` and ``name`` are those of the path.
    ``newest`` returns the highest resourceVersion that this server knows. ``tolerated`` is the default
    toleration of failing clusters for policies that set none.
    """

    resource: Resource
    namespace: str
    name: str
    manager: str
    now_ms: int
    validation: str
    warnings: list[str]
    newest: Callable[[], int]
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


def creation(writer: Writer, body: Json) -> Compute:
    """Create the object in the body; raises StatusError if one exists."""

    def compute(live: Json | None) -> Json:
        if live is not None:
            is_ending = "deletionTimestamp" in (as_object(live.get("metadata")) or {})
            raise status_objects.already_exists(writer.resource, writer.name, is_ending=is_ending)
        return updated(writer, None, with_known_fields(writer, body))

    return compute


def replacement(writer: Writer, body: Json) -> Compute:
    """Replace the current object by the one in the body; raises StatusError if there is none."""

    def compute(live: Json | None) -> Json:
        if live is None:
            raise status_objects.not_found(writer.resource, writer.name)
        return updated(writer, live, with_known_fields(writer, body))

    return compute


def patched(writer: Writer, kind: str, patch: object) -> Compute:
    """Apply a JSON, merge or strategic merge patch; raises StatusError for another type."""
    check_patch_type(writer, kind)

    def compute(live: Json | None) -> Json:
        if live is None:
            raise status_objects.not_found(writer.resource, writer.name)
        # Patches apply to the object as rendered: they may test, replace or remove defaults of the API.
        shown = built_in_defaults.with_defaults(live)
        return updated(writer, live, patched_to(writer, kind, shown, patch))

    return compute


def check_patch_type(writer: Writer, kind: str) -> None:
    """Raise StatusError (415) for a patch type that the kind does not support."""
    is_known = kind in (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH)
    if not is_known or (kind == STRATEGIC_PATCH and not strategic_merge.takes(writer.resource.schema)):
        raise status_objects.unsupported_media_type(patch=True, known=is_known)


def patched_to(writer: Writer, kind: str, live: Json, patch: object) -> Json:
    """The object after a patch, without unknown fields; raises StatusError if it is not a valid object."""
    resource, made = writer.resource, _patch(writer, kind, live, patch)
    if resource.is_kubernetes_own:
        head: Json = {"apiVersion": resource.api_version, "kind": resource.kind}
        made = {**made, **{name: text for name, text in head.items() if not made.get(name)}}
    try:
        kind_check.check(resource, made)
        if resource.is_kubernetes_own and (wrong := type_errors.mistyped(made, resource.schema)) is not None:
            message = wrong.expected if kind == STRATEGIC_PATCH else wrong.message
            raise status_objects.undecodable(resource, message)
        return with_known_fields(writer, made)
    except status_objects.UndecodableError as error:
        shown = go_texts.of(patch) if kind == STRATEGIC_PATCH else msgspec.json.encode(made).decode()
        raise status_objects.unfit_result(causes.invalid("patch", shown, error.detail)) from None


def applied(writer: Writer, desired: Json, *, force: bool) -> Compute:
    """Server-side apply; creates the object if it does not exist."""

    def compute(live: Json | None) -> Json:
        fitting = with_path_identity(writer, _applicable(writer, desired))
        check_head(writer, live, fitting)
        check_types(writer, fitting)
        merged = applied_to(writer, live, fitting, writer.write(managed_fields.APPLY), force=force)
        if merged is live:
            return merged
        filled = _filled(writer, merged)
        _check_kind(writer, _shown(live), built_in_defaults.with_defaults(filled))
        _check_whole(writer, live, filled)
        return filled

    return compute


def _applicable(writer: Writer, desired: Json) -> Json:
    """The object to apply with the types of its schema; raises StatusError if it does not fit."""
    resource, metadata = writer.resource, as_object(desired.get("metadata")) or {}
    named = (desired.get("apiVersion"), desired.get("kind"))
    if named != (resource.api_version, resource.kind):
        group_version, kind = (str(item or "") for item in named)
        raise status_objects.bad_request(f"invalid object type: {group_version or '/'}, Kind={kind}")
    if not (resource.is_kubernetes_own or resource.custom):
        return with_known_fields(writer, desired)
    for fault in field_paths.check(server_side_apply.plain(desired, resource.schema), resource.schema):
        where = f"{metadata.get('namespace') or ''}/{metadata.get('name') or ''}"
        named_type = f"{resource.api_version}, Kind={resource.kind}"
        raise status_objects.bad_request(
            f"failed to create typed patch object ({where}; {named_type}): {fault}"
        )
    return _plain(writer, desired)


def with_path_identity(writer: Writer, value: Json) -> Json:
    """The object with the name and the namespace of the path, where it has none."""
    metadata = as_object(value.get("metadata")) or {}
    identity = {"name": writer.name, "namespace": writer.namespace}
    missing = {name: text for name, text in identity.items() if text and not metadata.get(name)}
    return {**value, "metadata": {**metadata, **missing}} if missing else value


def applied_to(
    writer: Writer, live: Json | None, desired: Json, write: server_side_apply.Write, *, force: bool
) -> Json:
    """Merge an applied object and its field owners into the current one; raises StatusError on conflicts.

    Returns ``live`` itself if nothing changed.
    """
    schema = writer.resource.schema
    try:
        shown = _shown(live)
        owned = server_side_apply.applied(shown, desired, schema, write, force=force)
        if shown is live:
            return owned
        if owned is shown and live is not None:
            return live
        # Merge twice: ownership and conflicts cover fields that are defaulted by the API, but defaulted
        # values themselves are not stored.
        merged = server_side_apply.applied(live, desired, schema, write, force=True)
        return managed_fields.replaced(merged, entries(owned))
    except server_side_apply.ApplyConflictError as error:
        raise status_objects.apply_conflict(error) from None
    except (server_side_apply.ApplyError, managed_fields.ManagedFieldsError) as error:
        raise status_objects.bad_request(str(error)) from None


def _patch(writer: Writer, kind: str, live: Json, patch: object) -> Json:
    if kind == JSON_PATCH:
        return json_patched(live, patch)
    if patch is None:
        raise status_objects.bad_request("Invalid JSON Patch")
    changes = as_object(patch)
    if changes is None:
        message = f"json: cannot unmarshal {type_errors.sort_of(patch)} into Go value of type map[string]interface {{}}"
        raise status_objects.undecodable_patch(message)
    if kind == MERGE_PATCH:
        return as_object(patches.merge_patched(live, changes)) or {}
    try:
        return strategic_merge.patched(live, changes, writer.resource.schema)
    except strategic_merge.StrategicMergeError as error:
        raise status_objects.bad_request(str(error)) from None


def json_patched(value: Json, patch: object) -> Json:
    """The object after a JSON patch; raises StatusError."""
    if as_list(patch) is None:
        message = f"json: cannot unmarshal {type_errors.sort_of(patch)} into Go value of type []handlers.jsonPatchOp"
        raise status_objects.undecodable_patch(message)
    try:
        patched = as_object(patches.json_patched(value, patch))
    except patches.PatchError:
        raise status_objects.unfit_patch() from None
    if patched is None:
        raise status_objects.unfit_patch()
    return patched


def with_known_fields(writer: Writer, value: Json) -> Json:
    """The object without unknown fields; fieldValidation=Warn adds a warning, Strict raises StatusError."""
    schema = writer.resource.schema
    if not unknown_fields.unknown_fields(value, schema):
        return _plain(writer, value)
    # Karmada's guides spell a policy field with a capital letter; accept it, with a warning.
    notes: list[str] = []
    value = manifests.canonical_object(value, notes, prune=False)
    writer.warnings.extend(notes)
    unknown = [unknown_fields.message(path) for path in unknown_fields.unknown_fields(value, schema)]
    if not unknown:
        return value
    if writer.validation == "Strict":
        raise status_objects.strict_decoding(writer.resource, unknown)
    if writer.validation == "Warn":
        writer.warnings.extend(unknown)
    return _plain(writer, unknown_fields.pruned(value, schema))


def _plain(writer: Writer, value: Json) -> Json:
    return empty_values.without(value, writer.resource.schema) if writer.resource.is_kubernetes_own else value


def updated(writer: Writer, live: Json | None, new: Json) -> Json:
    """Complete and validate the object of a create, update or patch; raises StatusError.

    Sets server-side metadata, stored defaults and field owners.
    """
    check_head(writer, live, new)
    metadata = as_object(new.get("metadata")) or {}
    if live is not None:
        # Metadata that only the server sets is kept, even if the body leaves it out.
        live_metadata = as_object(live.get("metadata")) or {}
        kept = ("uid", "resourceVersion", "generation", "creationTimestamp")
        kept += ("deletionTimestamp", "deletionGracePeriodSeconds")
        metadata = {
            **{name: item for name, item in metadata.items() if name not in kept},
            **{name: live_metadata[name] for name in kept if name in live_metadata},
        }
    else:
        gone = ("deletionTimestamp", "deletionGracePeriodSeconds")
        metadata = {name: item for name, item in metadata.items() if name not in gone}
    metadata = {**metadata, "name": writer.name}
    if writer.namespace:
        metadata["namespace"] = writer.namespace
    filled = _filled(writer, {**new, "metadata": metadata})
    if live is not None and built_in_defaults.same(live, filled):
        # The client sent back what it read: defaults of the API in it are not a change.
        filled = {**live, "metadata": metadata}
    before, after = _shown(live), built_in_defaults.with_defaults(filled)
    _check_kind(writer, before, after)
    _check_whole(writer, live, filled)
    try:
        owned = server_side_apply.updated(
            before, after, writer.resource.schema, writer.write(managed_fields.UPDATE)
        )
    except managed_fields.ManagedFieldsError as error:
        raise status_objects.bad_request(str(error)) from None
    return managed_fields.replaced(filled, entries(owned))


def _filled(writer: Writer, value: Json) -> Json:
    """The object with the defaults that are stored with it: those of Karmada's kinds and of custom resources."""
    filled = defaults.with_defaults(value, writer.now_ms, writer.tolerated)
    structure = writer.resource.structure
    return filled if structure is None else structural.defaulted(filled, structure)


def check_structure(writer: Writer, live: Json | None, value: Json, part: str = "") -> None:
    """Raise StatusError if a custom resource does not fit its definition's schema.

    Faults that the current object has already are tolerated.
    """
    structure = writer.resource.structure
    if structure is None:
        return
    wrong = list(structural.faults(value, structure, part=part))
    if wrong and live is not None:
        known = set(structural.faults(live, structure, part=part))
        wrong = [cause for cause in wrong if cause not in known]
    if wrong:
        raise status_objects.invalid(writer.resource, writer.name, wrong)


def entries(value: Json) -> list[Json]:
    """The entries of ``managedFields``."""
    listed = as_list(managed_fields.in_object(value)) or []
    return [entry for each in listed if (entry := as_object(each)) is not None]


def check_types(writer: Writer, desired: Json) -> None:
    """Raise StatusError if an applied value has another type than its field."""
    resource = writer.resource
    if resource.is_kubernetes_own and (wrong := type_errors.mistyped(desired, resource.schema)) is not None:
        which = f"{writer.namespace}/{writer.name}; {resource.api_version}, Kind={resource.kind}"
        raise status_objects.bad_request(
            f"failed to convert new object ({which}) to proper version: {wrong.message}"
        )


def check_head(writer: Writer, live: Json | None, new: Json) -> None:
    """Raise StatusError if the object is not the path's, or its uid or resourceVersion is not the current one."""
    kind_check.check(writer.resource, new)
    check_named(writer, new)
    metadata = as_object(new.get("metadata")) or {}
    if live is not None:
        check_version(writer, live, metadata)


def check_named(writer: Writer, new: Json) -> None:
    """Raise StatusError if name or namespace differ from those of the path."""
    metadata = as_object(new.get("metadata")) or {}
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


def check_version(writer: Writer, live: Json, metadata: Json) -> None:
    """Raise StatusError if uid or resourceVersion in ``metadata`` are not those of ``live``."""
    live_metadata = as_object(live.get("metadata")) or {}
    uid = metadata.get("uid")
    if uid and uid != live_metadata.get("uid"):
        raise status_objects.precondition_failed(
            writer.resource, writer.name, "UID", str(uid), str(live_metadata.get("uid"))
        )
    seen = metadata.get("resourceVersion")
    # A resourceVersion also grows with the status, so one newer than the last write is no conflict.
    if seen and (not _is_number(seen) or int(str(seen)) < int(str(live_metadata.get("resourceVersion")))):
        raise status_objects.conflict(writer.resource, writer.name)
    if seen and int(str(seen)) > writer.newest():
        raise AheadError(writer.resource, writer.name)


def _shown(live: Json | None) -> Json | None:
    """The current object with the API's defaults."""
    return None if live is None else built_in_defaults.with_defaults(live)


def _check_kind(writer: Writer, before: Json | None, after: Json) -> None:
    """Raise StatusError if Kubernetes' own validation refuses the object; both arguments include API defaults."""
    if wrong := built_in.faults(writer.resource, after, before):
        raise status_objects.invalid(writer.resource, writer.name, wrong)


def _check_whole(writer: Writer, live: Json | None, value: Json) -> None:
    """Raise StatusError if the object is invalid by its schema or by the rules of its kind."""
    resource = writer.resource
    check_structure(writer, live, value)
    finalizers = as_list((as_object(value.get("metadata")) or {}).get("finalizers")) or []
    if not all(isinstance(finalizer, str) for finalizer in finalizers):
        raise status_objects.bad_request("metadata.finalizers: must be texts")
    if known_kinds.refused(resource.api_version, resource.kind):
        return  # made by the engine; ``eviction_permission`` decides which of its fields a client may write
    try:
        listed = rules.form_causes(value)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as error:
        raise status_objects.bad_request(f"the object can't be written as JSON: {error}") from None
    if known_kinds.route_of(resource.api_version, resource.kind) == "configuration":
        worded = value_validation.faults(value, resource.schema)
        fields = {cause.field for cause in worded}
        listed = [*worded, *(cause for cause in listed if cause.field not in fields)]
    if listed:
        raise status_objects.invalid(resource, writer.name, listed)
    if message := rules.denial(rules.rule_causes(value, live)):
        raise status_objects.denied(rules.webhook(resource.kind), message)


def _is_number(text: object) -> bool:
    return isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) <= _VERSION_DIGITS_MAX
