"""The scale subresource: replace, patch or apply a Scale; returns computations as in ``mutations``."""

from collections.abc import Callable

import msgspec
from msgspec import structs

from engine.http.kube import mutations
from engine.http.kube.mutations import Writer
from engine.kubeapi.conversion import scales
from engine.kubeapi.errors import causes, status_objects
from engine.kubeapi.patching import field_paths, managed_fields, patches, server_side_apply
from engine.kubeapi.schema import type_errors
from engine.writing.object_changes import Compute
from events.json_values import Json, as_object


def replaced(writer: Writer, scale: Json) -> Compute:
    """The object with the replicas of this Scale."""
    return _scaled(writer, lambda _live: scale)


def patched(writer: Writer, kind: str, patch: object) -> Compute:
    """The object with the replicas of its patched Scale; raises StatusError for another patch type."""
    mutations.check_patch_type(writer, kind)

    def change(scale: Json) -> Json:
        if kind == mutations.JSON_PATCH:
            changed = mutations.json_patched(scale, patch)
        else:
            changed = as_object(patches.merge_patched(scale, patch)) or {}
        if wrong := type_errors.mistyped(changed, scales.SCALE.schema):
            shown = msgspec.json.encode(changed).decode()
            raise status_objects.unfit_result(causes.invalid("patch", shown, wrong.message))
        return changed

    return _scaled(writer, change)


def applied(writer: Writer, desired: Json, *, force: bool) -> Compute:
    """The object with the replicas of a Scale that is applied server-side to its own."""
    of_scale = structs.replace(writer, resource=scales.SCALE, part=mutations.SCALE)
    write = of_scale.write(managed_fields.APPLY)

    def compute(live: Json | None) -> Json:
        if live is None:
            raise status_objects.not_found(writer.resource, writer.name)
        for fault in field_paths.check(desired, scales.SCALE.schema):
            raise status_objects.bad_request(f"failed to create typed patch object: {fault}")
        try:
            entries = scales.owned(writer.resource, live)
            scale = managed_fields.replaced(scales.scale_of(writer.resource, live), entries)
            merged = server_side_apply.applied(scale, desired, scales.SCALE.schema, write, force=force)
            with_replicas = _with_replicas(writer, live, merged)
            checked = mutations.updated(structs.replace(writer, part=mutations.SCALE), live, with_replicas)
            owned = managed_fields.replaced(checked, mutations.entries(live))
            return scales.with_owners(writer.resource, owned, merged)
        except server_side_apply.ApplyConflictError as error:
            raise status_objects.apply_conflict(error) from None
        except (server_side_apply.ApplyError, managed_fields.ManagedFieldsError) as error:
            raise status_objects.bad_request(str(error)) from None

    return compute


def _scaled(writer: Writer, change: Callable[[Json], Json]) -> Compute:
    of_scale = structs.replace(writer, part=mutations.SCALE)

    def compute(live: Json | None) -> Json:
        if live is None:
            raise status_objects.not_found(writer.resource, writer.name)
        scale = change(scales.scale_of(writer.resource, live))
        mutations.check_named(writer, scale)
        mutations.check_version(writer, live, as_object(scale.get("metadata")) or {})
        return mutations.updated(of_scale, live, _with_replicas(writer, live, scale))

    return compute


def _with_replicas(writer: Writer, live: Json, scale: Json) -> Json:
    try:
        return scales.scaled(writer.resource, live, scale)
    except scales.ScaleError as error:
        resource = writer.resource if writer.resource.custom else scales.SCALE
        cause = causes.invalid(error.field, error.value, error.reason)
        raise status_objects.invalid(resource, writer.name, [cause]) from None
