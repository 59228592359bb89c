"""Claims with kubectl: lazy policies mark templates at once; policies wait for PriorityClasses and overrides."""

from typing import Any, cast

from tests.kubectl.commands import Kubectl
from tests.kubectl.manifests import BOTH, DEPLOYMENT

BETTER = """
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata:
  name: better
spec:
  priority: 5
  preemption: Always
  resourceSelectors:
  - {apiVersion: apps/v1, kind: Deployment, name: web}
  placement:
    clusterAffinity: {clusterNames: [member3]}
"""
LAZY = f"{BETTER}  activationPreference: Lazy\n"
URGENT = f"{BETTER}  schedulePriority: {{priorityClassSource: KubePriorityClass, priorityClassName: claims-urgent}}\n"
OVERRIDE = """
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: labelled}
spec:
  overrideRules:
  - overriders:
      labelsOverrider: [{operator: add, value: {team: a}}]
"""
CLASS = """
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: claims-urgent}
value: 1000
"""
POLICY = "propagationpolicy.karmada.io/name"


def policy_of(kubectl: Kubectl, thing: str, name: str) -> str:
    """The policy that the marks of an object name; empty if it has none."""
    annotations = cast("dict[str, Any]", kubectl.json(thing, name)["metadata"]).get("annotations", {})
    return annotations.get(POLICY, "")


def clusters_of(kubectl: Kubectl) -> list[str]:
    targets = cast("dict[str, Any]", kubectl.json("rb", "web-deployment")["spec"])["clusters"]
    return [target["name"] for target in targets]


def events_of_template(kubectl: Kubectl) -> str:
    return " ".join(kubectl("events", "--for", "deployment/web").split())


def test_lazy_preemption_marks_the_template_and_moves_it_with_its_next_write(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=BOTH)
    kubectl.until_true(
        lambda: policy_of(kubectl, "rb", "web-deployment") == "web", lambda: kubectl("get", "rb")
    )
    before = clusters_of(kubectl)

    kubectl("apply", "-f", "-", stdin=LAZY)
    kubectl.until_true(
        lambda: policy_of(kubectl, "deploy", "web") == "better", lambda: kubectl("describe", "deploy", "web")
    )
    assert policy_of(kubectl, "rb", "web-deployment") == "web"
    assert clusters_of(kubectl) == before
    namespace = kubectl.namespace
    text = (
        f"Propagation policy({namespace}/better) preempted propagation policy({namespace}/web) successfully"
    )
    assert f"PreemptPolicySucceed Deployment/web {text}" in events_of_template(kubectl)

    kubectl("annotate", "deploy", "web", "example.com/changed=yes")
    kubectl.until_true(
        lambda: clusters_of(kubectl) == ["member3"], lambda: kubectl("get", "rb", "-o", "yaml")
    )
    assert policy_of(kubectl, "rb", "web-deployment") == "better"


def test_lazy_policy_keeps_an_existing_template_from_other_policies_until_its_next_write(
    kubectl: Kubectl,
) -> None:
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    kubectl("apply", "-f", "-", stdin=LAZY.replace("preemption: Always", "preemption: Never"))
    kubectl.until_true(
        lambda: policy_of(kubectl, "deploy", "web") == "better", lambda: kubectl("describe", "deploy", "web")
    )
    kubectl("apply", "-f", "-", stdin=BOTH)
    kubectl("annotate", "deploy", "web", "example.com/changed=yes")
    kubectl.until_true(
        lambda: "web-deployment" in kubectl("get", "rb", "-o", "name") and bool(clusters_of(kubectl)),
        lambda: kubectl("get", "rb", "-o", "yaml"),
    )
    assert clusters_of(kubectl) == ["member3"]


def test_policy_is_applied_when_its_dependent_override_is_created(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=f"{DEPLOYMENT}---{BETTER}  dependentOverrides: [labelled]\n")
    text = f"Apply policy({kubectl.namespace}/better) failed: OverridePolicy labelled does not exist"
    kubectl.until_true(lambda: text in events_of_template(kubectl), lambda: events_of_template(kubectl))
    assert kubectl("get", "rb", "-o", "name") == ""
    kubectl("apply", "-f", "-", stdin=OVERRIDE)
    kubectl.until_true(
        lambda: "web-deployment" in kubectl("get", "rb", "-o", "name") and bool(clusters_of(kubectl)),
        lambda: kubectl("get", "rb", "-o", "yaml"),
    )


def test_policy_without_its_priority_class_is_applied_when_the_class_is_created(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=f"{DEPLOYMENT}---{URGENT}")
    text = f"Apply policy({kubectl.namespace}/better) failed: PriorityClass claims-urgent does not exist"
    kubectl.until_true(
        lambda: f"ApplyPolicyFailed Deployment/web {text}" in events_of_template(kubectl),
        lambda: events_of_template(kubectl),
    )
    assert kubectl("get", "rb", "-o", "name") == ""
    kubectl("apply", "-f", "-", stdin=CLASS)
    try:
        kubectl.until_true(
            lambda: (
                "web-deployment" in kubectl("get", "rb", "-o", "name") and clusters_of(kubectl) == ["member3"]
            ),
            lambda: kubectl("get", "rb", "-o", "yaml"),
        )
        priority = cast("dict[str, Any]", kubectl.json("rb", "web-deployment")["spec"])["schedulePriority"]
        assert priority["priority"] == 1000
    finally:
        kubectl("delete", "priorityclass", "claims-urgent")


def test_client_is_warned_when_it_relabels_a_template_so_that_its_policy_does_not_select_it(
    kubectl: Kubectl,
) -> None:
    labelled = BOTH.replace(
        "name: web\n  placement", "labelSelector: {matchLabels: {kind: shop}}\n  placement"
    )
    kubectl("apply", "-f", "-", stdin=labelled)
    kubectl("label", "deployment", "web", "kind=shop")
    kubectl.until_true(lambda: bool(policy_of(kubectl, "deployment", "web")), lambda: kubectl("get", "pp"))
    kubectl("label", "deployment", "web", "tier=front")
    assert "Warning" not in kubectl.errors
    kubectl("label", "deployment", "web", "kind-")
    assert (
        f"Warning: PropagationPolicy {kubectl.namespace}/web no longer selects this Deployment"
        in kubectl.errors
    )
    kubectl("scale", "deployment", "web", "--replicas=4")
    assert "Warning" not in kubectl.errors
