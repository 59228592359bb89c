"""Patches of Kubernetes' types (JSON, merge, strategic merge) applied to an object of a request."""

from typing import Final

import msgspec

from engine.kubeapi.admission import built_in_defaults
from engine.kubeapi.errors import causes, status_objects
from engine.kubeapi.patching import patches, strategic_merge
from engine.kubeapi.requests import body_checks
from engine.kubeapi.schema import type_errors
from engine.kubeapi.values import go_texts
from engine.writing.edits.objects import (
    STATUS,
    RequestedEdit,
    Writer,
    check_metadata,
    completed,
    with_known_fields,
)
from engine.writing.mutations import Edited
from events import limits, records
from events.json_values import Json, as_list, as_object, object_at
from events.kube_objects import KubeObject

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
_DEPTH_MAX: Final = limits.RECORD_DEPTH_MAX


class Patch(RequestedEdit, frozen=True):
    """Patch the current object; ``kind`` is the media type of the patch.

    ``claims``: labels and annotations that name the claiming policy; reads show them, so a patch may refer to them.
    """

    kind: str
    patch: object
    claims: Json = {}

    def apply(self, live: KubeObject | None) -> Edited:
        """Return the patched object."""
        current = self.existing(live)
        # Patches apply to the object as rendered: they may test, replace or remove defaults of the API.
        rendered = built_in_defaults.with_defaults(current)
        claimed = {
            name: {**object_at(rendered.metadata, name), **object_at(texts)}
            for name, texts in self.claims.items()
        }
        rendered = rendered.with_metadata(claimed) if claimed else rendered
        patch = self.patch
        if self.kind == JSON_PATCH and STATUS not in current.document:
            patch = _without_status(self.writer, patch)
        return completed(self.writer, current, patched_to(self.writer, self.kind, rendered, patch))


def _without_status(writer: Writer, patch: object) -> object:
    """Return a JSON patch without changes of a status that this request does not write.

    Reads show a derived status, which the object to patch lacks: removing or replacing it would make the patch fail.
    """
    operations = as_list(patch)
    if operations is None or writer.resource.subresource(STATUS) is None:
        return patch
    return [operation for operation in operations if not _changes_status(object_at(operation))]


def _changes_status(operation: Json) -> bool:
    path = str(operation.get("path"))
    return operation.get("op") in ("add", "remove", "replace") and f"{path}/".startswith("/status/")


def check_patch_type(writer: Writer, kind: str) -> None:
    """Raise StatusError (415) for a patch type that the kind does not support."""
    is_known = kind in (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH)
    if not is_known or (kind == STRATEGIC_PATCH and not strategic_merge.takes(writer.resource.schema)):
        raise status_objects.unsupported_media_type(patch=True, known=is_known)


def patched_to(writer: Writer, kind: str, live: KubeObject, patch: object) -> Edited:
    """The object after a patch, without unknown fields; raises StatusError if the patched object is invalid."""
    resource, made = writer.resource, _patch(writer, kind, live, patch)
    if resource.is_kubernetes_own:
        made = body_checks.with_kind(resource, made)
    try:
        body_checks.check_kind(resource, made)
        check_metadata(resource, made)
        if (
            resource.is_kubernetes_own
            and (wrong := type_errors.mistyped(made.document, resource.schema)) is not None
        ):
            message = wrong.expected if kind == STRATEGIC_PATCH else wrong.message
            raise status_objects.undecodable(resource, message)
        return with_known_fields(writer, made)
    except status_objects.UndecodableError as error:
        shown = go_texts.of(patch) if kind == STRATEGIC_PATCH else msgspec.json.encode(made.document).decode()
        raise status_objects.unfit_result(causes.invalid("patch", shown, error.detail)) from None


def _patch(writer: Writer, kind: str, live: KubeObject, patch: object) -> KubeObject:
    if kind == JSON_PATCH:
        return json_patched(live, patch)
    if patch is None:
        raise status_objects.bad_request("Invalid JSON Patch")
    changes = as_object(patch)
    if changes is None:
        json_type = type_errors.json_type_of(patch)
        message = f"json: cannot unmarshal {json_type} into Go value of type map[string]interface {{}}"
        raise status_objects.undecodable_patch(message)
    if kind == MERGE_PATCH:
        return KubeObject(object_at(patches.merge_patched(live.document, changes)))
    try:
        return KubeObject(strategic_merge.patched(live.document, changes, writer.resource.schema))
    except strategic_merge.StrategicMergeError as error:
        raise status_objects.bad_request(str(error)) from None


def is_expanding(patch: object) -> bool:
    """Whether a JSON patch copies values, so that a short one can make a large object."""
    return any(object_at(operation).get("op") == "copy" for operation in as_list(patch) or ())


def json_patched(value: KubeObject, patch: object) -> KubeObject:
    """The object after a JSON patch; raises StatusError."""
    operations = as_list(patch)
    if operations is None:
        json_type = type_errors.json_type_of(patch)
        message = f"json: cannot unmarshal {json_type} into Go value of type []handlers.jsonPatchOp"
        raise status_objects.undecodable_patch(message)
    if len(operations) > patches.OPERATIONS_MAX:
        raise status_objects.too_many_operations(len(operations), patches.OPERATIONS_MAX)
    try:
        patched = as_object(patches.json_patched(value.document, patch))
        # Each operation can add nesting to the result of the previous one, so the depth can exceed that of any body.
        is_too_deep = records.is_deeper(msgspec.json.encode(patched), _DEPTH_MAX)
    except patches.PatchError:
        raise status_objects.unfit_patch() from None
    except RecursionError:
        patched, is_too_deep = None, True
    if is_too_deep:
        raise status_objects.bad_request(f"the patched object is nested deeper than {_DEPTH_MAX} levels")
    if patched is None:
        raise status_objects.unfit_patch()
    return KubeObject(patched)
