"""PodDisruptionBudgets: their status in each member follows the pods, and the control plane adds them up."""

from typing import Final

from tests.kubectl.commands import Kubectl
from tests.kubectl.manifests import BOTH

BUDGET: Final = """
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec:
  minAvailable: 50%
  selector: {matchLabels: {app: web}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: budgets}
spec:
  resourceSelectors: [{apiVersion: policy/v1, kind: PodDisruptionBudget}]
  placement: {clusterAffinity: {clusterNames: [member1, member2]}}
"""
_NUMBERS: Final = (
    "jsonpath={.status.currentHealthy} {.status.desiredHealthy} "
    "{.status.expectedPods} {.status.disruptionsAllowed}"
)


def until(kubectl: Kubectl, numbers: str) -> None:
    """Wait until the status of the budget has these numbers: healthy, desired and expected pods, disruptions."""
    kubectl.until_true(
        lambda: kubectl("get", "pdb", "web", "-o", _NUMBERS, code=None) == numbers,
        lambda: kubectl("get", "pdb", "web", "-o", "yaml", code=None),
    )


def test_budget_follows_the_pods_of_its_members(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=f"{BUDGET}---{BOTH}")
    until(kubectl.on("member1"), "2 1 2 1")
    until(kubectl.on("member2"), "1 1 1 0")
    until(kubectl, "3 2 3 1")
    assert kubectl(
        "get", "rb", "web-poddisruptionbudget", "-o", "jsonpath={.status.aggregatedStatus[*].health}"
    ) == ("Healthy Healthy")
    kubectl("scale", "deploy", "web", "--replicas=6")
    until(kubectl, "6 4 6 2")
    kubectl("delete", "deploy", "web")
    until(kubectl.on("member1"), "0 0 0 0")


def test_budget_written_into_a_member_follows_its_pods(kubectl: Kubectl) -> None:
    member = kubectl.on("member1")
    member("create", "deployment", "own", "--image=nginx", "--replicas=3")
    member("create", "pdb", "web", "--selector=app=own", "--max-unavailable=1")
    until(member, "3 2 3 1")
    member("scale", "deploy", "own", "--replicas=1")
    until(member, "1 0 1 1")
    member("delete", "pdb/web", "deploy/own")
