"""Autoscalers in members: their targets are marked, and templates follow the replicas that members decide."""

from typing import Final

from engine.works import autoscalers
from events.json_values import at, object_at
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
        lambda: at(kubectl.json("deploy", "web"), "spec", "replicas") == count,
        lambda: kubectl("get", "deploy,rb", "-o", "yaml"),
    )


def test_target_of_a_propagated_autoscaler_is_labelled_while_it_is_scaled(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=f"{DEPLOYMENT}---{POLICY}---{SCALER}")
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


def test_autoscaler_shows_the_replicas_of_its_targets_in_all_members(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=f"{DEPLOYMENT}---{POLICY}---{SCALER}")
    numbers = "jsonpath={.status.currentReplicas} {.status.desiredReplicas}"
    kubectl.until_true(
        lambda: kubectl("get", "hpa", "web", "-o", numbers) == "3 3",
        lambda: kubectl("get", "hpa,rb", "-o", "yaml"),
    )


def test_divided_template_follows_the_replicas_that_its_members_decide(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=f"{DEPLOYMENT}---{POLICY}---{SCALER}")
    _until_labelled(kubectl, "true")
    _until_replicas(kubectl, 3)
    member = kubectl.on("member1")

    def replicas() -> dict[str, object]:
        return {
            name: object_at(kubectl.on(name).json("deploy", "web"), "spec")["replicas"]
            for name in ("member1", "member2")
        }

    kubectl.until_true(lambda: sum(int(str(count)) for count in replicas().values()) == 3, lambda: "not 3")
    counts = replicas()
    member("scale", "deploy", "web", "--replicas=6")
    _until_replicas(kubectl, 6 + int(str(counts["member2"])))
    kubectl("scale", "deploy", "web", "--replicas=20")
    _until_replicas(kubectl, 6 + int(str(counts["member2"])))
    assert object_at(kubectl.on("member2").json("deploy", "web"), "spec")["replicas"] == counts["member2"]
    assert object_at(member.json("deploy", "web"), "spec")["replicas"] == 6


def _until_shown(member: Kubectl, row: str) -> None:
    member.until_true(
        lambda: row in " ".join(member("get", "hpa").split()),
        lambda: member("get", "hpa,deploy", "-o", "yaml"),
    )


def test_autoscaler_of_a_member_follows_the_load_in_the_annotation_of_its_target(kubectl: Kubectl) -> None:
    member = kubectl.on("member3")
    member.until_true(
        lambda: kubectl.namespace in member("get", "namespaces"), lambda: member("get", "namespaces")
    )
    member("create", "deployment", "api", "--image=nginx", "--replicas=1")
    member("set", "resources", "deploy", "api", "--requests=cpu=100m")
    member("autoscale", "deploy", "api", "--min=2", "--max=6", "--cpu-percent=50")
    _until_shown(member, "api Deployment/api cpu: <unknown>/50% 2 6 2")
    member("annotate", "deploy", "api", f"{autoscalers.LOAD}=200m")
    _until_shown(member, "api Deployment/api cpu: 50%/50% 2 6 4")
    member("rollout", "status", "deploy", "api", "--timeout=60s")
    assert "50m" in member("top", "pods", "--no-headers")
    assert "lastScaleTime" in member("get", "hpa", "api", "-o", "yaml")
    assert "ValidMetricFound" in member("describe", "hpa", "api")
    member("delete", "hpa", "api")
    member("scale", "deploy", "api", "--replicas=1")
    member.until(["NAME READY UP-TO-DATE AVAILABLE", "api 1/1 1 1"], "deploy", "api")


def test_divided_template_follows_the_load_in_its_members(kubectl: Kubectl) -> None:
    busy = DEPLOYMENT.replace(
        "metadata:\n", f'metadata:\n  annotations: {{{autoscalers.LOAD}: "hits=55"}}\n', 1
    )
    metric = "{type: Pods, pods: {metric: {name: hits}, target: {type: AverageValue, averageValue: 10}}}"
    scaler = SCALER.replace("  maxReplicas: 10\n", f"  maxReplicas: 10\n  metrics: [{metric}]\n", 1)
    kubectl("apply", "-f", "-", stdin=f"{busy}---{POLICY}---{scaler}")
    _until_replicas(kubectl, 12)
    kubectl("annotate", "deploy", "web", f"{autoscalers.LOAD}=hits=15", "--overwrite")
    _until_replicas(kubectl, 4)
