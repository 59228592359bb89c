"""An edit within the rights of its user."""

from msgspec import Struct

from engine.http.kube import escalation
from engine.http.kube.edits.writer import RequestedEdit
from engine.kubeapi.conversion import versions
from engine.kubeapi.errors import status_objects
from engine.kubeapi.rights.rbac import Act, Rights, User
from engine.writing.mutations import Edited
from events.json_values import Json


class AuthorizedEdit(Struct, frozen=True, kw_only=True):
    """An edit of the stored form of an object, with the rights that it needs.

    The rights are checked in the edit, against the very version that is replaced. ``bootstrap`` is the built-in
    object of this name, if there is one; it counts as the current one as long as none is stored. ``rights`` are
    None for ``system:masters``. ``creates`` is whether the request itself was checked as a create.
    """

    edit: RequestedEdit
    user: User
    rights: Rights | None
    bootstrap: Json | None
    creates: bool

    def apply(self, live: Json | None) -> Edited:
        """Return the stored form of the edited object; raises StatusError (403) without the rights."""
        resource = self.edit.writer.resource
        before = live or self.bootstrap
        edited = self.edit.apply(before if before is None else versions.shown(resource, before))
        if self.rights is not None and before is None and not self.creates:
            self._check_creation(self.rights)
        escalation.check(resource, self.user, self.rights, edited.value, before)
        try:
            return Edited(versions.kept(resource, edited.value), edited.warnings)
        except versions.ConversionError as error:
            raise status_objects.bad_request(str(error)) from None

    def _check_creation(self, rights: Rights) -> None:
        """Raise StatusError if an apply or update creates the object and the user may not create it."""
        writer = self.edit.writer
        act = Act(
            verb="create",
            group=writer.resource.group,
            resource=writer.resource.plural,
            namespace=writer.namespace,
            name=writer.name,
        )
        if not rights.may(self.user, act):
            raise status_objects.forbidden_act(self.user.name, act)
