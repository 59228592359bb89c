"""Validation of RBAC bindings."""

import pytest

from engine.kubeapi.admission.rules import rbac
from events.json_values import Json
from events.kube_objects import KubeObject

ROLE: Json = {"apiGroup": rbac.RIGHTS, "kind": "ClusterRole", "name": "view"}


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
