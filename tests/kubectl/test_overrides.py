"""Override policies with kubectl: objects of members, works, conditions of bindings, and events."""

import json
from typing import cast

from tests.kubectl.commands import Json, Kubectl
from tests.kubectl.manifests import BOTH

IMAGE = "jsonpath={.spec.template.spec.containers[*].image}"
POLICY = """
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata:
  name: web
spec:
  resourceSelectors:
  - apiVersion: apps/v1
    kind: Deployment
    name: web
  overrideRules:
  - targetCluster:
      clusterNames: [member1]
    overriders:
      imageOverrider:
      - component: Registry
        operator: add
        value: mirror.example
      annotationsOverrider:
      - operator: add
        value: {site: edge}
"""
EVERYWHERE = """
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterOverridePolicy
metadata:
  name: NAME
spec:
  resourceSelectors:
  - apiVersion: apps/v1
    kind: Deployment
    name: web
    namespace: NAME
  overrideRules:
  - overriders:
      imageOverrider:
      - {component: Tag, operator: replace, value: "1.27"}
"""
BROKEN = """
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata:
  name: broken
spec:
  overrideRules:
  - targetCluster:
      clusterNames: [member2]
    overriders:
      plaintext:
      - {path: /spec/nowhere/deeper, operator: replace, value: 1}
"""


def images(kubectl: Kubectl, member: str) -> str:
    return kubectl.on(member)("get", "deploy", "web", "-o", IMAGE, code=None)


def until_images(kubectl: Kubectl, member: str, expected: str) -> None:
    kubectl.until_true(lambda: images(kubectl, member) == expected, lambda: images(kubectl, member))


def work(kubectl: Kubectl, member: str) -> Json:
    """Return the work of the test's Deployment in a member."""
    listed = json.loads(kubectl("get", "works", "-n", f"karmada-es-{member}", "-o", "json"))["items"]
    name = "resourcebinding.karmada.io/namespace"
    (work,) = [
        candidate
        for candidate in listed
        if candidate["metadata"]["annotations"].get(name) == kubectl.namespace
    ]
    return cast("Json", work)


def deployment_of(work: Json) -> Json:
    (manifest,) = cast("dict[str, dict[str, list[Json]]]", work["spec"])["workload"]["manifests"]
    return manifest


def test_members_run_the_overridden_deployment(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=BOTH)
    until_images(kubectl, "member1", "nginx busybox")
    kubectl("apply", "-f", "-", stdin=POLICY)
    until_images(kubectl, "member1", "mirror.example/nginx mirror.example/busybox")
    member1 = kubectl.on("member1")
    assert member1("get", "deploy", "web", "-o", "jsonpath={.metadata.annotations.site}") == "edge"
    assert "mirror.example/nginx" in member1(
        "get", "pods", "-o", "jsonpath={.items[*].spec.containers[*].image}"
    )
    until_images(kubectl, "member2", "nginx busybox")
    assert kubectl("get", "deploy", "web", "-o", IMAGE) == "nginx busybox"

    kubectl("apply", "-f", "-", stdin=EVERYWHERE.replace("NAME", kubectl.namespace))
    until_images(kubectl, "member1", "mirror.example/nginx:1.27 mirror.example/busybox:1.27")
    until_images(kubectl, "member2", "nginx:1.27 busybox:1.27")
    shown = deployment_of(work(kubectl, "member1"))
    assert "mirror.example/nginx:1.27" in json.dumps(shown)
    assert "mirror.example" not in json.dumps(deployment_of(work(kubectl, "member2")))
    marks = cast("dict[str, dict[str, str]]", work(kubectl, "member1")["metadata"])["annotations"]
    applied = {
        name: json.loads(marks[f"policy.karmada.io/applied-{name}"])
        for name in ("overrides", "cluster-overrides")
    }
    assert [override["policyName"] for override in applied["overrides"]] == ["web"]
    assert [override["policyName"] for override in applied["cluster-overrides"]] == [kubectl.namespace]

    described = kubectl("describe", "deploy", "web")
    assert "ApplyOverridePolicySucceed" in described
    assert f"Apply override policy({kubectl.namespace}/web) for cluster(member1) succeed." in described

    kubectl("delete", "op", "web")
    kubectl("delete", "cop", kubectl.namespace)
    until_images(kubectl, "member1", "nginx busybox")
    until_images(kubectl, "member2", "nginx busybox")


def test_broken_override_is_reported_and_other_clusters_are_updated(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=BROKEN)
    kubectl("apply", "-f", "-", stdin=BOTH)
    until_images(kubectl, "member1", "nginx busybox")
    rb = ("rb", "web-deployment")

    def message() -> str:
        by_cluster = '{.status.aggregatedStatus[?(@.clusterName=="member2")].appliedMessage}'
        return kubectl("get", *rb, "-o", f"jsonpath={by_cluster}", code=None)

    kubectl.until_true(lambda: bool(message()), message)
    assert message().startswith(
        f"Failed to apply all manifests (0/1): OverridePolicy {kubectl.namespace}/broken: plaintext: operation 0: "
    )
    assert images(kubectl, "member2") == ""
    applied = '{.status.aggregatedStatus[?(@.clusterName=="member2")].applied}'
    assert kubectl("get", *rb, "-o", f"jsonpath={applied}") == "false"
    fully = '{.status.conditions[?(@.type=="FullyApplied")].status}'
    assert kubectl("get", *rb, "-o", f"jsonpath={fully}") == "False"
    condition, _dispatching = cast("dict[str, list[Json]]", work(kubectl, "member2")["status"])["conditions"]
    assert (condition["type"], condition["status"]) == ("Applied", "False")
    assert "there is no" in str(condition["message"])
    described = kubectl("describe", *rb)
    assert "ApplyOverridePolicyFailed" in described

    kubectl("delete", "op", "broken")
    until_images(kubectl, "member2", "nginx busybox")
    kubectl.until_true(
        lambda: kubectl("get", *rb, "-o", f"jsonpath={fully}") == "True", lambda: kubectl("describe", *rb)
    )
