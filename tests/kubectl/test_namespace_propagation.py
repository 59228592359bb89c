"""Namespaces of the control plane in members, and their Works."""

from typing import Final

from engine.domain import marks
from tests.kubectl.commands import Kubectl
from tests.kubectl.manifests import BOTH

MEMBERS: Final = ("member1", "member2", "member3")
SKIPPED: Final = """
apiVersion: v1
kind: Namespace
metadata:
  name: {}
  labels: {{namespace.karmada.io/skip-auto-propagation: "true"}}
"""


def test_namespace_exists_in_every_member_until_it_is_deleted(kubectl: Kubectl) -> None:
    name = f"{kubectl.namespace[:50]}-2"
    kubectl("create", "namespace", name)
    kubectl("label", "namespace", name, "team=blue")
    label = ("get", "namespace", name, "-o", "jsonpath={.metadata.labels.team}")
    for member in MEMBERS:
        client = kubectl.on(member)
        client.until_true(lambda: client(*label, code=None) == "blue", lambda: client(*label, code=None))  # noqa: B023
    annotations = kubectl.on("member1").json("namespace", name)["metadata"]
    assert isinstance(annotations, dict)
    work_name = marks.work_name("Namespace", "", name)
    assert annotations["annotations"]["work.karmada.io/name"] == work_name
    assert annotations["labels"]["karmada.io/managed"] == "true"
    work = ("get", "work", work_name, "-n", "karmada-es-member1")
    assert kubectl(*work, "-o", "jsonpath={.metadata.ownerReferences[0].name}") == name
    kubectl("label", "namespace", name, "team=red", "--overwrite")
    kubectl.on("member1").until_true(lambda: kubectl.on("member1")(*label) == "red", lambda: "not red")

    kubectl("apply", "-n", name, "-f", "-", stdin=BOTH)
    kubectl.until(["NAME SCHEDULED FULLYAPPLIED", "web-deployment True True"], "rb", "-n", name)
    kubectl.on("member1")("create", "deployment", "own", "--image=nginx", "-n", name)
    kubectl("delete", "namespace", name)
    for member in MEMBERS:
        client = kubectl.on(member)
        client.until_true(lambda: client(*label, code=None) == "", lambda: client(*label))  # noqa: B023
    kubectl(*work, code=1)
    kubectl.on("member1").until([], "deployment", "-n", name)


OVERRIDE: Final = """
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterOverridePolicy
metadata: {{name: {0}}}
spec:
  resourceSelectors: [{{apiVersion: v1, kind: Namespace, name: {0}}}]
  overrideRules:
  - targetCluster: {{clusterNames: [member1]}}
    overriders: {{labelsOverrider: [{{operator: add, value: {{tier: gold}}}}]}}
"""


def test_cluster_override_policy_changes_a_namespace_in_its_clusters(kubectl: Kubectl) -> None:
    name = kubectl.namespace
    tier = ("get", "namespace", name, "-o", "jsonpath={.metadata.labels.tier}")
    member1 = kubectl.on("member1")
    kubectl("apply", "-f", "-", stdin=OVERRIDE.format(name))
    try:
        member1.until_true(lambda: member1(*tier) == "gold", lambda: member1(*tier))
        assert kubectl.on("member2")(*tier) == ""
        assert kubectl(*tier) == ""
    finally:
        kubectl("delete", "clusteroverridepolicy", name)
    member1.until_true(lambda: member1(*tier) == "", lambda: member1(*tier))


def test_skipped_and_reserved_namespaces_are_not_propagated(kubectl: Kubectl) -> None:
    name = f"{kubectl.namespace[:50]}-2"
    kubectl("apply", "-f", "-", stdin=SKIPPED.format(name))
    kubectl("create", "namespace", "kube-private")
    member = kubectl.on("member1")
    assert f"namespace/{kubectl.namespace}\n" in member("get", "namespaces", "-o", "name")
    for namespace in (name, "kube-private"):
        member("get", "namespace", namespace, code=1)
        kubectl("delete", "namespace", namespace, "--wait=false")


def test_namespace_with_a_name_like_those_of_karmada_is_propagated(kubectl: Kubectl) -> None:
    name = f"karmada-{kubectl.namespace[:40]}"
    kubectl("create", "namespace", name)
    member = kubectl.on("member1")
    member.until_true(lambda: name in member("get", "namespaces", "-o", "name"), lambda: "not there")
    kubectl("delete", "namespace", name, "--wait=false")
    member.until_true(lambda: name not in member("get", "namespaces", "-o", "name"), lambda: "still there")


def test_namespace_reaches_a_cluster_that_joins_later(kubectl: Kubectl) -> None:
    cluster = "apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: late}\nspec: {syncMode: Pull}\n"
    kubectl("apply", "-f", "-", stdin=cluster)
    work = marks.work_name("Namespace", "", kubectl.namespace)
    assert (
        kubectl("get", "work", work, "-n", "karmada-es-late", "-o", "name")
        == f"work.work.karmada.io/{work}\n"
    )
    kubectl("delete", "cluster", "late")
