"""Authorization with kubectl: roles, bindings, tokens of service accounts, impersonation."""

import base64
import json
from pathlib import Path
from typing import cast

from events.json_values import at, objects_at
from tests.kubectl.commands import Kubectl
from tests.kubectl.manifests import OF_ROBOT


def _robot(kubectl: Kubectl) -> str:
    """Create a service account; return the option with its token."""
    kubectl("create", "serviceaccount", "robot")
    return f"--token={kubectl('create', 'token', 'robot').strip()}"


def test_service_account_is_limited_to_its_roles(kubectl: Kubectl) -> None:
    robot, namespace = _robot(kubectl), kubectl.namespace
    name = f"system:serviceaccount:{namespace}:robot"
    assert f"Username    {name}" in kubectl("auth", "whoami", robot)
    kubectl("get", "deployments", robot, code=1)
    assert kubectl.errors == (
        f'Error from server (Forbidden): deployments.apps is forbidden: User "{name}" cannot list resource'
        f' "deployments" in API group "apps" in the namespace "{namespace}"\n'
    )
    kubectl("create", "rolebinding", "robots", "--clusterrole=view", f"--serviceaccount={namespace}:robot")
    kubectl("create", "deployment", "web", "--image=nginx")
    assert kubectl("get", "deployments", robot, "-o", "name") == "deployment.apps/web\n"
    kubectl("delete", "deployment", "web", robot, code=1)
    assert f'User "{name}" cannot delete resource "deployments" in API group "apps"' in kubectl.errors
    kubectl("get", "deployments", "--all-namespaces", robot, code=1)
    assert "at the cluster scope" in kubectl.errors
    kubectl("get", "nodes", robot, code=1)
    kubectl("get", "secrets", robot, code=1)
    # A change of the roles applies from the next request on.
    kubectl("delete", "rolebinding", "robots")
    kubectl("get", "deployments", robot, code=1)


def test_rules_apply_by_verb_resource_name_and_subresource(kubectl: Kubectl) -> None:
    robot = _robot(kubectl)
    kubectl("create", "configmap", "settings")
    kubectl("create", "configmap", "others")
    kubectl("create", "deployment", "web", "--image=nginx")
    kubectl("create", "role", "one", "--verb=get,patch", "--resource=configmaps", "--resource-name=settings")
    kubectl("create", "role", "scaler", "--verb=get,patch", "--resource=deployments,deployments/scale")
    for role in ("one", "scaler"):
        kubectl(
            "create", "rolebinding", role, f"--role={role}", f"--serviceaccount={kubectl.namespace}:robot"
        )
    assert kubectl("get", "configmap", "settings", robot, "-o", "name") == "configmap/settings\n"
    kubectl("get", "configmap", "others", robot, code=1)
    assert 'configmaps "others" is forbidden' in kubectl.errors
    kubectl("label", "configmap", "settings", "a=b", robot)
    kubectl("scale", "deployment", "web", "--replicas=3", robot)
    kubectl("delete", "deployment", "web", robot, code=1)


def test_can_i_reports_the_permissions(kubectl: Kubectl) -> None:
    robot, namespace = _robot(kubectl), kubectl.namespace
    assert kubectl("auth", "can-i", "delete", "nodes") == "yes\n"
    assert kubectl("auth", "can-i", "list", "deployments", robot, code=1) == "no\n"
    kubectl("create", "rolebinding", "robots", "--clusterrole=edit", f"--serviceaccount={namespace}:robot")
    assert kubectl("auth", "can-i", "create", "deployments", robot) == "yes\n"
    assert kubectl("auth", "can-i", "create", "propagationpolicies", robot) == "yes\n"
    assert kubectl("auth", "can-i", "create", "clusters", robot, code=1) == "no\n"
    assert kubectl("auth", "can-i", "get", "/version", robot) == "yes\n"
    listed = [line.split() for line in kubectl("auth", "can-i", "--list", robot).splitlines()]
    assert ["selfsubjectaccessreviews.authorization.k8s.io", "[]", "[]", "[create]"] in listed
    assert any(line[0] == "propagationpolicies.policy.karmada.io" for line in listed)
    everything = kubectl("auth", "can-i", "--list").splitlines()
    assert ["*.*", "[]", "[]", "[*]"] in [line.split() for line in everything]


