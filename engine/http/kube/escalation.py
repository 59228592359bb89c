"""Privilege escalation checks for roles and bindings: users can only grant rights that they have."""

from typing import Final

import msgspec

from engine.kubeapi.errors import status_objects
from engine.kubeapi.errors.status_objects import Cause, StatusError
from engine.kubeapi.rights import parsing
from engine.kubeapi.rights.rbac import Act, Rights, Rule, User
from engine.kubeapi.schema.resources import Resource
from events.json_values import Json, object_at

_SHOWN_MAX: Final = 8
_GROUP: Final = parsing.GROUP


def check(resource: Resource, user: User, known: Rights | None, value: Json, live: Json | None) -> None:
    """Raise StatusError if the user may not write this role or binding.

    ``known`` may be None for ``system:masters``. Objects of other groups pass.
    """
    if resource.group != _GROUP:
        return
    name = str(object_at(value, "metadata").get("name", ""))
    if resource.kind.endswith("Binding") and live is not None and live.get("roleRef") != value.get("roleRef"):
        message = "Invalid value: cannot change roleRef"
        cause = Cause(field="roleRef", reason="FieldValueInvalid", message=message)
        raise status_objects.invalid(resource, name, [cause])
    if user.is_master or known is None:
        return
    if resource.kind.endswith("Binding"):
        _check_binding(resource, user, known, value)
    else:
        _check_role(resource, user, known, value, live)


def _check_role(resource: Resource, user: User, known: Rights, value: Json, live: Json | None) -> None:
    metadata = object_at(value, "metadata")
    rules = parsing.rules(value)
    if value.get("aggregationRule"):
        # An aggregated role can come to include any rule, so only unrestricted users may create one.
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
        namespace=str(metadata.get("namespace") or ""),
        name=str(metadata.get("name", "")),
    )
    _check(resource, act.name, user, known, rules, act)


def _check_binding(resource: Resource, user: User, known: Rights, value: Json) -> None:
    metadata = object_at(value, "metadata")
    bound = parsing.binding(value)
    act = Act(
        verb="bind",
        group=_GROUP,
        resource="clusterroles" if bound.of_cluster else "roles",
        namespace=bound.namespace,
        name=bound.role,
    )
    rules = known.rules(bound.role, "" if bound.of_cluster else bound.namespace)
    if rules is None:
        details: Json = {"name": bound.role, "group": _GROUP, "kind": act.resource}
        raise StatusError(404, "NotFound", f'{act.resource}.{_GROUP} "{bound.role}" not found', details)
    _check(resource, str(metadata.get("name", "")), user, known, rules, act)


def _check(
    resource: Resource, name: str, user: User, known: Rights, rules: tuple[Rule, ...], act: Act
) -> None:
    if known.may(user, act):
        return
    beyond = known.beyond(user, rules, act.namespace)
    if not beyond:
        return
    shown = "\n".join(msgspec.json.encode(parsing.shown(rule)).decode() for rule in beyond[:_SHOWN_MAX])
    groups = msgspec.json.encode(user.groups).decode()
    message = (
        f'{resource.qualified} "{name}" is forbidden: user "{user.name}" (groups={groups})'
        f" is attempting to grant RBAC permissions not currently held:\n{shown}"
    )
    raise StatusError(403, "Forbidden", message, {"name": name, "group": _GROUP, "kind": resource.plural})
