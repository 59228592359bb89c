"""Roles and bindings out of their objects.

What is not of the right form is read as what it allows for certain: nothing. So a damaged object never opens a door.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from engine.kube.rights import Binding, Rights, Role, Rule, Subject
from engine.kube.schemas import Json, as_list, as_object
from engine.objects.selectors import LabelSelector

API_VERSION: Final = "rbac.authorization.k8s.io/v1"
GROUP: Final = "rbac.authorization.k8s.io"
_OPERATORS: Final = {"In": True, "NotIn": True, "Exists": False, "DoesNotExist": False}
"""The conditions that there are, and whether each needs values."""

KINDS: Final = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")


def rights(values: Iterable[Json]) -> Rights:
    """The rights that objects of these kinds amount to; of two with one name the later counts."""
    roles: dict[tuple[str, str, str], Role] = {}
    bindings: dict[tuple[str, str, str], Binding] = {}
    for value in values:
        kind, metadata = str(value.get("kind")), as_object(value.get("metadata")) or {}
        place = (kind, _text(metadata, "namespace"), _text(metadata, "name"))
        match kind:
            case "Role" | "ClusterRole":
                roles[place] = role(value)
            case "RoleBinding" | "ClusterRoleBinding":
                bindings[place] = binding(value)
            case _:
                pass
    return Rights(roles.values(), bindings.values())


def role(value: Json) -> Role:
    """A Role, or a ClusterRole."""
    metadata = as_object(value.get("metadata")) or {}
    return Role(
        name=_text(metadata, "name"),
        namespace=_text(metadata, "namespace") if value.get("kind") == "Role" else "",
        rules=rules(value),
        labels=_labels(metadata.get("labels")),
        gathers=tuple(_gathers(value)),
    )


def rules(value: Json) -> tuple[Rule, ...]:
    """The rules of a role, or of anything with a list of ``rules``."""
    return tuple(
        Rule(
            verbs=_texts(rule, "verbs"),
            groups=_texts(rule, "apiGroups"),
            resources=_texts(rule, "resources"),
            names=_texts(rule, "resourceNames"),
            paths=_texts(rule, "nonResourceURLs"),
        )
        for item in as_list(value.get("rules")) or []
        if (rule := as_object(item)) is not None
    )


def binding(value: Json) -> Binding:
    """A RoleBinding, or a ClusterRoleBinding."""
    metadata = as_object(value.get("metadata")) or {}
    is_global = value.get("kind") == "ClusterRoleBinding"
    namespace = "" if is_global else _text(metadata, "namespace")
    reference = as_object(value.get("roleRef")) or {}
    return Binding(
        name=_text(metadata, "name"),
        namespace=namespace,
        role=_text(reference, "name"),
        of_cluster=is_global or reference.get("kind") == "ClusterRole",
        subjects=tuple(_subjects(value, namespace)),
    )


def shown(found: Rule) -> Json:
    """A rule as reviews and roles have it."""
    if found.paths:
        return {"verbs": list(found.verbs), "nonResourceURLs": list(found.paths)}
    value: Json = {
        "verbs": list(found.verbs),
        "apiGroups": list(found.groups),
        "resources": list(found.resources),
    }
    return {**value, "resourceNames": list(found.names)} if found.names else value


def _subjects(value: Json, namespace: str) -> Iterable[Subject]:
    for item in as_list(value.get("subjects")) or []:
        subject = as_object(item) or {}
        kind = _text(subject, "kind")
        # An account without a namespace is one of the binding's own.
        place = _text(subject, "namespace") or namespace if kind == "ServiceAccount" else ""
        yield Subject(kind=kind, name=_text(subject, "name"), namespace=place)


def _gathers(value: Json) -> Iterable[LabelSelector]:
    gathering = as_object(value.get("aggregationRule")) or {}
    for item in as_list(gathering.get("clusterRoleSelectors")) or []:
        if as_object(item) is None:
            continue
        try:
            found = msgspec.convert(item, LabelSelector)
        except msgspec.ValidationError:
            continue  # it gathers nothing
        if all(bool(each.values) == _OPERATORS.get(each.operator) for each in found.match_expressions):
            yield found


def _labels(value: object) -> dict[str, str]:
    return {name: text for name, text in (as_object(value) or {}).items() if isinstance(text, str)}


def _text(value: Json, name: str) -> str:
    found = value.get(name)
    return found if isinstance(found, str) else ""


def _texts(value: Json, name: str) -> tuple[str, ...]:
    return tuple(item for item in as_list(value.get(name)) or [] if isinstance(item, str))
