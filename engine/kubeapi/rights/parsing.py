"""Conversion of RBAC objects into ``Rights``.

Malformed parts grant nothing, so a damaged object never extends anyone's rights.
"""

from collections.abc import Iterable
from typing import Final, TypedDict

import msgspec

from engine.kubeapi.rights.rbac import Binding, Rights, Role, Rule, Subject
from engine.kubeapi.schema.openapi_schemas import texts
from engine.kubeapi.values.selectors import LabelSelector, Operator
from events.json_values import as_object, as_text
from events.kube_objects import KubeObject

API_VERSION: Final = "rbac.authorization.k8s.io/v1"
GROUP: Final = "rbac.authorization.k8s.io"
_OPERATORS: Final[dict[str, bool]] = {
    Operator.IN: True,
    Operator.NOT_IN: True,
    Operator.EXISTS: False,
    Operator.DOES_NOT_EXIST: False,
}
"""Selector operators, and whether each requires values."""

KINDS: Final = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")


def rights(values: Iterable[KubeObject]) -> Rights:
    """Build the rights from RBAC objects; a later object replaces an earlier object of the same name."""
    roles: dict[tuple[str, str, str], Role] = {}
    bindings: dict[tuple[str, str, str], Binding] = {}
    for value in values:
        key = (value.kind, *value.key)
        match value.kind:
            case "Role" | "ClusterRole":
                roles[key] = role(value)
            case "RoleBinding" | "ClusterRoleBinding":
                bindings[key] = binding(value)
            case _:
                pass
    return Rights(roles.values(), bindings.values())


def role(value: KubeObject) -> Role:
    return Role(
        name=value.name,
        namespace=value.namespace if value.kind == "Role" else "",
        rules=rules(value),
        labels={name: text for name, text in value.labels.items() if isinstance(text, str)},
        aggregation_selectors=tuple(_aggregation_selectors(value)),
    )


def rules(value: KubeObject) -> tuple[Rule, ...]:
    """Return the rules of a role, or of any object with a list ``rules``."""
    return tuple(
        Rule(
            verbs=texts(rule.get("verbs")),
            groups=texts(rule.get("apiGroups")),
            resources=texts(rule.get("resources")),
            names=texts(rule.get("resourceNames")),
            paths=texts(rule.get("nonResourceURLs")),
        )
        for item in value.list_at("rules")
        if (rule := as_object(item)) is not None
    )


def binding(value: KubeObject) -> Binding:
    is_global = value.kind == "ClusterRoleBinding"
    namespace = "" if is_global else value.namespace
    reference = value.object_at("roleRef")
    return Binding(
        name=value.name,
        namespace=namespace,
        role=as_text(reference.get("name")),
        of_cluster=is_global or reference.get("kind") == "ClusterRole",
        subjects=tuple(_subjects(value, namespace)),
    )


class ShownRule(TypedDict, total=False):
    """A rule in the JSON form of roles and access reviews."""

    verbs: list[str]
    nonResourceURLs: list[str]
    apiGroups: list[str]
    resources: list[str]
    resourceNames: list[str]


def shown(rule: Rule) -> ShownRule:
    if rule.paths:
        return {"verbs": list(rule.verbs), "nonResourceURLs": list(rule.paths)}
    value: ShownRule = {
        "verbs": list(rule.verbs),
        "apiGroups": list(rule.groups),
        "resources": list(rule.resources),
    }
    if rule.names:
        value["resourceNames"] = list(rule.names)
    return value


def _subjects(value: KubeObject, namespace: str) -> Iterable[Subject]:
    for subject in value.objects_at("subjects"):
        kind = as_text(subject.get("kind"))
        # A ServiceAccount subject without a namespace belongs to the namespace of the binding.
        subject_namespace = as_text(subject.get("namespace")) or namespace if kind == "ServiceAccount" else ""
        yield Subject(kind=kind, name=as_text(subject.get("name")), namespace=subject_namespace)


def _aggregation_selectors(value: KubeObject) -> Iterable[LabelSelector]:
    for item in value.list_at("aggregationRule", "clusterRoleSelectors"):
        if as_object(item) is None:
            continue
        try:
            selector = msgspec.convert(item, LabelSelector)
        except msgspec.ValidationError:
            continue  # an invalid selector aggregates nothing
        if all(
            bool(expression.values) == _OPERATORS.get(expression.operator)
            for expression in selector.match_expressions
        ):
            yield selector
