"""Edits of whole objects: create and replace, and the base class of all requested edits.

An edited object is checked against the request's path and the current object. Unknown fields are removed or refused,
defaults set, the rules of its kind checked, and field owners recorded.
"""

from typing import Final

import msgspec
from msgspec import Struct

from engine.domain import marks
from engine.karmada import defaults, rules
from engine.karmada.default_tolerations import TolerationSeconds
from engine.karmada.rules import cluster_causes
from engine.kubeapi.admission import built_in_defaults, schema_validation, structural
from engine.kubeapi.admission.rules import built_in, core
from engine.kubeapi.errors import causes, messages, status_objects
from engine.kubeapi.errors.status_objects import Cause
from engine.kubeapi.patching import empty_values, managed_fields, server_side_apply
from engine.kubeapi.patching.managed_fields import Manager
from engine.kubeapi.requests import body_checks
from engine.kubeapi.schema import type_errors
from engine.kubeapi.schema.resources import Resource
from engine.kubeapi.schema.schemas import Named
from engine.objects import dependencies
from engine.objects import policies as propagation_policies
from engine.writing.edits import preconditions
from engine.writing.mutations import Edited
from events import kube_objects, limits, times
from events.json_values import list_at, object_at
from events.kube_objects import KubeObject
from events.validation import known_kinds, manifests, spec_rules

STATUS: Final = "status"
APPROVAL: Final = "approval"
STATUSES: Final = (STATUS, APPROVAL)
"""Subresources that are written into the status."""

SCALE: Final = "scale"

_METADATA: Final = Named(name="meta.ObjectMeta")


class Writer(Struct, frozen=True, kw_only=True):
    """Properties of a write: kind, name, field manager, time, strictness of field validation.

    ``namespace``, ``name`` and ``part`` (subresource) are those of the path. ``newest`` is the highest resourceVersion
    that this server knows. ``tolerated``: for how many seconds policies tolerate failing clusters by default.
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
        """Return the manager and time of this write, and the paths that it must not change."""
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


class Creation(RequestedEdit, frozen=True):
    """Create the object in the body."""

    body: KubeObject

    def apply(self, live: KubeObject | None) -> Edited:
        """Return the created object; raises StatusError (409) if the object exists already."""
        if live is not None:
            resource, name = self.writer.resource, self.writer.name
            raise status_objects.already_exists(resource, name, is_ending=live.is_ending)
        return completed(self.writer, None, with_known_fields(self.writer, self.body))


class Replacement(RequestedEdit, frozen=True):
    """Replace the current object by the one in the body."""

    body: KubeObject

    def apply(self, live: KubeObject | None) -> Edited:
        """Return the new object; raises StatusError (404) if none exists and a replacement cannot create this kind."""
        writer = self.writer
        if live is None and preconditions.may_create(writer.resource, writer.name, self.body):
            return completed(writer, None, with_known_fields(writer, self.body))
        current = self.existing(live)
        preconditions.check_versioned(self.writer.resource, self.writer.name, self.body)
        return completed(self.writer, current, with_known_fields(self.writer, self.body))


def check_head(writer: Writer, live: KubeObject | None, new: KubeObject) -> None:
    """Raise StatusError if kind, name or namespace differ from those of the path, or if the metadata are malformed.

    If ``live`` exists, uid and resourceVersion must not conflict with it (``preconditions.check_version``).
    """
    body_checks.check_kind(writer.resource, new)
    check_metadata(writer.resource, new)
    check_named(writer, new)
    if live is not None:
        preconditions.check_version(writer.resource, live, new, writer.newest)


def check_metadata(resource: Resource, new: KubeObject) -> None:
    """Raise StatusError if a value in the metadata has another type than its field.

    Typed clients fail to decode such an object, and any list with it. Objects of Kubernetes' own kinds were checked
    as a whole.
    """
    if resource.is_kubernetes_own:
        return
    if (wrong := type_errors.mistyped(new.metadata, _METADATA)) is not None:
        raise status_objects.undecodable(resource, wrong.message)


def check_named(writer: Writer, new: KubeObject) -> None:
    """Raise StatusError if name or namespace differ from those of the path.

    The namespace of a cluster-scoped object is ignored, as in Kubernetes; ``completed`` and applies remove it.
    """
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
    if writer.namespace and namespace != writer.namespace:
        message = "the namespace of the provided object does not match the namespace sent on the request"
        raise status_objects.bad_request(message)


def with_known_fields(writer: Writer, value: KubeObject) -> Edited:
    """The object without unknown fields; fieldValidation=Warn adds warnings, Strict raises StatusError."""
    schema = writer.resource.schema
    document = value.document
    if body_checks.is_plain(document, schema):
        return Edited(value)
    if body_checks.is_typed(document, schema) or not schema_validation.unknown_fields(document, schema):
        return Edited(without_empty_values(writer, value))
    # Karmada's guides spell a policy field with a capital letter; accept it, with a warning.
    warnings: list[str] = []
    document = manifests.canonical_object(document, warnings)
    unknown = [f'unknown field "{path}"' for path in schema_validation.unknown_fields(document, schema)]
    if not unknown:
        return Edited(without_empty_values(writer, KubeObject(document)), tuple(warnings))
    if writer.validation == "Strict":
        raise status_objects.strict_decoding(writer.resource, unknown)
    if writer.validation == "Warn":
        warnings += unknown
    pruned = KubeObject(schema_validation.pruned(document, schema))
    return Edited(without_empty_values(writer, pruned), tuple(warnings))


def without_empty_values(writer: Writer, value: KubeObject) -> KubeObject:
    """The object without null fields and, if its kind is Kubernetes' own, without empty optional values."""
    if writer.resource.is_kubernetes_own:
        return KubeObject(empty_values.without(value.document, writer.resource.schema))
    return without_nulls(writer, value)


