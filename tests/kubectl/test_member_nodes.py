"""Nodes of members: cordoned and drained with kubectl, within the limits of PodDisruptionBudgets."""

import json
from collections.abc import Iterator

import pytest

from events.json_values import object_at, objects_at
from tests.kubectl.commands import Kubectl

NODE = "member3-control-plane"


@pytest.fixture
def member(kubectl: Kubectl) -> Iterator[Kubectl]:
    member = kubectl.on("member3")
    member.until_true(lambda: kubectl.namespace in member("get", "ns"), lambda: member("get", "ns"))
    yield member
    member("uncordon", NODE)


def _nodes_of_pods(member: Kubectl) -> dict[str, str]:
    """The nodes of the running pods, by name of the pod."""
    pods = objects_at(member.json("pods"), "items")
    return {
        str(object_at(pod, "metadata")["name"]): str(object_at(pod, "spec").get("nodeName", ""))
        for pod in pods
    }


def test_pods_of_a_drained_node_are_evicted_and_it_gets_no_new_ones(member: Kubectl) -> None:
    member("create", "deployment", "web", "--image=nginx", "--replicas=3")
    member("rollout", "status", "deploy", "web", "--timeout=60s")
    before = _nodes_of_pods(member)
    assert NODE in before.values()
    member("label", "node", NODE, "disk=ssd")
    member("drain", NODE, "--ignore-daemonsets", "--force", "--timeout=60s", "--pod-selector=app=web")
    assert "SchedulingDisabled" in member("get", "node", NODE)
    member("rollout", "status", "deploy", "web", "--timeout=60s")
    after = _nodes_of_pods(member)
    assert NODE not in after.values()
    assert {pod: node for pod, node in before.items() if node != NODE}.items() <= after.items()
    assert member("get", "node", "-l", "disk=ssd", "-o", "name") == f"node/{NODE}\n"
    member("label", "node", NODE, "disk-")
    member("delete", "node", NODE, code=1)


def test_running_pods_show_the_address_of_their_node_and_their_start(member: Kubectl) -> None:
    member("create", "deployment", "web", "--image=nginx")
    member("rollout", "status", "deploy", "web", "--timeout=60s")
    (pod,) = objects_at(member.json("pods"), "items")
    status = object_at(pod, "status")
    node = member.json("node", str(object_at(pod, "spec")["nodeName"]))
    (address,) = (
        item["address"] for item in objects_at(node, "status", "addresses") if item["type"] == "InternalIP"
    )
    assert status["hostIP"] == address
    assert status["startTime"] == object_at(pod, "metadata")["creationTimestamp"]
    conditions = {str(item["type"]): item["status"] for item in objects_at(status, "conditions")}
    assert conditions == dict.fromkeys(("Initialized", "Ready", "ContainersReady", "PodScheduled"), "True")


def test_drain_respects_budgets_of_the_member(member: Kubectl) -> None:
    member("create", "deployment", "web", "--image=nginx", "--replicas=1")
    member("create", "pdb", "web", "--selector=app=web", "--min-available=1")
    member("rollout", "status", "deploy", "web", "--timeout=60s")
    drain = ("drain", NODE, "--ignore-daemonsets", "--force", "--pod-selector=app=web")
    member(*drain, "--timeout=3s", code=1)
    assert "Cannot evict pod as it would violate the pod's disruption budget" in member.errors
    assert list(_nodes_of_pods(member).values()) == [NODE]
    member("delete", "pdb", "web")
    member(*drain, "--timeout=60s")
    assert NODE not in _nodes_of_pods(member).values()


def _unscheduled(member: Kubectl, reason: str) -> None:
    """Wait until a pod waits for a node, for this reason."""
    described = ("describe", "pods")
    member.until_true(lambda: reason in member(*described), lambda: member(*described))
    assert "FailedScheduling" in member(*described)
    assert member("get", "pods", "-o", "jsonpath={.items[*].status.conditions[*].reason}") == "Unschedulable"


def test_pods_wait_for_a_node_that_is_selected_and_tolerated(member: Kubectl) -> None:
    member("create", "deployment", "web", "--image=nginx")
    member("rollout", "status", "deploy", "web", "--timeout=60s")
    before = _nodes_of_pods(member)
    selecting = '{"spec":{"template":{"spec":{"nodeSelector":{"disk":"nvme"}}}}}'
    member("patch", "deployment", "web", "-p", selecting)
    message = "node(s) didn't match Pod's node affinity/selector"
    member.until_true(lambda: message in member("get", "events"), lambda: member("describe", "pods"))
    assert before.items() <= _nodes_of_pods(member).items()
    member("taint", "node", NODE, "team=blue:NoSchedule")
    member("label", "node", NODE, "disk=nvme")
    tainted = "node(s) had untolerated taint {team: blue}"
    member.until_true(lambda: tainted in member("get", "events"), lambda: member("describe", "pods"))
    tolerating = '{"spec":{"template":{"spec":{"tolerations":[{"key":"team","operator":"Exists"}]}}}}'
    member("patch", "deployment", "web", "-p", tolerating)
    member("rollout", "status", "deploy", "web", "--timeout=60s")
    member.until_true(
        lambda: list(_nodes_of_pods(member).values()) == [NODE], lambda: member("describe", "pods")
    )
    member("taint", "node", NODE, "team-")
    member("label", "node", NODE, "disk-")


def test_pods_wait_while_the_only_node_that_they_select_is_cordoned(member: Kubectl) -> None:
    member("cordon", NODE)
    member("create", "deployment", "web", "--image=nginx", "--replicas=0")
    selecting = {
        "spec": {"replicas": 1, "template": {"spec": {"nodeSelector": {"kubernetes.io/hostname": NODE}}}}
    }
    member("patch", "deployment", "web", "-p", json.dumps(selecting))
    others = "node(s) didn't match Pod's node affinity/selector"
    _unscheduled(member, f"1 node(s) were unschedulable, 99 {others}. no new claims to deallocate")
    member("uncordon", NODE)
    member("rollout", "status", "deploy", "web", "--timeout=60s")
    assert list(_nodes_of_pods(member).values()) == [NODE]


def test_definition_of_a_member_is_established_and_nodes_are_as_old_as_the_member(member: Kubectl) -> None:
    member("apply", "-f", "-", stdin=DEFINITION)
    member("wait", "--for=condition=Established", "crd/drills.example.com", "--timeout=60s")
    member("delete", "crd", "drills.example.com")
    created = member("get", "node", NODE, "-o", "jsonpath={.metadata.creationTimestamp}")
    assert not created.startswith("1970")


DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: drills.example.com}
spec:
  group: example.com
  names: {kind: Drill, plural: drills, singular: drill, listKind: DrillList}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
"""
