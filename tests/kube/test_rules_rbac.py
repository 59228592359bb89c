"""Validation of RBAC roles and bindings."""

import pytest

from engine.kubeapi.admission.rules import rbac
from events.json_values import Json
from events.kube_objects import KubeObject

ROLE: Json = {"apiGroup": rbac.GROUP, "kind": "ClusterRole", "name": "view"}


@pytest.mark.parametrize(
    ("kind", "namespace", "words"),
    [
        ("ClusterRoleBinding", "shop", []),
        ("ClusterRoleBinding", "", ["subjects[0].namespace: Required value"]),
        ("RoleBinding", "", []),
    ],
)
def test_service_account_of_a_cluster_role_binding_has_a_namespace(
    kind: str, namespace: str, words: list[str]
) -> None:
    account: Json = {"kind": "ServiceAccount", "name": "robot", "namespace": namespace}
    causes = rbac.role_binding(KubeObject({"kind": kind, "roleRef": ROLE, "subjects": [account]}), None)
    assert [cause.text for cause in causes] == words


@pytest.mark.parametrize(
    ("kind", "rule", "fields"),
    [
        ("ClusterRole", {"nonResourceURLs": ["/metrics"]}, []),
        ("Role", {"nonResourceURLs": ["/metrics"]}, ["rules[0].nonResourceURLs"]),
        (
            "ClusterRole",
            {"nonResourceURLs": ["/metrics"], "apiGroups": [""], "resources": ["pods"]},
            ["rules[0].nonResourceURLs"],
        ),
        (
            "ClusterRole",
            {"nonResourceURLs": ["/metrics"], "resourceNames": ["a"]},
            ["rules[0].nonResourceURLs"],
        ),
        ("Role", {"apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}, []),
        ("Role", {"apiGroups": [""]}, ["rules[0].resources"]),
        ("Role", {"resources": ["pods"]}, ["rules[0].apiGroups"]),
    ],
)
def test_rule_applies_to_resources_or_to_paths(kind: str, rule: Json, fields: list[str]) -> None:
    causes = rbac.role(KubeObject({"kind": kind, "rules": [{"verbs": ["get"], **rule}]}), None)
    assert [cause.field for cause in causes] == fields


@pytest.mark.parametrize(
    ("selectors", "fields"),
    [
        ([{"matchLabels": {"a": "b"}}], []),
        ([], ["aggregationRule.clusterRoleSelectors"]),
        ([{}, {"matchLabels": {"a b": "c"}}], ["aggregationRule.clusterRoleSelectors[1].matchLabels"]),
    ],
)
def test_aggregated_role_has_valid_selectors(selectors: list[Json], fields: list[str]) -> None:
    union: Json = {"clusterRoleSelectors": selectors}
    causes = rbac.role(KubeObject({"kind": "ClusterRole", "aggregationRule": union}), None)
    assert [cause.field for cause in causes] == fields
