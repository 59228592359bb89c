"""Autoscalers in members: their targets are marked, and templates follow the replicas that members decide."""

from typing import Final

from events.json_values import part
from tests.kubectl.commands import Kubectl
from tests.kubectl.manifests import DEPLOYMENT, POLICY

LABEL: Final = r"{.metadata.labels.resourcetemplate\.karmada\.io/retain-replicas}"
SCALER: Final = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 1
  maxReplicas: 10
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: scalers}
spec:
  resourceSelectors: [{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler}]
  placement: {clusterAffinity: {clusterNames: [member1, member2]}}
"""


def _until_labelled(kubectl: Kubectl, text: str) -> None:
    kubectl.until_true(
        lambda: kubectl("get", "deploy", "web", "-o", f"jsonpath={LABEL}") == text,
        lambda: kubectl("get", "deploy,hpa", "-o", "yaml"),
    )


def _until_replicas(kubectl: Kubectl, count: int) -> None:
    kubectl.until_true(
        lambda: part(kubectl.json("deploy", "web"), "spec").get("replicas") == count,
        lambda: kubectl("get", "deploy,rb", "-o", "yaml"),
    )


def test_target_of_a_propagated_autoscaler_is_marked_as_long_as_it_is_one(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=f"{DEPLOYMENT}---{POLICY}---{SCALER}")
    _until_labelled(kubectl, "true")
    kubectl.on("member1").until_true(
        lambda: "retain-replicas" in kubectl.on("member1")("get", "deploy", "web", "-o", "yaml"),
        lambda: kubectl("get", "rb", "-o", "yaml"),
    )
    kubectl("create", "deployment", "other", "--image=nginx")
    target = '{"spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"other"}}}'
    kubectl("patch", "hpa", "web", "--type=merge", "-p", target)
    _until_labelled(kubectl, "")
    kubectl.until_true(
        lambda: kubectl("get", "deploy", "other", "-o", f"jsonpath={LABEL}") == "true",
        lambda: kubectl("get", "deploy,hpa", "-o", "yaml"),
    )
    kubectl("label", "deploy", "web", "resourcetemplate.karmada.io/retain-replicas=true")
    kubectl("delete", "hpa", "web")
    kubectl.until_true(
        lambda: kubectl("get", "deploy", "other", "-o", f"jsonpath={LABEL}") == "",
        lambda: kubectl("get", "deploy,hpa", "-o", "yaml"),
    )
    _until_labelled(kubectl, "true")  # a user's label stays


def test_divided_template_follows_the_replicas_that_its_members_decide(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=f"{DEPLOYMENT}---{POLICY}---{SCALER}")
    _until_labelled(kubectl, "true")
    _until_replicas(kubectl, 3)
    member = kubectl.on("member1")
    counts = {
        name: part(kubectl.on(name).json("deploy", "web"), "spec")["replicas"]
        for name in ("member1", "member2")
    }
    assert sum(int(str(count)) for count in counts.values()) == 3
    member("scale", "deploy", "web", "--replicas=6")
    _until_replicas(kubectl, 6 + int(str(counts["member2"])))
    kubectl("scale", "deploy", "web", "--replicas=20")
    _until_replicas(kubectl, 6 + int(str(counts["member2"])))
    assert part(kubectl.on("member2").json("deploy", "web"), "spec")["replicas"] == counts["member2"]
    assert part(member.json("deploy", "web"), "spec")["replicas"] == 6
