"""Edits that are limited to the rights of their user, in the control plane or in a simulated member.

Users can only grant rights that they have: writes of roles and role bindings are checked for privilege escalation.
"""

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Struct

from engine.kubeapi.conversion import versions
from engine.kubeapi.errors import status_objects
from engine.kubeapi.errors.status_objects import StatusDetails, StatusError
from engine.kubeapi.rights import parsing
from engine.kubeapi.rights.rbac import Act, Rights, Rule, User
from engine.kubeapi.schema.resources import Resource
from engine.writing.edits.objects import RequestedEdit, Writer
from engine.writing.mutations import Edited, Target
from events.kube_objects import KubeObject

_SHOWN_MAX: Final = 8
_GROUP: Final = parsing.GROUP

KEYS_NAMESPACE: Final = "karmada-system"
_RESERVED_PREFIX: Final = "reballast-"
KEYS: Final = f"{_RESERVED_PREFIX}keys"
"""Name of the ConfigMap with the fingerprint of the keys that all replicas share (``process.shared_keys``)."""

KEY_REQUEST_PREFIX: Final = f"{_RESERVED_PREFIX}keys-for-"
"""Prefix of the names of the ConfigMaps in which replicas request the shared keys."""


class Permission(Struct, frozen=True, kw_only=True):
    """Checks whether a user may make an edit: may create the object, and may grant the rights that a role contains.

    ``rights`` is None for users that may do everything. ``creates``: the request is a POST, whose right to create is
    already checked.
    """

    user: User
    rights: Rights | None
    creates: bool

    def check(self, writer: Writer, value: KubeObject, before: KubeObject | None) -> None:
        """Raise StatusError (403) if the user may not replace ``before`` (None: no object) by ``value``."""
        if self.rights is not None and before is None and not self.creates:
            self._check_creation(self.rights, writer)
        if writer.resource.group == _GROUP:
            _check_escalation(writer.resource, self.user, self.rights, value, before)

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
    """An edit together with the permission that it needs.

    The rights are checked within the edit, against the object that is replaced. ``bootstrap`` is the built-in object
    of this name, if there is one; it is edited if no object is stored. ``admit`` completes the edited object.
    """

    edit: RequestedEdit
    permission: Permission
    bootstrap: KubeObject | None
    admit: Callable[[KubeObject, KubeObject | None], KubeObject] | None = None

    def apply(self, live: KubeObject | None) -> Edited:
        """Return the edited object in its stored API version; raises StatusError (403) if the user lacks a right."""
        writer = self.edit.writer
        before = live or self.bootstrap
        edited = self.edit.apply(before if before is None else versions.to_served(writer.resource, before))
        self.permission.check(writer, edited.value, before)
        if self.admit is not None:
            edited = Edited(self.admit(edited.value, before), edited.warnings)
        try:
            return Edited(versions.to_stored(writer.resource, edited.value), edited.warnings)
        except versions.ConversionError as error:
            raise status_objects.bad_request(str(error)) from None


def _check_escalation(
    resource: Resource, user: User, known: Rights | None, value: KubeObject, live: KubeObject | None
) -> None:
    """Raise StatusError if the user may not write ``value``, a role or a role binding.

    ``known`` are the user's rights, None if the user may do everything.
    """
    if user.is_master or known is None:
        return
    if live is not None and _without_owners(live) == _without_owners(value):
        return  # finalizers and owners grant nothing: controllers such as the garbage collector may change them
    if resource.kind.endswith("Binding"):
        _check_binding(resource, user, known, value)
    else:
        _check_role(resource, user, known, value, live)


def _without_owners(value: KubeObject) -> KubeObject:
    """Return the object without finalizers, owners, and the managers of its fields."""
    return value.with_metadata({"finalizers": None, "ownerReferences": None, "managedFields": None})


def _check_role(
    resource: Resource, user: User, known: Rights, value: KubeObject, live: KubeObject | None
) -> None:
    rules = parsing.rules(value)
    if value.at("aggregationRule"):
        # Rules of other roles are added to an aggregated role later, so only users with all rights may create one.
        rules = (
            *rules,
            Rule(verbs=("*",), groups=("*",), resources=("*",)),
            Rule(verbs=("*",), paths=("*",)),
        )
    if live is not None and parsing.role(live) == parsing.role(value):
        return
    act = Act(
        verb="escalate",
        group=_GROUP,
        resource=resource.plural,
        namespace=value.namespace,
        name=value.name,
    )
    _check_rules(resource, act.name, user, known, rules, act)


def _check_binding(resource: Resource, user: User, known: Rights, value: KubeObject) -> None:
    bound = parsing.binding(value)
    act = Act(
        verb="bind",
        group=_GROUP,
        resource="clusterroles" if bound.of_cluster else "roles",
        namespace=bound.namespace,
        name=bound.role,
    )
    rules = known.rules(bound.role, "" if bound.of_cluster else bound.namespace)
    _check_rules(resource, value.name, user, known, rules, act)


def _check_rules(
    resource: Resource, name: str, user: User, known: Rights, rules: tuple[Rule, ...] | None, act: Act
) -> None:
    """Raise StatusError unless the user may do ``act`` or has all ``rules`` (None: the role does not exist)."""
    if known.may(user, act):
        return
    if rules is None:
        details: StatusDetails = {"name": act.name, "group": _GROUP, "kind": act.resource}
        raise StatusError(404, "NotFound", f'{act.resource}.{_GROUP} "{act.name}" not found', details)
    beyond = known.missing_rules(user, rules, act.namespace)
    if not beyond:
        return
    shown = "\n".join(msgspec.json.encode(parsing.shown(rule)).decode() for rule in beyond[:_SHOWN_MAX])
    groups = msgspec.json.encode(user.groups).decode()
    grants = "is attempting to grant RBAC permissions not currently held"
    reason = f'user "{user.name}" (groups={groups}) {grants}:\n{shown}'
    raise status_objects.forbidden(resource, name, reason)


def check_reserved(target: Target, user: User) -> None:
    """Raise StatusError (403) if the object is reserved for ``system:masters`` and the user is not in that group."""
    named = (target.kind, target.namespace) == ("ConfigMap", KEYS_NAMESPACE) and target.name.startswith(
        _RESERVED_PREFIX
    )
    if named and not user.is_master:
        message = (
            f'configmaps "{target.name}" is forbidden: only members of system:masters may write ConfigMaps whose'
            f" names begin with {_RESERVED_PREFIX} in {KEYS_NAMESPACE}"
        )
        raise StatusError(403, "Forbidden", message, {"name": target.name, "kind": "configmaps"})
