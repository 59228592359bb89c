"""Validation of RBAC roles and bindings, from the published Kubernetes API."""

from collections.abc import Iterator

from engine.kubeapi.errors import causes
from engine.kubeapi.errors import messages as words
from engine.kubeapi.errors.status_objects import Cause
from engine.kubeapi.rights.parsing import GROUP
from events.json_values import Json, as_object, as_text, list_at
from events.kube_objects import KubeObject


def role(value: KubeObject, _live: KubeObject | None) -> Iterator[Cause]:
    """Yield the errors of a Role or ClusterRole."""
    is_namespaced = value.kind == "Role"
    for index, rule in enumerate(value.objects_at("rules")):
        where, paths = f"rules[{index}]", list_at(rule, "nonResourceURLs")
        if not rule.get("verbs"):
            yield causes.required(f"{where}.verbs", "verbs must contain at least one value")
        if paths and is_namespaced:
            detail = "namespaced rules cannot apply to non-resource URLs"
            yield causes.invalid(f"{where}.nonResourceURLs", paths, detail)
        if paths:
            if any(rule.get(name) for name in ("apiGroups", "resources", "resourceNames")):
                detail = "rules cannot apply to both regular resources and non-resource URLs"
                yield causes.invalid(f"{where}.nonResourceURLs", paths, detail)
            continue
        if not rule.get("apiGroups"):
            yield causes.required(f"{where}.apiGroups", "resource rules must supply at least one api group")
        if not rule.get("resources"):
            yield causes.required(f"{where}.resources", "resource rules must supply at least one resource")
    union = as_object(value.at("aggregationRule"))
    if union is not None and not union.get("clusterRoleSelectors"):
        detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        yield causes.required("aggregationRule.clusterRoleSelectors", detail)
    for index, selector in enumerate(list_at(union, "clusterRoleSelectors")):
        yield from words.selector(selector, f"aggregationRule.clusterRoleSelectors[{index}]")


def role_binding(value: KubeObject, live: KubeObject | None) -> Iterator[Cause]:
    """Yield the errors of a RoleBinding or ClusterRoleBinding; roleRef is immutable."""
    ref = value.object_at("roleRef")
    if ref.get("apiGroup", GROUP) != GROUP:
        yield causes.unsupported("roleRef.apiGroup", ref["apiGroup"], (GROUP,))
    choices = ("Role", "ClusterRole") if value.kind == "RoleBinding" else ("ClusterRole",)
    if ref.get("kind", "") not in choices:
        yield causes.unsupported("roleRef.kind", ref.get("kind", ""), choices)
    name = as_text(ref.get("name"))
    yield from words.required("roleRef.name", name, words.segment_faults)
    for index, subject in enumerate(value.objects_at("subjects")):
        yield from _subject(subject, f"subjects[{index}]", is_namespaced=value.kind == "RoleBinding")
    before = {} if live is None else live.object_at("roleRef")
    if before and before != ref:
        shown = {"APIGroup": ref.get("apiGroup", ""), "Kind": ref.get("kind", ""), "Name": name}
        yield causes.invalid("roleRef", shown, "cannot change roleRef")


def _subject(subject: Json, path: str, *, is_namespaced: bool) -> Iterator[Cause]:
    name, sort, group = str(subject.get("name") or ""), subject.get("kind"), subject.get("apiGroup") or ""
    if not name:
        yield causes.required(f"{path}.name")
    match sort:
        case "ServiceAccount":
            if group:
                yield causes.unsupported(f"{path}.apiGroup", group, ("",))
            if not is_namespaced and not subject.get("namespace"):
                yield causes.required(f"{path}.namespace")
        case "User" | "Group":
            if group != GROUP:
                yield causes.unsupported(f"{path}.apiGroup", group, (GROUP,))
        case _:
            yield causes.unsupported(f"{path}.kind", sort, ("ServiceAccount", "User", "Group"))
