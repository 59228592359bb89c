"""Statuses that others than the engine write: kept as they are, beside what the engine says itself."""

import json
from typing import cast

from tests.kubectl.commands import Kubectl
from tests.kubectl.manifests import BOTH

DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gauges.example.io}
spec:
  group: example.io
  names: {plural: gauges, kind: Gauge}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
"""
GAUGE = """
apiVersion: example.io/v1
kind: Gauge
metadata: {name: pressure}
spec: {unit: bar}
"""
MEMBER = """
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: %s}
spec: {syncMode: Pull}
"""


def _status(kubectl: Kubectl, kind: str, name: str) -> dict[str, object]:
    return cast("dict[str, object]", kubectl.json(kind, name)["status"])


def test_a_status_is_no_change_of_the_object(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=DEFINITION)
    kubectl.until_true(lambda: "gauges" in kubectl("api-resources", "-o", "name"), lambda: "no gauges")
    kubectl("apply", "-f", "-", given=GAUGE)
    before = cast("dict[str, str]", kubectl.json("gauges", "pressure")["metadata"])
    patch = '{"status":{"bars":3,"conditions":[{"type":"Ready","status":"True"}]},"spec":{"unit":"psi"}}'
    kubectl("patch", "gauges", "pressure", "--subresource=status", "--type=merge", "-p", patch)
    shown = kubectl.json("gauges", "pressure")
    assert shown["status"] == {"bars": 3, "conditions": [{"type": "Ready", "status": "True"}]}
    assert shown["spec"] == {"unit": "bar"}
    after = cast("dict[str, str]", shown["metadata"])
    assert after["generation"] == before["generation"]
    assert int(after["resourceVersion"]) > int(before["resourceVersion"])
    waited = kubectl("wait", "--for=condition=Ready", "gauges/pressure", "--timeout=60s")
    assert waited == "gauge.example.io/pressure condition met\n"
    # A change of the object leaves its status; a new object begins without one.
    kubectl(
        "patch", "gauges", "pressure", "--type=merge", "-p", '{"spec":{"unit":"psi"},"status":{"bars":9}}'
    )
    assert _status(kubectl, "gauges", "pressure")["bars"] == 3
    kubectl(
        "replace",
        "--subresource=status",
        "-f",
        "-",
        given=json.dumps({**shown, "status": {"bars": 4}}),
        code=1,
    )
    assert "Operation cannot be fulfilled" in kubectl.errors
    fresh = {**kubectl.json("gauges", "pressure"), "status": {"bars": 4}}
    kubectl("replace", "--subresource=status", "-f", "-", given=json.dumps(fresh))
    assert _status(kubectl, "gauges", "pressure") == {"bars": 4}
    kubectl("delete", "gauges", "pressure")
    kubectl("apply", "-f", "-", given=GAUGE)
    assert "status" not in kubectl.json("gauges", "pressure")
    kubectl("delete", "crd", "gauges.example.io")


def test_what_members_report_is_shown_over_it(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=BOTH)
    kubectl.until(["NAME READY UP-TO-DATE AVAILABLE", "web 3/3 3 3"], "deploy")
    patch = '{"status":{"readyReplicas":99,"conditions":[{"type":"Audited","status":"True"}]}}'
    kubectl("patch", "deploy", "web", "--subresource=status", "-p", patch)
    status = _status(kubectl, "deploy", "web")
    assert status["readyReplicas"] == 3
    assert [each["type"] for each in cast("list[dict[str, str]]", status["conditions"])] == ["Audited"]


def test_a_dry_run_of_a_status_changes_nothing(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=nginx")
    words = ("patch", "deploy", "web", "--subresource=status", "--dry-run=server", "-o", "json")
    shown = json.loads(kubectl(*words, "-p", '{"status":{"observedGeneration":7}}'))
    assert shown["status"]["observedGeneration"] == 7
    assert "status" not in kubectl.json("deploy", "web")


def test_an_agent_says_how_its_cluster_is(kubectl: Kubectl) -> None:
    name = "told"
    kubectl("apply", "-f", "-", given=MEMBER % name)
    status = {
        "kubernetesVersion": "v1.30.1",
        "nodeSummary": {"totalNum": 3, "readyNum": 2},
        "resourceSummary": {"allocatable": {"cpu": "8", "pods": "30"}, "allocated": {"cpu": "500m"}},
        "apiEnablements": [
            {"groupVersion": "apps/v1", "resources": [{"name": "deployments", "kind": "Deployment"}]}
        ],
        "conditions": [{"type": "Ready", "status": "True", "reason": "ClusterReady", "message": "well"}],
    }
    before = cast("dict[str, object]", kubectl.json("cluster", name)["metadata"])
    words = ("patch", "cluster", name, "--subresource=status", "--type=merge", "-p")
    kubectl(*words, json.dumps({"status": status}))
    shown = _status(kubectl, "cluster", name)
    assert shown["kubernetesVersion"] == "v1.30.1"
    assert shown["nodeSummary"] == status["nodeSummary"]
    assert shown["resourceSummary"] == status["resourceSummary"]
    assert shown["apiEnablements"] == [{"groupVersion": "apps/v1", "resources": [{"kind": "Deployment"}]}]
    assert kubectl.table("cluster", name)[1] == "told v1.30.1 Pull True"
    away = {
        "conditions": [{"type": "Ready", "status": "False", "reason": "ClusterNotReachable", "message": ""}]
    }
    kubectl(*words, json.dumps({"status": away}))
    assert kubectl.table("cluster", name)[1] == "told v1.30.1 Pull False"
    wrong = {"resourceSummary": {"allocatable": {"cpu": "much"}}}
    kubectl(*words, json.dumps({"status": wrong}), code=1)
    assert "allocatable.cpu" in kubectl.errors
    assert cast("dict[str, object]", kubectl.json("cluster", name)["metadata"])["uid"] == before["uid"]
    kubectl("delete", "cluster", name)


def test_what_only_the_engine_knows_is_not_written(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", given=BOTH)
    kubectl.until_true(lambda: bool(kubectl("get", "rb", "-o", "name")), lambda: "no binding")
    patch = '{"status":{"lastScheduledTime":null,"conditions":[]}}'
    kubectl("patch", "rb", "web-deployment", "--subresource=status", "--type=merge", "-p", patch)
    assert "it was not changed" in kubectl.errors