def test_only_admins_may_impersonate(kubectl: Kubectl) -> None:
    robot, namespace = _robot(kubectl), kubectl.namespace
    kubectl("create", "rolebinding", "team", "--clusterrole=view", "--group=team")
    assert kubectl("get", "deployments", "--as=alice", "--as-group=team") == ""
    kubectl("get", "deployments", "--as=alice", code=1)
    assert 'User "alice" cannot list resource "deployments"' in kubectl.errors
    assert "Username    alice" in kubectl("auth", "whoami", "--as=alice", "--as-group=team")
    kubectl("get", "deployments", "--as=reballast-admin", "--as-group=system:masters", robot, code=1)
    assert (
        f'users "reballast-admin" is forbidden: User "system:serviceaccount:{namespace}:robot" cannot impersonate'
        ' resource "users"'
    ) in kubectl.errors


def test_role_beyond_the_own_permissions_is_refused(kubectl: Kubectl) -> None:
    robot, namespace = _robot(kubectl), kubectl.namespace
    kubectl("create", "rolebinding", "robots", "--clusterrole=admin", f"--serviceaccount={namespace}:robot")
    kubectl("create", "role", "fine", "--verb=get", "--resource=pods", robot)
    kubectl("create", "role", "wild", "--verb=*", "--resource=*.*", robot, code=1)
    assert "is attempting to grant RBAC permissions not currently held" in kubectl.errors
    kubectl("create", "rolebinding", "up", "--clusterrole=cluster-admin", "--user=eve", robot, code=1)
    assert "is attempting to grant RBAC permissions not currently held" in kubectl.errors
    kubectl("create", "rolebinding", "down", "--clusterrole=view", "--user=eve", robot)
    again = '{"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"admin"}}'
    kubectl("patch", "rolebinding", "down", "-p", again, code=1)
    assert "cannot change roleRef" in kubectl.errors


def test_token_is_invalid_after_its_account_is_deleted(kubectl: Kubectl) -> None:
    robot = _robot(kubectl)
    kubectl("auth", "whoami", robot)
    kubectl("delete", "serviceaccount", "robot")
    kubectl("auth", "whoami", robot, code=1)
    kubectl("create", "serviceaccount", "robot")
    kubectl("auth", "whoami", robot, code=1)
    assert "Unauthorized" in kubectl.errors


def test_secret_of_a_service_account_contains_its_token(kubectl: Kubectl) -> None:
    kubectl("create", "serviceaccount", "robot")
    kubectl("apply", "-f", "-", stdin=OF_ROBOT)
    shown = kubectl.json("secret", "robot-token")["data"]
    data = {name: base64.b64decode(text).decode() for name, text in cast("dict[str, str]", shown).items()}
    assert data["namespace"] == kubectl.namespace
    assert data["ca.crt"].startswith("-----BEGIN CERTIFICATE-----")
    robot = f"--token={data['token']}"
    assert f"serviceaccount:{kubectl.namespace}:robot" in kubectl("auth", "whoami", robot)
    kubectl("delete", "secret", "robot-token")
    kubectl("auth", "whoami", robot, code=1)


def test_every_namespace_has_a_default_account_and_the_ca_certificate(kubectl: Kubectl) -> None:
    assert kubectl("get", "serviceaccounts", "-o", "name") == "serviceaccount/default\n"
    certificate = kubectl("get", "configmap", "kube-root-ca.crt", "-o", "jsonpath={.data.ca\\.crt}")
    assert certificate.startswith("-----BEGIN CERTIFICATE-----")
    token = f"--token={kubectl('create', 'token', 'default', '--duration=20m').strip()}"
    assert f"serviceaccount:{kubectl.namespace}:default" in kubectl("auth", "whoami", token)
    kubectl("create", "serviceaccount", "default", code=1)
    assert "already exists" in kubectl.errors
    kubectl("label", "serviceaccount", "default", "a=b")
    assert kubectl("get", "serviceaccounts", "-l", "a=b", "-o", "name") == "serviceaccount/default\n"


