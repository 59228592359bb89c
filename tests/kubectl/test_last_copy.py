"""A workload whose policy was deleted: its binding, and what a taint of its only cluster does to it."""

import json
from collections.abc import Iterator
from typing import Final, cast

import pytest

from tests.kubectl.commands import Kubectl
from tests.kubectl.manifests import DEPLOYMENT

POLICY: Final = """
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  placement: {clusterAffinity: {clusterNames: [member3]}}
"""
TAINT: Final = {"key": "brief", "effect": "NoExecute"}


@pytest.fixture
def untainted(kubectl: Kubectl) -> Iterator[Kubectl]:
    """Remove all taints of member3 after the test."""
    yield kubectl
    taint(kubectl)


def taint(kubectl: Kubectl, *taints: dict[str, str]) -> None:
    kubectl("patch", "cluster", "member3", "--type=merge", "-p", json.dumps({"spec": {"taints": taints}}))


def scheduled(kubectl: Kubectl) -> str:
    path = 'jsonpath={.status.conditions[?(@.type=="Scheduled")].reason}'
    return kubectl("get", "rb", "web-deployment", "-o", path)


def spec_of(kubectl: Kubectl) -> dict[str, object]:
    return cast("dict[str, object]", kubectl.json("rb", "web-deployment")["spec"])


def test_workload_without_policy_survives_a_short_taint(untainted: Kubectl) -> None:
    kubectl = untainted
    kubectl("apply", "-f", "-", stdin=f"{DEPLOYMENT}---{POLICY}")
    ready = ("get", "deploy", "web", "-o", "jsonpath={.status.readyReplicas}")
    member3 = kubectl.on("member3")
    kubectl.until_true(
        lambda: member3(*ready, code=None) not in {"", "0"}, lambda: member3(*ready, code=None)
    )
    placement = spec_of(kubectl)["placement"]

    kubectl("delete", "propagationpolicy", "web")
    kubectl.until_true(
        lambda: (
            "propagationpolicy.karmada.io/permanent-id"
            not in str(kubectl.json("rb", "web-deployment")["metadata"])
        ),
        lambda: kubectl("describe", "rb"),
    )
    assert spec_of(kubectl)["placement"] == placement, "as in Karmada, the binding keeps it"

    taint(kubectl, TAINT)
    kubectl.until_true(lambda: scheduled(kubectl) == "Unclaimed", lambda: kubectl("describe", "rb"))
    described = kubectl("describe", "rb", "web-deployment")
    assert "ScheduleBindingFailed" in described
    assert "evicted from member3 without a replacement" in described
    assert member3(*ready) not in {"", "0"}

    taint(kubectl)
    kubectl.until_true(lambda: scheduled(kubectl) == "Success", lambda: kubectl("describe", "rb"))
    assert [target["name"] for target in cast("list[dict[str, object]]", spec_of(kubectl)["clusters"])] == [
        "member3"
    ]
    kubectl.until_true(
        lambda: "gracefulEvictionTasks" not in spec_of(kubectl), lambda: kubectl("describe", "rb")
    )
