"""Scheduling priority with kubectl: preemption of a lower-priority workload and its later rebalance."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final, cast

import pytest

from engine.kubeapi.values.quantity import ceil_milli, nano_units
from tests.cli.servers import Shell
from tests.kubectl.commands import Kubectl
from tests.kubectl.members import until_idle

pytestmark = pytest.mark.slow

CLASSES: Final = """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: preemption-high}
value: 1000
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: preemption-low}
value: -5
"""
REBALANCER: Final = """
apiVersion: apps.karmada.io/v1alpha1
kind: WorkloadRebalancer
metadata: {name: preemption}
spec:
  workloads:
  - {apiVersion: apps/v1, kind: Deployment, name: low, namespace: NAMESPACE}
"""
MEMBERS: Final = ("member1", "member2")
CORES: Final = 16
"""Of each replica: two fill a node, so that a few hundred fill a member."""


@pytest.fixture(autouse=True)
def cleared(kubectl: Kubectl) -> Iterator[None]:
    """Delete the cluster-scoped objects after the test."""
    yield
    kubectl("delete", "priorityclass", "preemption-high", "preemption-low")
    kubectl("delete", "workloadrebalancer", "preemption", "--ignore-not-found")


def workload(name: str, replicas: int) -> str:
    """Return a Deployment with large replicas, and a policy with the priority class of its name."""
    return f"""
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      containers:
      - {{name: main, image: nginx, resources: {{requests: {{cpu: "{CORES}"}}}}}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {{name: {name}}}
spec:
  resourceSelectors:
  - {{apiVersion: apps/v1, kind: Deployment, name: {name}}}
  schedulePriority: {{priorityClassSource: KubePriorityClass, priorityClassName: preemption-{name}}}
  placement:
    clusterAffinity: {{clusterNames: [member1, member2]}}
    replicaScheduling:
      replicaSchedulingType: Divided
      replicaDivisionPreference: Weighted
      weightPreference: {{dynamicWeight: AvailableReplicas}}
"""


def free_replicas(kubectl: Kubectl, member: str) -> int:
    """Return how many more replicas a member has capacity for."""
    status = cast("dict[str, dict[str, dict[str, str]]]", kubectl.json("cluster", member)["status"])
    summary = status["resourceSummary"]
    total, used = (
        ceil_milli(nano_units(summary.get(part, {}).get("cpu", "0"))) for part in ("allocatable", "allocated")
    )
    return (total - used) // (CORES * 1000)


def placed(kubectl: Kubectl, name: str) -> dict[str, int]:
    spec = cast("dict[str, list[dict[str, object]]]", kubectl.json("rb", f"{name}-deployment")["spec"])
    return {str(target["name"]): cast("int", target["replicas"]) for target in spec.get("clusters", [])}


def test_preempted_workload_shrinks_and_spreads_again_after_rebalance(
    kubectl: Kubectl, served: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shell = Shell(served, capsys)
    until_idle(kubectl)
    free = {name: free_replicas(kubectl, name) for name in MEMBERS}
    kubectl("apply", "-f", "-", stdin=CLASSES)
    kubectl("apply", "-f", "-", stdin=workload("low", sum(free.values())))
    kubectl.until_true(lambda: placed(kubectl, "low") == free, lambda: str(placed(kubectl, "low")))
    kubectl.until_true(
        lambda: {name: free_replicas(kubectl, name) for name in MEMBERS} == dict.fromkeys(MEMBERS, 0),
        lambda: kubectl("describe", "clusters"),
    )

    kubectl("apply", "-f", "-", stdin=workload("high", free["member1"]))
    kubectl.until_true(
        lambda: placed(kubectl, "high") == {"member1": free["member1"]},
        lambda: kubectl("describe", "rb"),
    )
    kubectl.until_true(
        lambda: placed(kubectl, "low") == {"member2": free["member2"]}, lambda: kubectl("describe", "rb")
    )
    priority = "{.spec.schedulePriority}"
    shown = '{"preemptionPolicy":"PreemptLowerPriority","priority":1000}'
    assert kubectl("get", "rb", "high-deployment", "-o", f"jsonpath={priority}") == shown
    high = f"{kubectl.namespace}/high-deployment"
    assert f"Preempted by {high} in cluster member1" in kubectl("describe", "deploy", "low")
    assert "low-deployment in member1" in kubectl("describe", "rb", "high-deployment")
    explained = shell("explain", "deploy", "high", "--namespace", kubectl.namespace)
    assert (
        f"Preempts:  {kubectl.namespace}/low-deployment in member1 ({free['member1']} replicas" in explained
    )
    explanation = json.loads(shell("explain", "deploy", "low", "--namespace", kubectl.namespace, "--json"))
    assert explanation["preempted"]["member1"]["by"] == high
    assert (explanation["priority"]["value"], explanation["priority"]["className"]) == (-5, "preemption-low")

    kubectl("delete", "deploy", "high")
    kubectl.until_true(
        lambda: free_replicas(kubectl, "member1") == free["member1"], lambda: kubectl("get", "rb")
    )
    kubectl("scale", "deploy", "low", f"--replicas={sum(free.values()) - 2}")
    kubectl("apply", "-f", "-", stdin=REBALANCER.replace("NAMESPACE", kubectl.namespace))
    kubectl.until_true(lambda: "member1" in placed(kubectl, "low"), lambda: kubectl("describe", "rb"))
    assert sum(placed(kubectl, "low").values()) == sum(free.values()) - 2