def without_nulls(writer: Writer, value: KubeObject) -> KubeObject:
    """Return the object without null fields.

    In a custom resource only the metadata are changed, since its schema may allow null elsewhere.
    """
    if not writer.resource.custom:
        return KubeObject(empty_values.without_nulls(value.document, writer.resource.schema))
    metadata = value.metadata
    cleaned = empty_values.without_nulls(metadata, _METADATA)
    return value if cleaned is metadata else value.with_fields({"metadata": cleaned})


def completed(writer: Writer, live: KubeObject | None, edited: Edited) -> Edited:
    """Complete and validate the object of a create, update or patch; raises StatusError.

    Sets server-side metadata, stored defaults and field owners.
    """
    new = edited.value if live is None else without_claims(edited.value, live)
    check_head(writer, live, new)
    metadata = new.metadata
    if live is not None:
        preconditions.check_not_ended(writer.resource, live, new)
        # Ignore values in the body for metadata that only the server sets.
        live_metadata = live.metadata
        kept = ("uid", "resourceVersion", "generation", "creationTimestamp")
        kept += ("deletionTimestamp", "deletionGracePeriodSeconds")
        metadata = {
            **{name: item for name, item in metadata.items() if name not in kept},
            **{name: live_metadata[name] for name in kept if name in live_metadata},
        }
    else:
        metadata = as_new(new).metadata
    metadata = {**metadata, "name": writer.name, "namespace": writer.namespace}
    if not writer.namespace:
        del metadata["namespace"]
    filled = filled_in(writer, live, new.with_fields({"metadata": metadata}))
    if live is not None and built_in_defaults.same(live, filled):
        # Clients send back objects as they read them, with API defaults; these defaults are not a change.
        status = {name: item for name, item in filled.document.items() if name == STATUS}
        filled = live.without_fields(STATUS).with_fields({"metadata": metadata, **status})
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


def without_claims(value: KubeObject, live: KubeObject | None = None) -> KubeObject:
    """Return the object without labels and annotations that name its claiming policy; return a policy unchanged.

    The engine adds them on each read and does not store them, so sending them back is not a change. Those that ``live``
    itself has, as a binding does, stay.
    """
    if marks.is_policy(value):
        return value
    for name in ("labels", "annotations"):
        texts, known = (
            object_at(value.metadata, name),
            {} if live is None else live.object_at("metadata", name),
        )
        if not marks.CLAIMS.isdisjoint(texts):
            kept = {mark: text for mark, text in texts.items() if mark not in marks.CLAIMS or mark in known}
            value = value.with_metadata({name: kept}) if kept else value.without_metadata(name)
    return value


