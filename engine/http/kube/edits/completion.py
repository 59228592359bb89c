"""Completion and validation of an edited object: unknown fields, defaults, rules of its kind, field owners."""

from typing import Final

import msgspec

from engine.http.kube.edits.writer import Writer, check_head
from engine.karmada import defaults, rules
from engine.kubeapi.admission import built_in_defaults, schema_validation, structural
from engine.kubeapi.admission.rules import built_in, core
from engine.kubeapi.errors import status_objects
from engine.kubeapi.patching import empty_values, managed_fields, server_side_apply
from engine.kubeapi.schema import plain_objects, type_errors
from engine.kubeapi.schema.schemas import Named
from engine.writing.mutations import Edited
from events.json_values import list_at
from events.kube_objects import KubeObject
from events.validation import known_kinds, manifests

_METADATA: Final = Named(name="meta.ObjectMeta")


def with_known_fields(writer: Writer, value: KubeObject) -> Edited:
    """The object without unknown fields; fieldValidation=Warn adds warnings, Strict raises StatusError."""
    schema = writer.resource.schema
    document = value.document
    if plain_objects.is_plain(document, schema):
        return Edited(value)
    if not schema_validation.unknown_fields(document, schema):
        return Edited(plain(writer, value))
    # Karmada's guides spell a policy field with a capital letter; accept it, with a warning.
    warnings: list[str] = []
    document = manifests.canonical_object(document, warnings, prune=False)
    unknown = [
        schema_validation.unknown_field_message(path)
        for path in schema_validation.unknown_fields(document, schema)
    ]
    if not unknown:
        return Edited(plain(writer, KubeObject(document)), tuple(warnings))
    if writer.validation == "Strict":
        raise status_objects.strict_decoding(writer.resource, unknown)
    if writer.validation == "Warn":
        warnings += unknown
    pruned = KubeObject(schema_validation.pruned(document, schema))
    return Edited(plain(writer, pruned), tuple(warnings))


def plain(writer: Writer, value: KubeObject) -> KubeObject:
    """The object without null fields and, if its kind is Kubernetes' own, without empty optional values."""
    if writer.resource.is_kubernetes_own:
        return KubeObject(empty_values.without(value.document, writer.resource.schema))
    return without_nulls(writer, value)


def without_nulls(writer: Writer, value: KubeObject) -> KubeObject:
    """The object without null fields; of a custom resource, whose schema may allow null, those of its metadata."""
    if not writer.resource.custom:
        return KubeObject(empty_values.without_nulls(value.document, writer.resource.schema))
    metadata = value.metadata
    found = empty_values.without_nulls(metadata, _METADATA)
    return value if found is metadata else value.with_fields({"metadata": found})


def completed(writer: Writer, live: KubeObject | None, edited: Edited) -> Edited:
    """Complete and validate the object of a create, update or patch; raises StatusError.

    Sets server-side metadata, stored defaults and field owners.
    """
    new = edited.value
    check_head(writer, live, new)
    metadata = new.metadata
    if live is not None:
        # Metadata that only the server sets is kept, even if the body leaves it out.
        live_metadata = live.metadata
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
    filled = filled_in(writer, live, new.with_fields({"metadata": metadata}))
    if live is not None and built_in_defaults.same(live, filled):
        # The client sent back the object that it had read: API defaults in it are not a change.
        filled = live.with_fields({"metadata": metadata})
    before = None if live is None else built_in_defaults.with_defaults(live)
    after = built_in_defaults.with_defaults(filled)
    check_whole(writer, live, filled, before, after)
    try:
        owners = server_side_apply.owners_after_update(
            before, after, writer.resource.schema, writer.write(managed_fields.UPDATE)
        )
    except managed_fields.ManagedFieldsError as error:
        raise status_objects.bad_request(str(error)) from None
    return Edited(managed_fields.replaced(filled, owners), edited.warnings)


def filled_in(writer: Writer, live: KubeObject | None, value: KubeObject) -> KubeObject:
    """The object with the defaults that are stored: those of Karmada's kinds and of custom resources.

    Fields of a Service that only its former type has are removed.
    """
    if live is not None:
        value = core.without_former_type(built_in_defaults.with_defaults(live), value)
    if writer.resource.is_kubernetes_own:
        return value  # its defaults are not stored
    filled = defaults.with_defaults(value, writer.now_ms, writer.tolerated)
    structure = writer.resource.structure
    return filled if structure is None else KubeObject(structural.defaulted(filled.document, structure))


def shown(live: KubeObject | None) -> KubeObject | None:
    """The current object with the API's defaults."""
    return None if live is None else built_in_defaults.with_defaults(live)


def check_structure(writer: Writer, live: KubeObject | None, value: KubeObject, part: str = "") -> None:
    """Raise StatusError if a custom resource does not fit its definition's schema.

    Faults that the current object has already are tolerated.
    """
    structure = writer.resource.structure
    if structure is None:
        return
    wrong = list(structural.faults(value.document, structure, part=part))
    if wrong and live is not None:
        known = set(structural.faults(live.document, structure, part=part))
        wrong = [cause for cause in wrong if cause not in known]
    if wrong:
        raise status_objects.invalid(writer.resource, writer.name, wrong)


def check_whole(
    writer: Writer, live: KubeObject | None, value: KubeObject, before: KubeObject | None, after: KubeObject
) -> None:
    """Raise StatusError if the object is invalid by its schema or by the rules of its kind.

    ``before`` and ``after`` are ``live`` and ``value`` with the API's defaults.
    """
    resource = writer.resource
    if wrong := built_in.faults(resource, after, before):
        raise status_objects.invalid(resource, writer.name, wrong)
    if resource.structure is not None:
        check_structure(writer, live, value)
    finalizers = list_at(value.metadata, "finalizers")
    if not all(isinstance(finalizer, str) for finalizer in finalizers):
        raise status_objects.bad_request("metadata.finalizers: must be texts")
    if known_kinds.refused(resource.api_version, resource.kind):
        return  # made by the engine; ``binding_changes`` decides which of its fields a client may write
    try:
        listed = rules.form_causes(value)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as error:
        raise status_objects.bad_request(f"the object can't be written as JSON: {error}") from None
    if known_kinds.route_of(resource.api_version, resource.kind) == "configuration":
        worded = schema_validation.value_faults(value.document, resource.schema)
        fields = {cause.field for cause in worded}
        listed = [*worded, *(cause for cause in listed if cause.field not in fields)]
    if listed:
        raise status_objects.invalid(resource, writer.name, listed)
    if not resource.is_kubernetes_own and (message := rules.denial(rules.rule_causes(value, live))):
        raise status_objects.denied(rules.webhook(resource.kind), message)


def check_types(writer: Writer, desired: KubeObject) -> None:
    """Raise StatusError if an applied value has another type than its field."""
    resource = writer.resource
    if (
        resource.is_kubernetes_own
        and (wrong := type_errors.mistyped(desired.document, resource.schema)) is not None
    ):
        which = f"{writer.namespace}/{writer.name}; {resource.api_version}, Kind={resource.kind}"
        raise status_objects.bad_request(
            f"failed to convert new object ({which}) to proper version: {wrong.message}"
        )
