"""Edits of the scale subresource: replace, patch or apply a Scale."""

import msgspec
from msgspec import structs

from engine.kubeapi.conversion import scales
from engine.kubeapi.errors import causes, status_objects
from engine.kubeapi.patching import empty_values, field_paths, managed_fields, patches, server_side_apply
from engine.kubeapi.schema import type_errors
from engine.writing.edits import preconditions
from engine.writing.edits.objects import SCALE, RequestedEdit, Writer, check_named, completed
from engine.writing.edits.patching import JSON_PATCH, json_patched
from engine.writing.mutations import Edited
from events.json_values import object_at
from events.kube_objects import KubeObject


class ScaleReplacement(RequestedEdit, frozen=True):
    """Set the replicas of the current object to those of a Scale."""

    scale: KubeObject

    def apply(self, live: KubeObject | None) -> Edited:
        """Return the scaled object."""
        return _scaled(self.writer, self.existing(live), self.scale)


class ScalePatch(RequestedEdit, frozen=True):
    """Set the replicas of the current object to those of its patched Scale; ``kind`` is the patch's media type."""

    kind: str
    patch: object

    def apply(self, live: KubeObject | None) -> Edited:
        """Return the scaled object."""
        current = self.existing(live)
        scale = scales.scale_of(self.writer.resource, current)
        if self.kind == JSON_PATCH:
            changed = json_patched(scale, self.patch)
        else:
            changed = KubeObject(object_at(patches.merge_patched(scale.document, self.patch)))
        if wrong := type_errors.mistyped(changed.document, scales.SCALE.schema):
            shown = msgspec.json.encode(changed.document).decode()
            raise status_objects.unfit_result(causes.invalid("patch", shown, wrong.message))
        return _scaled(self.writer, current, changed)


class ScaleApplication(RequestedEdit, frozen=True):
    """Set the replicas of the current object to those of its Scale after a server-side apply of ``desired``."""

    desired: KubeObject
    force: bool

    def apply(self, live: KubeObject | None) -> Edited:
        """Return the scaled object; its replicas get the field owners that they have in the merged Scale."""
        current, writer = self.existing(live), self.writer
        resource = writer.resource
        write = structs.replace(writer, resource=scales.SCALE, part=SCALE).write(managed_fields.APPLY)
        for fault in field_paths.check(self.desired.document, scales.SCALE.schema):
            raise status_objects.bad_request(f"failed to create typed patch object: {fault}")
        try:
            owned = scales.owned(resource, current)
            scale = managed_fields.replaced(scales.scale_of(resource, current), owned)
            desired = KubeObject(empty_values.without_nulls(self.desired.document, scales.SCALE.schema))
            merged = server_side_apply.applied(scale, desired, scales.SCALE.schema, write, force=self.force)
            edited = completed(
                structs.replace(writer, part=SCALE), current, Edited(_with_replicas(writer, current, merged))
            )
            kept = managed_fields.replaced(edited.value, managed_fields.entries(current))
            return Edited(scales.with_owners(resource, kept, merged), edited.warnings)
        except server_side_apply.ApplyConflictError as error:
            raise status_objects.apply_conflict(error) from None
        except (server_side_apply.ApplyError, managed_fields.ManagedFieldsError) as error:
            raise status_objects.bad_request(str(error)) from None


def _scaled(writer: Writer, live: KubeObject, scale: KubeObject) -> Edited:
    check_named(writer, scale)
    preconditions.check_version(writer.resource, live, scale, writer.newest)
    of_scale = structs.replace(writer, part=SCALE)
    return completed(of_scale, live, Edited(_with_replicas(writer, live, scale)))


def _with_replicas(writer: Writer, live: KubeObject, scale: KubeObject) -> KubeObject:
    try:
        return scales.scaled(writer.resource, live, scale)
    except scales.ScaleError as error:
        resource = writer.resource if writer.resource.custom else scales.SCALE
        cause = causes.invalid(error.field, error.value, error.reason)
        raise status_objects.invalid(resource, writer.name, [cause]) from None
