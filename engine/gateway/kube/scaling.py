"""The scale subresource: replace, patch or apply a Scale; returns computations as in ``changing``."""

from collections.abc import Callable

import msgspec
from msgspec import structs

from engine.gateway.door_changes import Compute
from engine.gateway.kube import changing
from engine.gateway.kube.changing import Writer
from engine.kube import causes, decoding, leaves, managed_fields, managers, patches, scales, statuses
from engine.kube.schemas import Json, as_object


def replaced(writer: Writer, scale: Json) -> Compute:
    """The object with the replicas of this Scale."""
    return _scaled(writer, lambda _live: scale)


def patched(writer: Writer, kind: str, patch: object) -> Compute:
    """The object with the replicas of its patched Scale; raises StatusError for another patch type."""
    changing.check_patch_type(writer, kind)

    def change(scale: Json) -> Json:
        if kind == changing.JSON_PATCH:
            found = changing.json_patched(scale, patch)
        else:
            found = as_object(patches.merge_patched(scale, patch)) or {}
        if wrong := decoding.mistyped(found, scales.SCALE.schema):
            shown = msgspec.json.encode(found).decode()
            raise statuses.unfit_result(causes.invalid("patch", shown, wrong.words))
        return found

    return _scaled(writer, change)


def applied(writer: Writer, wanted: Json, *, force: bool) -> Compute:
    """The object with the replicas of a Scale that is applied server-side to its own."""
    of_scale = structs.replace(writer, resource=scales.SCALE, part=changing.SCALE)
    write = of_scale.write(managed_fields.APPLY)

    def compute(live: Json | None) -> Json:
        if live is None:
            raise statuses.not_found(writer.resource, writer.name)
        for fault in leaves.check(wanted, scales.SCALE.schema):
            raise statuses.bad_request(f"failed to create typed patch object: {fault}")
        try:
            entries = scales.owned(writer.resource, live)
            scale = managed_fields.replaced(scales.scale_of(writer.resource, live), entries)
            found = managers.applied(scale, wanted, scales.SCALE.schema, write, force=force)
            with_replicas = _with_replicas(writer, live, found)
            checked = changing.updated(structs.replace(writer, part=changing.SCALE), live, with_replicas)
            mine = managed_fields.replaced(checked, changing.entries(live))
            return scales.with_owners(writer.resource, mine, found)
        except managers.ApplyConflictError as error:
            raise statuses.apply_conflict(error) from None
        except (managers.ApplyError, managed_fields.ManagedFieldsError) as error:
            raise statuses.bad_request(str(error)) from None

    return compute


def _scaled(writer: Writer, change: Callable[[Json], Json]) -> Compute:
    of_scale = structs.replace(writer, part=changing.SCALE)

    def compute(live: Json | None) -> Json:
        if live is None:
            raise statuses.not_found(writer.resource, writer.name)
        scale = change(scales.scale_of(writer.resource, live))
        changing.check_named(writer, scale)
        changing.check_version(writer, live, as_object(scale.get("metadata")) or {})
        return changing.updated(of_scale, live, _with_replicas(writer, live, scale))

    return compute


def _with_replicas(writer: Writer, live: Json, scale: Json) -> Json:
    try:
        return scales.scaled(writer.resource, live, scale)
    except scales.ScaleError as error:
        resource = writer.resource if writer.resource.custom else scales.SCALE
        cause = causes.invalid(error.field, error.value, error.reason)
        raise statuses.invalid(resource, writer.name, [cause]) from None