def test_client_that_joins_finds_the_address_and_the_authority_of_the_api(
    kubectl: Kubectl, tmp_path: Path
) -> None:
    assert "configmap/cluster-info\n" in kubectl("get", "configmaps", "-n", "kube-public", "-o", "name")
    info = kubectl.json("configmap", "cluster-info", "-n", "kube-public")
    (entry,) = objects_at(json.loads(str(at(info, "data", "kubeconfig"))), "clusters")
    authority = tmp_path / "ca.crt"
    authority.write_bytes(base64.b64decode(str(at(entry, "cluster", "certificate-authority-data"))))
    server = f"--server={at(entry, 'cluster', 'server')}"
    token = f"--token={kubectl('create', 'token', 'default', '--duration=20m').strip()}"
    shown = kubectl("auth", "whoami", token, server, f"--certificate-authority={authority}")
    assert f"serviceaccount:{kubectl.namespace}:default" in shown


def test_builtin_cluster_roles_exist(kubectl: Kubectl) -> None:
    names = kubectl("get", "clusterroles", "-o", "name").split()
    for name in ("admin", "cluster-admin", "edit", "view"):
        assert f"clusterrole.rbac.authorization.k8s.io/{name}" in names
    assert "cluster-admin" in kubectl("describe", "clusterrolebinding", "cluster-admin")
    described = kubectl("describe", "clusterrole", "view").splitlines()
    assert any(line.split()[:1] == ["deployments.apps"] for line in described)


def test_apply_of_a_missing_object_needs_the_create_permission(kubectl: Kubectl) -> None:
    robot = _robot(kubectl)
    kubectl("create", "role", "patcher", "--verb=get,patch", "--resource=configmaps")
    kubectl(
        "create", "rolebinding", "patcher", "--role=patcher", f"--serviceaccount={kubectl.namespace}:robot"
    )
    config_map = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"},"data":{"a":"1"}}'
    kubectl("apply", "--server-side", "-f", "-", robot, stdin=config_map, code=1)
    assert 'cannot create resource "configmaps"' in kubectl.errors
    kubectl("create", "configmap", "one")
    kubectl("apply", "--server-side", "-f", "-", robot, stdin=config_map)
    assert kubectl("get", "configmap", "one", "-o", "jsonpath={.data.a}") == "1"


def test_roles_in_a_member_apply_behind_its_proxy_only(kubectl: Kubectl) -> None:
    robot, namespace = _robot(kubectl), kubectl.namespace
    proxy = "/apis/cluster.karmada.io/v1alpha1/clusters/{}/proxy/api/v1/nodes"
    account = f"--serviceaccount={namespace}:robot"
    kubectl("create", "clusterrole", namespace, "--verb=*", "--resource=clusters.cluster.karmada.io/proxy")
    kubectl("create", "clusterrolebinding", namespace, f"--clusterrole={namespace}", account)
    member = kubectl.on("member1")
    try:
        kubectl("get", robot, "--raw", proxy.format("member1"), code=1)
        member("create", "clusterrole", namespace, "--verb=list", "--resource=nodes")
        member("create", "clusterrolebinding", namespace, f"--clusterrole={namespace}", account)
        assert '"kind":"NodeList"' in kubectl("get", robot, "--raw", proxy.format("member1"))
        kubectl("get", robot, "--raw", proxy.format("member2"), code=1)
        kubectl("get", robot, "nodes", code=1)
    finally:
        member("delete", "clusterrole,clusterrolebinding", namespace, "--ignore-not-found")
        kubectl("delete", "clusterrole,clusterrolebinding", namespace)
