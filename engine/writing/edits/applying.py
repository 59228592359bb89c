"""Server-side apply of the object in a request."""

from engine.kubeapi.admission import built_in_defaults
from engine.kubeapi.errors import status_objects
from engine.kubeapi.patching import field_paths, managed_fields, server_side_apply
from engine.writing.edits import preconditions
from engine.writing.edits.objects import (
    RequestedEdit,
    Writer,
    as_new,
    check_head,
    check_types,
    check_whole,
    filled_in,
    with_api_defaults,
    with_known_fields,
    without_claims,
    without_empty_values,
    without_nulls,
)
from engine.writing.mutations import Edited
from events.json_values import Json
from events.kube_objects import KubeObject


class Application(RequestedEdit, frozen=True):
    """Server-side apply; creates the object if it does not exist."""

    desired: KubeObject
    force: bool

    def apply(self, live: KubeObject | None) -> Edited:
        """Return the merged object, which is ``live`` itself if nothing changes."""
        writer = self.writer
        known = applicable(writer, self.desired)
        desired = without_claims(with_path_identity(writer, known.value))
        check_head(writer, live, desired)
        check_types(writer, desired)
        if live is None:
            _check_no_uid(writer, desired)
            desired = as_new(desired)
        merged = applied_to(writer, live, desired, writer.write(managed_fields.APPLY), force=self.force)
        if merged is live:
            return Edited(merged, known.warnings)
        if live is not None:
            preconditions.check_not_ended(writer.resource, live, merged)
        filled = filled_in(writer, live, merged)
        check_whole(writer, live, filled, with_api_defaults(live), built_in_defaults.with_defaults(filled))
        return Edited(filled, known.warnings)


def _check_no_uid(writer: Writer, desired: KubeObject) -> None:
    """Raise StatusError (409) if an object to create has a uid: it belongs to a deleted object or to another server."""
    if uid := desired.metadata.get("uid"):
        reason = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise status_objects.conflict(writer.resource, writer.name, reason)


def applicable(writer: Writer, desired: KubeObject) -> Edited:
    """The object to apply; raises StatusError if it does not fit its kind or schema."""
    resource = writer.resource
    named = (desired.at("apiVersion"), desired.at("kind"))
    if named != (resource.api_version, resource.kind):
        group_version, kind = (str(item or "") for item in named)
        raise status_objects.bad_request(f"invalid object type: {group_version or '/'}, Kind={kind}")
    if not (resource.is_kubernetes_own or resource.custom):
        return with_known_fields(writer, desired)
    if resource.custom:
        desired = without_nulls(writer, desired)
    for fault in field_paths.check(desired.document, resource.schema):
        where = f"{desired.namespace}/{desired.name}"
        named_type = f"{resource.api_version}, Kind={resource.kind}"
        raise status_objects.bad_request(
            f"failed to create typed patch object ({where}; {named_type}): {fault}"
        )
    return Edited(desired)


def with_path_identity(writer: Writer, value: KubeObject) -> KubeObject:
    """Return the object; a missing name or namespace is set to that of the path.

    The namespace of a cluster-scoped object is removed, as in Kubernetes.
    """
    if not writer.namespace and "namespace" in value.metadata:
        value = value.without_metadata("namespace")
    identity = {"name": writer.name, "namespace": writer.namespace}
    missing = {name: text for name, text in identity.items() if text and not value.metadata.get(name)}
    return value.with_metadata(missing) if missing else value


def applied_to(
    writer: Writer,
    live: KubeObject | None,
    desired: KubeObject,
    write: server_side_apply.Write,
    *,
    force: bool,
) -> KubeObject:
    """Merge an applied object and its field owners into the current one; raises StatusError on conflicts.

    Returns ``live`` itself if nothing changed.
    """
    schema = writer.resource.schema

    def stored(merged: Json) -> Json:
        return without_empty_values(writer, KubeObject(merged)).document

    def as_shown(merged: Json) -> Json:
        return built_in_defaults.with_defaults(KubeObject(stored(merged))).document

    try:
        rendered = with_api_defaults(live)
        if live is None or rendered is live:
            return server_side_apply.applied(live, desired, schema, write, force=force, stored=stored)
        owned = server_side_apply.applied(rendered, desired, schema, write, force=force, stored=as_shown)
        if owned is rendered:
            return live
        # Two merges are needed. The merge above is into the object with defaults and yields owners and conflicts,
        # because clients may own defaulted fields. The merge below yields the value to store, which must not contain
        # the defaults.
        merged = server_side_apply.applied(live, desired, schema, write, force=True, stored=stored)
        return managed_fields.replaced(merged, managed_fields.entries(owned))
    except server_side_apply.ApplyConflictError as error:
        raise status_objects.apply_conflict(error) from None
    except (server_side_apply.ApplyError, managed_fields.ManagedFieldsError) as error:
        raise status_objects.bad_request(str(error)) from None