def as_new(value: KubeObject) -> KubeObject:
    """Return an object to create without the metadata that only the server sets; exported objects contain them."""
    return value.without_metadata(
        "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"
    )


def filled_in(writer: Writer, live: KubeObject | None, value: KubeObject) -> KubeObject:
    """Return the object with the defaults that are stored: those of Karmada's kinds and of custom resources.

    If the type of a Service changes, fields that only the previous type has are removed. Its cluster IP stays.
    """
    if live is not None:
        value = core.without_former_type(built_in_defaults.with_defaults(live), value)
        value = core.with_kept_cluster_ip(live, value)
    if writer.resource.is_kubernetes_own:
        return value  # defaults of Kubernetes' own kinds are not stored
    filled = defaults.with_defaults(value, writer.now_ms, writer.tolerated)
    structure = writer.resource.structure
    if structure is None:
        return filled
    try:
        return KubeObject(structural.defaulted(filled.document, structure))
    except structural.DefaultsTooLargeError:
        raise status_objects.too_large(limits.OBJECT_BYTES_MAX) from None


def with_api_defaults(live: KubeObject | None) -> KubeObject | None:
    """The current object with the API's defaults; None if there is none."""
    return None if live is None else built_in_defaults.with_defaults(live)


def check_structure(writer: Writer, live: KubeObject | None, value: KubeObject, part: str = "") -> None:
    """Raise StatusError if a custom resource, or its field ``part``, does not fit its definition's schema.

    Faults that the current object already has are ignored.
    """
    structure = writer.resource.structure
    if structure is None:
        return
    # If the kind has the subresource status, the status is checked only when that is written.
    without = STATUS if writer.resource.subresource(STATUS) else ""
    wrong = messages.bounded(structural.faults(value.document, structure, part=part, without=without))
    if wrong and live is not None:
        known = set(messages.bounded(structural.faults(live.document, structure, part=part, without=without)))
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
        raise status_objects.bad_request("metadata.finalizers: must be strings")
    if known_kinds.refused(resource.api_version, resource.kind):
        return  # the engine writes these kinds; ``binding_changes`` limits what clients may write in bindings
    try:
        listed = form_causes(value, live)
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
    """Raise StatusError if a value in an applied object has another type than its field."""
    resource = writer.resource
    if (
        resource.is_kubernetes_own
        and (wrong := type_errors.mistyped(desired.document, resource.schema)) is not None
    ):
        which = f"{writer.namespace}/{writer.name}; {resource.api_version}, Kind={resource.kind}"
        raise status_objects.bad_request(
            f"failed to convert new object ({which}) to proper version: {wrong.message}"
        )


def form_causes(changed: KubeObject, live: KubeObject | None = None) -> list[Cause]:
    """Return the schema errors of an object (status 422), in field order; ``live`` is the stored object."""
    value = changed.document
    if large := list(manifests.size_faults(value)):
        return list(causes.of_faults(large, value))
    raw = msgspec.Raw(msgspec.json.encode(value))
    try:
        manifest = kube_objects.read_head(raw)
    except kube_objects.Refusal as refusal:
        return [causes.invalid(refusal.field, causes.at(value, refusal.field), refusal.reason)]
    needed = dependencies.dependencies(manifest.api_version, manifest.kind, manifest.metadata.namespace, raw)
    if len(needed) > limits.DEPENDENCIES_MAX:
        field = dependencies.field_of(manifest.api_version, manifest.kind)
        reason = f"refers to {len(needed)} objects, more than {limits.DEPENDENCIES_MAX}"
        return [causes.invalid(field, causes.at(value, field), reason)]
    wrong = list(manifests.object_faults(manifest, raw))
    is_cluster = (manifest.api_version, manifest.kind) == (known_kinds.CLUSTER_GROUP, "Cluster")
    if not wrong and not is_cluster:
        return []
    if wrong and manifest.kind in propagation_policies.KINDS:
        # Leave out the faults of propagation rules: ``rule_causes`` reports them as admission errors (403).
        broken = set(spec_rules.propagation_rules(value.get("spec")))
        wrong = [fault for fault in wrong if fault not in broken]
    return [*causes.of_faults(wrong, value), *(cluster_causes(changed, live) if is_cluster else ())]
