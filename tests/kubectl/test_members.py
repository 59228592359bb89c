"""Each member's own API, by its context and behind the proxy."""

import json

from tests.kubectl.commands import Kubectl
from tests.kubectl.manifests import BOTH

MEMBER = "/apis/cluster.karmada.io/v1alpha1/clusters/member1/proxy"


def test_what_was_propagated_runs_in_the_members(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=BOTH)
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


def test_nodes_and_namespaces_of_a_member(kubectl: Kubectl) -> None:
    member = kubectl.on("member1")
    assert len(member("get", "nodes", "--no-headers").splitlines()) == 100
    assert "namespace/kube-system" in member("get", "ns", "-o", "name").split()


def test_a_member_is_read_only(kubectl: Kubectl) -> None:
    kubectl.on("member1")("create", "configmap", "settings", code=1)


def test_the_proxy_answers_as_the_member(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=BOTH)
    path = f"{MEMBER}/apis/apps/v1/namespaces/{kubectl.namespace}/deployments"
    kubectl.until_true(
        lambda: bool(json.loads(kubectl("get", "--raw", path))["items"]),
        lambda: kubectl("get", "--raw", path),
    )
    assert "v1" in json.loads(kubectl("get", "--raw", f"{MEMBER}/api"))["versions"]
    kubectl("get", "--raw", MEMBER.replace("member1", "nobody") + "/api", code=1)
