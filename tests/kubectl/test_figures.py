"""ReplicaSets and nodes of members, ``top``, and the limits of ``logs`` and ``exec``."""

from pathlib import Path

import pytest

from tests.kubectl.commands import Kubectl
from tests.kubectl.control_planes import on_sqlite
from tests.kubectl.manifests import BOTH

LARGE = BOTH.replace(
    "image: nginx\n", "image: nginx\n        resources: {requests: {cpu: 250m, memory: 64Mi}}\n"
)


def _ready(kubectl: Kubectl) -> Kubectl:
    """Propagate the Deployment; return the member that runs two of its pods."""
    kubectl("apply", "-f", "-", stdin=LARGE)
    kubectl.until(["NAME READY UP-TO-DATE AVAILABLE", "web 3/3 3 3"], "deploy")
    return kubectl.on("member1")


def test_deployment_owns_its_pods_through_a_replica_set(kubectl: Kubectl) -> None:
    member = _ready(kubectl)
    (name,) = member("get", "rs", "-o", "jsonpath={.items[*].metadata.name}").split()
    assert member.table("rs") == ["NAME DESIRED CURRENT READY", f"{name} 2 2 2"]
    owners = member("get", "pods", "-o", "jsonpath={.items[*].metadata.ownerReferences[0].name}")
    assert owners.split() == [name, name]
    hashed = member("get", "rs", name, "-o", "jsonpath={.spec.selector.matchLabels.pod-template-hash}")
    assert len(member("get", "pods", "-l", f"pod-template-hash={hashed}", "-o", "name").splitlines()) == 2
    described = member("describe", "deployment", "web")
    assert f"NewReplicaSet:   {name} (2/2 replicas created)" in described


def test_top_shows_pods_of_one_member_and_of_all_members(kubectl: Kubectl) -> None:
    member = _ready(kubectl)
    lines = [line.split() for line in member("top", "pods", "--no-headers").splitlines()]
    assert [line[1:] for line in lines] == [["250m", "64Mi"]] * 2
    everywhere = [line.split() for line in kubectl("top", "pods", "--no-headers").splitlines()]
    assert [line[1:] for line in everywhere] == [["250m", "64Mi"]] * 3
    path = f"/apis/metrics.k8s.io/v1beta1/namespaces/{kubectl.namespace}/pods"
    assert '"resource.karmada.io/cluster":"member2"' in kubectl("get", "--raw", path)
    nodes = member("top", "nodes", "--no-headers").splitlines()
    assert len(nodes) == 100
    assert nodes[0].split()[0] == "member1-control-plane"
    for client in (member, kubectl):
        client("top", "pod", "absent", code=1)
        assert 'Error from server (NotFound): pods "absent" not found' in client.errors
    member("run", "alone", "--image=nginx")
    member("wait", "--for=jsonpath={.status.phase}=Running", "pod/alone", "--timeout=60s")
    assert member("top", "pod", "alone", "--no-headers").split() == ["alone", "0m", "0Mi"]
    assert kubectl("top", "pod", "alone", "--no-headers").split() == ["alone", "0m", "0Mi"]
    kubectl("create", "--raw", path, "-f", "-", stdin="{}", code=1)
    assert "MethodNotAllowed" in kubectl.errors or "does not allow this method" in kubectl.errors


@pytest.mark.slow
def test_top_leaves_out_clusters_that_have_left(tmp_path: Path) -> None:
    with on_sqlite(tmp_path) as control_plane:
        kubectl = control_plane.kubectl(tmp_path)
        assert "member3-node-1 " in kubectl("top", "nodes")
        kubectl("delete", "cluster", "member3", "--timeout=60s")
        nodes = kubectl("top", "nodes")
        assert "member2-node-1 " in nodes
        assert "member3-" not in nodes


def test_nodes_show_their_capacity(kubectl: Kubectl) -> None:
    capacity = kubectl.on("member1")("get", "node", "member1-node-1", "-o", "jsonpath={.status.capacity}")
    assert capacity == '{"cpu":"32","memory":"128Gi","pods":"110"}'
    assert "cpu:     32" in " ".join(kubectl.on("member1")("describe", "node", "member1-node-1").splitlines())


def test_logs_and_connections_are_refused_with_a_reason(kubectl: Kubectl) -> None:
    member = _ready(kubectl)
    pod = member("get", "pods", "-o", "name").split()[0]
    assert "is simulated in member1" in member("logs", pod)
    assert "is simulated in member1" in member("logs", pod, "-c", "sidecar")
    member("logs", pod, "-c", "absent", code=1)
    assert f"container absent is not valid for pod {pod.removeprefix('pod/')}" in member.errors
    member("exec", pod, "--", "ls", code=1)
    assert "no command can run in it" in member.errors or "unable to upgrade" in member.errors
    member("attach", pod, code=1)
    assert "is simulated in member1" in member.errors
    member("port-forward", pod, ":80", code=1)
    assert "is simulated in member1" in member.errors
    kubectl("run", "here", "--image=nginx")
    kubectl("attach", "here", code=1)
    assert "runs in member clusters, not here" in kubectl.errors
    kubectl("logs", "here", code=1)
    assert "runs in member clusters, not here" in kubectl.errors
