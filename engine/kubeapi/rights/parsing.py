"""Conversion of RBAC objects into ``Rights``.

Malformed parts grant nothing, so a damaged object never extends anyone's rights.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from engine.kubeapi.rights.rbac import Binding, Rights, Role, Rule, Subject
from engine.kubeapi.values.selectors import LabelSelector
from events.json_values import Json, as_object, list_at, object_at

API_VERSION: Final = "rbac.authorization.k8s.io/v1"
GROUP: Final = "rbac.authorization.k8s.io"
_OPERATORS: Final = {"In": True, "NotIn": True, "Exists": False, "DoesNotExist": False}
"""Selector operators, and whether each requires values."""

KINDS: Final = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")


def rights(values: Iterable[Json]) -> Rights:
    """Build the rights from RBAC objects; a later object replaces an earlier one of the same name."""
    roles: dict[tuple[str, str, str], Role] = {}
    bindings: dict[tuple[str, str, str], Binding] = {}
    for value in values:
        kind, metadata = str(value.get("kind")), object_at(value, "metadata")
        key = (kind, _text(metadata, "namespace"), _text(metadata, "name"))
        match kind:
            case "Role" | "ClusterRole":
                roles[key] = role(value)
            case "RoleBinding" | "ClusterRoleBinding":
                bindings[key] = binding(value)
            case _:
                pass
    return Rights(roles.values(), bindings.values())


def role(value: Json) -> Role:
    metadata = object_at(value, "metadata")
    return Role(
        name=_text(metadata, "name"),
        namespace=_text(metadata, "namespace") if value.get("kind") == "Role" else "",
        rules=rules(value),
        labels=_labels(metadata.get("labels")),
        gathers=tuple(_gathers(value)),
    )


def rules(value: Json) -> tuple[Rule, ...]:
    """Return the rules of a role, or of any object with a list ``rules``."""
    return tuple(
        Rule(
            verbs=_texts(rule, "verbs"),
            groups=_texts(rule, "apiGroups"),
            resources=_texts(rule, "resources"),
            names=_texts(rule, "resourceNames"),
            paths=_texts(rule, "nonResourceURLs"),
        )
        for item in list_at(value, "rules")
        if (rule := as_object(item)) is not None
    )


def binding(value: Json) -> Binding:
    metadata = object_at(value, "metadata")
    is_global = value.get("kind") == "ClusterRoleBinding"
    namespace = "" if is_global else _text(metadata, "namespace")
    reference = object_at(value, "roleRef")
    return Binding(
        name=_text(metadata, "name"),
        namespace=namespace,
        role=_text(reference, "name"),
        of_cluster=is_global or reference.get("kind") == "ClusterRole",
        subjects=tuple(_subjects(value, namespace)),
    )


def shown(found: Rule) -> Json:
    """Return a rule in the JSON form of roles and access reviews."""
    if found.paths:
        return {"verbs": list(found.verbs), "nonResourceURLs": list(found.paths)}
    value: Json = {
        "verbs": list(found.verbs),
        "apiGroups": list(found.groups),
        "resources": list(found.resources),
    }
    return {**value, "resourceNames": list(found.names)} if found.names else value


def _subjects(value: Json, namespace: str) -> Iterable[Subject]:
    for item in list_at(value, "subjects"):
        subject = object_at(item)
        kind = _text(subject, "kind")
        # A ServiceAccount subject without a namespace belongs to the namespace of the binding.
        subject_namespace = _text(subject, "namespace") or namespace if kind == "ServiceAccount" else ""
        yield Subject(kind=kind, name=_text(subject, "name"), namespace=subject_namespace)


def _gathers(value: Json) -> Iterable[LabelSelector]:
    gathering = object_at(value, "aggregationRule")
    for item in list_at(gathering, "clusterRoleSelectors"):
        if as_object(item) is None:
            continue
        try:
            selector = msgspec.convert(item, LabelSelector)
        except msgspec.ValidationError:
            continue  # an invalid selector aggregates nothing
        if all(bool(each.values) == _OPERATORS.get(each.operator) for each in selector.match_expressions):
            yield selector


def _labels(value: object) -> dict[str, str]:
    return {name: text for name, text in object_at(value).items() if isinstance(text, str)}


def _text(value: Json, name: str) -> str:
    text = value.get(name)
    return text if isinstance(text, str) else ""


def _texts(value: Json, name: str) -> tuple[str, ...]:
    return tuple(item for item in list_at(value, name) if isinstance(item, str))
