"""Each member's own API, by its context and behind the proxy."""

import base64
import json
from pathlib import Path
from typing import cast

from tests.kubectl.commands import Kubectl
from tests.kubectl.manifests import BOTH

MEMBER = "/apis/cluster.karmada.io/v1alpha1/clusters/member1/proxy"


def test_propagated_deployment_runs_in_its_members(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=BOTH)
    member1, member2, member3 = (kubectl.on(name) for name in ("member1", "member2", "member3"))
    member1.until(["NAME READY UP-TO-DATE AVAILABLE", "web 2/2 2 2"], "deploy")
    member2.until(["NAME READY UP-TO-DATE AVAILABLE", "web 1/1 1 1"], "deploy")
    assert member3.table("deploy") == []
    pods = member1.table("pods")
    assert pods[0] == "NAME READY STATUS RESTARTS"
    assert [line.split()[1:] for line in pods[1:]] == [["2/2", "Running", "0"]] * 2
    chosen = member1("get", "pods", "-l", "app=web", "-o", "name")
    assert len(chosen.splitlines()) == 2
    assert "simulated" in member1("logs", chosen.splitlines()[0])
    label = "jsonpath={.metadata.labels.karmada\\.io/managed}"
    assert member1("get", "deploy", "web", "-o", label) == "true"


def test_member_shows_its_own_control_plane(kubectl: Kubectl) -> None:
    member = kubectl.on("member1")

    def names(*words: str) -> list[str]:
        return member("get", *words, "-n", "kube-system", "-o", "name").split()

    assert names("nodes", "-l", "node-role.kubernetes.io/control-plane") == ["node/member1-control-plane"]
    assert names("deployments,daemonsets") == ["deployment.apps/coredns", "daemonset.apps/kube-proxy"]
    assert "pod/etcd-member1-control-plane" in names("pods", "--field-selector", "status.phase=Running")
    assert "clusterrolebinding.rbac.authorization.k8s.io/cluster-admin" in names("clusterrolebindings")
    assert "coredns" in member("describe", "node", "member1-control-plane")
    member("scale", "deployment", "coredns", "-n", "kube-system", "--replicas=3", code=1)
    assert "the simulation of member1 manages it" in member.errors


def test_member_lists_its_nodes_and_namespaces(kubectl: Kubectl) -> None:
    member = kubectl.on("member1")
    assert len(member("get", "nodes", "--no-headers").splitlines()) == 100
    assert "namespace/kube-system" in member("get", "ns", "-o", "name").split()


def test_cluster_proxy_returns_the_objects_of_the_member(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=BOTH)
    path = f"{MEMBER}/apis/apps/v1/namespaces/{kubectl.namespace}/deployments"
    kubectl.until_true(
        lambda: bool(json.loads(kubectl("get", "--raw", path))["items"]),
        lambda: kubectl("get", "--raw", path),
    )
    assert "v1" in json.loads(kubectl("get", "--raw", f"{MEMBER}/api"))["versions"]
    kubectl("get", "--raw", MEMBER.replace("member1", "nobody") + "/api", code=1)


def test_roles_are_enforced_in_members(kubectl: Kubectl) -> None:
    namespace = kubectl.namespace
    kubectl("apply", "-f", "-", stdin=BOTH)
    member = kubectl.on("member1")
    member.until(["NAME READY UP-TO-DATE AVAILABLE", "web 2/2 2 2"], "deploy")
    kubectl("create", "serviceaccount", "robot")
    token = kubectl("create", "token", "robot").strip()
    path = f"{MEMBER}/apis/apps/v1/namespaces/{namespace}/deployments"
    robot = ("--as", f"system:serviceaccount:{namespace}:robot")
    assert f"serviceaccount:{namespace}:robot" in kubectl("auth", "whoami", f"--token={token}")
    kubectl("get", "--raw", path, *robot, code=1)
    kubectl("create", "clusterrole", f"{namespace}-proxy", "--verb=get,create", "--resource=clusters/proxy")
    kubectl(
        "create",
        "clusterrolebinding",
        f"{namespace}-proxy",
        f"--clusterrole={namespace}-proxy",
        f"--serviceaccount={namespace}:robot",
    )
    # The request reaches the member, which refuses it.
    member("get", "deploy", *robot, code=1)
    assert (
        f'User "system:serviceaccount:{namespace}:robot" cannot list resource "deployments"' in member.errors
    )
    assert member("auth", "can-i", "list", "deploy", *robot, code=1) == "no\n"
    kubectl("create", "rolebinding", "robot", "--clusterrole=view", f"--serviceaccount={namespace}:robot")
    assert member("get", "deploy", "-o", "name", *robot) == "deployment.apps/web\n"
    assert member("auth", "can-i", "list", "deploy", *robot) == "yes\n"
    member("get", "deploy", "--all-namespaces", *robot, code=1)
    member("get", "nodes", *robot, code=1)
    assert 'cannot list resource "nodes"' in member.errors
    kubectl("delete", "clusterrolebinding", f"{namespace}-proxy")
    kubectl("delete", "clusterrole", f"{namespace}-proxy")


def test_secret_of_a_member_gives_access_to_this_member_only(
    kubectl: Kubectl, home_directory: Path, tmp_path: Path
) -> None:
    kubectl.until_true(
        lambda: bool(kubectl("get", "cluster", "member1", "-o", "jsonpath={.spec.secretRef.name}")),
        lambda: kubectl("get", "cluster", "member1", "-o", "yaml"),
    )
    cluster = kubectl.json("cluster", "member1")
    spec = cast("dict[str, str]", cluster["spec"])
    reference = cast("dict[str, dict[str, str]]", cluster["spec"])["secretRef"]
    secret = kubectl.json("secret", reference["name"], "-n", reference["namespace"])
    data = {
        name: base64.b64decode(text).decode() for name, text in cast("dict[str, str]", secret["data"]).items()
    }
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "member",
                "cluster": {
                    "server": spec["apiEndpoint"],
                    "certificate-authority-data": base64.b64encode(data["caBundle"].encode()).decode(),
                },
            }
        ],
        "users": [{"name": "member", "user": {"token": data["token"]}}],
        "contexts": [{"name": "member", "context": {"cluster": "member", "user": "member"}}],
        "current-context": "member",
    }
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))
    member = Kubectl(path, home_directory)
    assert len(member("get", "nodes", "--no-headers").splitlines()) == 100
    assert member("auth", "can-i", "list", "nodes") == "yes\n"
    assert member("auth", "can-i", "create", "deployments") == "yes\n"
    # The token is not valid for the control plane or other members.
    root = spec["apiEndpoint"].partition("/apis/")[0]
    member("get", "clusters", "--server", root, code=1)
    member("get", "nodes", "--server", spec["apiEndpoint"].replace("member1", "member2"), code=1)
    assert "Forbidden" in member.errors
