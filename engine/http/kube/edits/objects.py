"""Edits of whole objects: create, replace, patch, apply."""

from engine.http.kube.edits import applying, patching
from engine.http.kube.edits.completion import (
    check_types,
    check_whole,
    completed,
    filled_in,
    shown,
    with_known_fields,
)
from engine.http.kube.edits.writer import RequestedEdit, check_head
from engine.kubeapi.admission import built_in_defaults
from engine.kubeapi.errors import status_objects
from engine.kubeapi.patching import managed_fields
from engine.writing.mutations import Edited
from events.kube_objects import KubeObject


class Creation(RequestedEdit, frozen=True):
    """Create the object in the body."""

    body: KubeObject

    def apply(self, live: KubeObject | None) -> Edited:
        """Return the created object; raises StatusError (409) if there is one."""
        if live is not None:
            resource, name = self.writer.resource, self.writer.name
            raise status_objects.already_exists(resource, name, is_ending=live.is_ending)
        return completed(self.writer, None, with_known_fields(self.writer, self.body))


class Replacement(RequestedEdit, frozen=True):
    """Replace the current object by the one in the body."""

    body: KubeObject

    def apply(self, live: KubeObject | None) -> Edited:
        """Return the replaced object."""
        return completed(self.writer, self.existing(live), with_known_fields(self.writer, self.body))


class Patch(RequestedEdit, frozen=True):
    """Patch the current object; ``kind`` is the media type of the patch."""

    kind: str
    patch: object

    def apply(self, live: KubeObject | None) -> Edited:
        """Return the patched object."""
        current = self.existing(live)
        # Patches apply to the object as rendered: they may test, replace or remove defaults of the API.
        rendered = built_in_defaults.with_defaults(current)
        return completed(
            self.writer, current, patching.patched_to(self.writer, self.kind, rendered, self.patch)
        )


class Application(RequestedEdit, frozen=True):
    """Server-side apply; creates the object if it does not exist."""

    desired: KubeObject
    force: bool

    def apply(self, live: KubeObject | None) -> Edited:
        """Return the merged object, which is ``live`` itself if nothing changes."""
        writer = self.writer
        known = applying.applicable(writer, self.desired)
        desired = applying.without_claims(applying.with_path_identity(writer, known.value))
        check_head(writer, live, desired)
        check_types(writer, desired)
        merged = applying.applied_to(
            writer, live, desired, writer.write(managed_fields.APPLY), force=self.force
        )
        if merged is live:
            return Edited(merged, known.warnings)
        filled = filled_in(writer, live, merged)
        check_whole(writer, live, filled, shown(live), built_in_defaults.with_defaults(filled))
        return Edited(filled, known.warnings)
