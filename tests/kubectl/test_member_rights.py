"""Service accounts of members: their tokens open the member only, as far as the member's roles allow."""

import base64
import json
from typing import Final

from tests.kubectl.commands import Kubectl
from tests.kubectl.manifests import OF_ROBOT

_ROLES: Final = "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles"


def _member(kubectl: Kubectl) -> Kubectl:
    member = kubectl.on("member2")
    member.until_true(lambda: kubectl.namespace in member("get", "ns"), lambda: member("get", "ns"))
    return member


def test_token_of_an_account_of_a_member_is_limited_to_the_member_and_its_roles(kubectl: Kubectl) -> None:
    member, namespace = _member(kubectl), kubectl.namespace
    member("create", "serviceaccount", "robot")
    robot = f"--token={member('create', 'token', 'robot').strip()}"
    name = f"system:serviceaccount:{namespace}:robot"
    assert f"Username    {name}" in member("auth", "whoami", robot)
    member("get", "deployments", robot, code=1)
    assert f'User "{name}" cannot list resource "deployments" in API group "apps"' in member.errors
    # A binding in the control plane is another cluster's.
    kubectl("create", "rolebinding", "robots", "--clusterrole=edit", f"--serviceaccount={namespace}:robot")
    member("get", "deployments", robot, code=1)
    member("create", "rolebinding", "robots", "--clusterrole=view", f"--serviceaccount={namespace}:robot")
    member("create", "deployment", "web", "--image=nginx")
    assert member("get", "deployments", robot, "-o", "name") == "deployment.apps/web\n"
    assert member("auth", "can-i", "list", "deployments", robot) == "yes\n"
    assert member("auth", "can-i", "delete", "deployments", robot, code=1) == "no\n"
    member("delete", "deployment", "web", robot, code=1)
    for context in ("member1", "karmada-apiserver"):
        kubectl.on(context)("get", "deployments", robot, code=1)
    member("delete", "serviceaccount", "robot")
    member("get", "deployments", robot, code=1)
    assert "Unauthorized" in member.errors or "must be logged in" in member.errors


def test_token_secret_of_a_member_is_filled_and_ends_with_the_secret(kubectl: Kubectl) -> None:
    member = _member(kubectl)
    member("create", "serviceaccount", "robot")
    member("create", "role", "reader", "--verb=get,list", "--resource=configmaps")
    member("create", "rolebinding", "reader", "--role=reader", f"--serviceaccount={kubectl.namespace}:robot")
    member("apply", "-f", "-", stdin=OF_ROBOT)
    token = base64.b64decode(member("get", "secret", "robot-token", "-o", "jsonpath={.data.token}")).decode()
    member("create", "configmap", "settings")
    assert "configmap/settings" in member("get", "configmaps", f"--token={token}", "-o", "name")
    member("delete", "secret", "robot-token")
    member("get", "configmaps", f"--token={token}", code=1)


def test_account_of_a_member_grants_no_rights_that_it_lacks(kubectl: Kubectl) -> None:
    member, namespace = _member(kubectl), kubectl.namespace
    member("create", "serviceaccount", "robot")
    robot = f"--token={member('create', 'token', 'robot').strip()}"
    member("create", "rolebinding", "robots", "--clusterrole=admin", f"--serviceaccount={namespace}:robot")
    member("create", "role", "fine", "--verb=get", "--resource=pods", robot)
    member("create", "rolebinding", "down", "--clusterrole=view", "--user=eve", robot)
    member("create", "role", "wild", "--verb=*", "--resource=*.*", robot, code=1)
    assert "is attempting to grant RBAC permissions not currently held" in member.errors
    member("create", "rolebinding", "up", "--clusterrole=cluster-admin", "--user=eve", robot, code=1)
    assert "is attempting to grant RBAC permissions not currently held" in member.errors
    member("create", "rolebinding", "up", "--clusterrole=cluster-admin", "--user=eve")


def test_user_of_the_control_plane_can_grant_in_a_member_its_rights_in_both(kubectl: Kubectl) -> None:
    member, namespace = _member(kubectl), kubectl.namespace
    kubectl("create", "serviceaccount", "robot")
    robot = f"--token={kubectl('create', 'token', 'robot').strip()}"
    account = f"--serviceaccount={namespace}:robot"
    kubectl("create", "clusterrole", namespace, "--verb=*", "--resource=clusters.cluster.karmada.io/proxy")
    kubectl("create", "clusterrolebinding", namespace, f"--clusterrole={namespace}", account)
    kubectl("create", "rolebinding", "views", "--clusterrole=view", account)
    try:
        member("create", "role", "roles", "--verb=create", "--resource=roles.rbac.authorization.k8s.io")
        member("create", "role", "leases", "--verb=get", "--resource=leases.coordination.k8s.io")
        for role in ("roles", "leases"):
            member("create", "rolebinding", role, f"--role={role}", account)
        proxy = f"/apis/cluster.karmada.io/v1alpha1/clusters/member2/proxy{_ROLES.format(namespace)}"
        for resources, code in (("pods", 0), ("leases", 0), ("secrets", 1)):
            group = "coordination.k8s.io" if resources == "leases" else ""
            role = {"rules": [{"verbs": ["get"], "apiGroups": [group], "resources": [resources]}]}
            role |= {"metadata": {"name": f"get-{resources}"}}
            kubectl("create", robot, "--raw", proxy, "-f", "-", stdin=json.dumps(role), code=code)
        assert "is attempting to grant RBAC permissions not currently held" in kubectl.errors
    finally:
        kubectl("delete", "clusterrole,clusterrolebinding", namespace)
