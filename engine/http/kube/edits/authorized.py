"""An edit within the rights of its user, in the control plane or in a simulated member."""

from collections.abc import Callable

from msgspec import Struct

from engine.http.kube import escalation
from engine.http.kube.edits.writer import RequestedEdit, Writer
from engine.kubeapi.conversion import versions
from engine.kubeapi.errors import status_objects
from engine.kubeapi.rights.rbac import Act, Rights, User
from engine.writing.mutations import Edited
from events.json_values import Json


class Permission(Struct, frozen=True, kw_only=True):
    """The rights that an edit needs beside those that its request was checked for.

    ``rights`` are None for users that may do everything. ``creates`` is whether the request itself was checked as
    a create.
    """

    user: User
    rights: Rights | None
    creates: bool

    def check(self, writer: Writer, value: Json, before: Json | None) -> None:
        """Raise StatusError (403) if the user may not write ``value`` in the place of ``before``."""
        if self.rights is not None and before is None and not self.creates:
            self._check_creation(self.rights, writer)
        escalation.check(writer.resource, self.user, self.rights, value, before)

    def _check_creation(self, rights: Rights, writer: Writer) -> None:
        """Raise StatusError if an apply or update creates the object and the user may not create it."""
        act = Act(
            verb="create",
            group=writer.resource.group,
            resource=writer.resource.plural,
            namespace=writer.namespace,
            name=writer.name,
        )
        if not rights.may(self.user, act):
            raise status_objects.forbidden_act(self.user.name, act)


class AuthorizedEdit(Struct, frozen=True, kw_only=True):
    """An edit of the stored form of an object, with the permission that it needs.

    The rights are checked in the edit, against the very version that is replaced. ``bootstrap`` is the built-in
    object of this name, if there is one; it counts as the current one as long as none is stored. ``admit`` completes
    the edited object.
    """

    edit: RequestedEdit
    permission: Permission
    bootstrap: Json | None
    admit: Callable[[Json, Json | None], Json] | None = None

    def apply(self, live: Json | None) -> Edited:
        """Return the stored form of the edited object; raises StatusError (403) without the rights."""
        writer = self.edit.writer
        before = live or self.bootstrap
        edited = self.edit.apply(before if before is None else versions.shown(writer.resource, before))
        self.permission.check(writer, edited.value, before)
        if self.admit is not None:
            edited = Edited(self.admit(edited.value, before), edited.warnings)
        try:
            return Edited(versions.kept(writer.resource, edited.value), edited.warnings)
        except versions.ConversionError as error:
            raise status_objects.bad_request(str(error)) from None
