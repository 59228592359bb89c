"""Statuses written by other controllers: stored, and merged with the status that the engine derives."""

import json
from typing import cast

from tests.builders.manifests import manifest, on, policy
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


def test_status_write_leaves_spec_and_generation_unchanged(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=DEFINITION)
    kubectl.until_true(lambda: "gauges" in kubectl("api-resources", "-o", "name"), lambda: "no gauges")
    kubectl("apply", "-f", "-", stdin=GAUGE)
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
    # An update of the object keeps its status; a recreated object has none.
    kubectl(
        "patch", "gauges", "pressure", "--type=merge", "-p", '{"spec":{"unit":"psi"},"status":{"bars":9}}'
    )
    assert _status(kubectl, "gauges", "pressure")["bars"] == 3
    kubectl(
        "replace",
        "--subresource=status",
        "-f",
        "-",
        stdin=json.dumps({**shown, "status": {"bars": 4}}),
        code=1,
    )
    assert "Operation cannot be fulfilled" in kubectl.errors
    fresh = {**kubectl.json("gauges", "pressure"), "status": {"bars": 4}}
    kubectl("replace", "--subresource=status", "-f", "-", stdin=json.dumps(fresh))
    assert _status(kubectl, "gauges", "pressure") == {"bars": 4}
    kubectl("delete", "gauges", "pressure")
    kubectl("apply", "-f", "-", stdin=GAUGE)
    assert "status" not in kubectl.json("gauges", "pressure")
    kubectl("delete", "crd", "gauges.example.io")


def test_reported_replicas_take_precedence_over_a_written_status(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=BOTH)
    kubectl.until(["NAME READY UP-TO-DATE AVAILABLE", "web 3/3 3 3"], "deploy")
    patch = '{"status":{"readyReplicas":99,"conditions":[{"type":"Audited","status":"True"}]}}'
    kubectl("patch", "deploy", "web", "--subresource=status", "-p", patch)
    status = _status(kubectl, "deploy", "web")
    assert status["readyReplicas"] == 3
    assert [condition["type"] for condition in cast("list[dict[str, str]]", status["conditions"])] == [
        "Audited"
    ]


def test_apply_of_a_field_owned_by_the_engine_is_a_conflict(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=BOTH)
    kubectl.until(["NAME READY UP-TO-DATE AVAILABLE", "web 3/3 3 3"], "deploy")
    head = manifest("apps/v1", "Deployment", "web")
    words = ("apply", "--server-side", "--subresource=status", "--field-manager=auditor", "-f", "-")
    kubectl(*words, stdin=json.dumps({**head, "status": {"readyReplicas": 9}}), code=1)
    assert 'conflict with "reballast" with subresource "status" using apps/v1' in kubectl.errors
    audited = {"readyReplicas": 3, "conditions": [{"type": "Audited", "status": "True"}]}
    kubectl(*words, stdin=json.dumps({**head, "status": audited}))
    status = _status(kubectl, "deploy", "web")
    assert (status["readyReplicas"], status["conditions"]) == (3, audited["conditions"])


def test_dry_run_of_a_status_is_not_stored(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=nginx")
    words = ("patch", "deploy", "web", "--subresource=status", "--dry-run=server", "-o", "json")
    shown = json.loads(kubectl(*words, "-p", '{"status":{"observedGeneration":7}}'))
    assert shown["status"]["observedGeneration"] == 7
    assert kubectl.json("deploy", "web")["status"] == {}


def test_agent_writes_the_status_of_its_cluster(kubectl: Kubectl) -> None:
    name = "told"
    kubectl("apply", "-f", "-", stdin=MEMBER % name)
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
    assert shown["apiEnablements"] == status["apiEnablements"]
    assert kubectl.table("cluster", name)[1] == "told v1.30.1 Pull True"
    away = {
        "conditions": [{"type": "Ready", "status": "False", "reason": "ClusterNotReachable", "message": ""}]
    }
    kubectl(*words, json.dumps({"status": away}))
    assert kubectl.table("cluster", name)[1] == "told v1.30.1 Pull False"
    unknown = {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NoLease", "message": ""}]}
    kubectl(*words, json.dumps({"status": unknown}))
    assert kubectl.table("cluster", name)[1] == "told v1.30.1 Pull Unknown"
    wrong = {"resourceSummary": {"allocatable": {"cpu": "much"}}}
    kubectl(*words, json.dumps({"status": wrong}), code=1)
    assert "allocatable.cpu" in kubectl.errors
    assert cast("dict[str, object]", kubectl.json("cluster", name)["metadata"])["uid"] == before["uid"]
    kubectl("delete", "cluster", name)


def test_status_derived_by_the_engine_is_not_writable(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=BOTH)
    kubectl.until_true(lambda: bool(kubectl("get", "rb", "-o", "name")), lambda: "no binding")
    patch = '{"status":{"lastScheduledTime":null,"conditions":[]}}'
    kubectl("patch", "rb", "web-deployment", "--subresource=status", "--type=merge", "-p", patch)
    assert "the status was not changed" in kubectl.errors


def _owners(kubectl: Kubectl, kind: str, name: str) -> dict[tuple[str, str, str], dict[str, object]]:
    """Return the fields per owner (manager, operation, subresource)."""
    metadata = cast("dict[str, object]", kubectl.json(kind, name, "--show-managed-fields")["metadata"])
    return {
        (str(entry["manager"]), str(entry["operation"]), str(entry.get("subresource", ""))): cast(
            "dict[str, object]", entry["fieldsV1"]
        )
        for entry in cast("list[dict[str, object]]", metadata.get("managedFields", []))
    }


def test_status_fields_have_their_own_managers(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=nginx")
    applied = manifest("apps/v1", "Deployment", "web")
    words = ("apply", "--server-side", "--subresource=status", "-f", "-", "--field-manager")
    kubectl(*words, "one", stdin=json.dumps({**applied, "status": {"observedGeneration": 4}}))
    # Fields outside the status are ignored in an apply to the status.
    second = {**applied, "status": {"observedGeneration": 5}, "spec": {"replicas": 7}}
    kubectl(*words, "two", stdin=json.dumps(second), code=1)
    message = 'Apply failed with 1 conflict: conflict with "one" with subresource "status": .status.observedGeneration'
    assert message in kubectl.errors
    kubectl(*words, "two", "--force-conflicts", stdin=json.dumps(second))
    patch = '{"status":{"collisionCount":1}}'
    kubectl("patch", "deploy", "web", "--subresource=status", "--field-manager=three", "-p", patch)
    owners = _owners(kubectl, "deploy", "web")
    assert owners["two", "Apply", "status"] == {"f:status": {"f:observedGeneration": {}}}
    assert owners["three", "Update", "status"] == {"f:status": {"f:collisionCount": {}}}
    assert ("one", "Apply", "status") not in owners
    spec = cast("dict[str, object]", kubectl.json("deploy", "web")["spec"])
    assert spec["replicas"] == 1
    # Writes of the object keep the managers of its status; an apply with fewer fields gives up the others.
    kubectl("scale", "deploy", "web", "--replicas=2")
    assert owners.keys() <= _owners(kubectl, "deploy", "web").keys()
    kubectl(*words, "two", stdin=json.dumps({**applied, "status": {"observedGeneration": 5}}))
    kubectl(*words, "two", stdin=json.dumps({**applied, "status": {"replicas": 1}}))
    assert _status(kubectl, "deploy", "web") == {"replicas": 1, "collisionCount": 1}


def test_fields_derived_by_the_engine_are_owned_by_it(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=BOTH)
    kubectl.until(["NAME READY UP-TO-DATE AVAILABLE", "web 3/3 3 3"], "deploy")
    owned = _owners(kubectl, "deploy", "web")["reballast", "Update", "status"]
    assert "f:readyReplicas" in cast("dict[str, object]", owned["f:status"])
    bound = _owners(kubectl, "rb", "web-deployment")
    assert "f:clusters" in cast("dict[str, object]", bound["reballast", "Update", ""]["f:spec"])
    assert "f:conditions" in cast("dict[str, object]", bound["reballast", "Update", "status"]["f:status"])
    # A read object may be written back with its managed fields: the engine keeps its own fields.
    shown = kubectl("get", "deploy", "web", "--show-managed-fields", "-o", "json")
    kubectl("replace", "-f", "-", stdin=shown)
    again = _owners(kubectl, "deploy", "web")
    assert [owner for owner in again if owner[0] == "reballast"] == [("reballast", "Update", "status")]


def test_cluster_status_fields_have_their_own_managers(kubectl: Kubectl) -> None:
    name = "owned"
    kubectl("apply", "-f", "-", stdin=MEMBER % name)
    words = ("patch", "cluster", name, "--subresource=status", "--type=merge", "--field-manager=agent", "-p")
    kubectl(*words, json.dumps({"status": {"kubernetesVersion": "v1.30.1"}}))
    owners = _owners(kubectl, "cluster", name)
    assert owners["agent", "Update", "status"] == {"f:status": {"f:kubernetesVersion": {}}}
    rest = cast("dict[str, object]", owners["reballast", "Update", "status"]["f:status"])
    assert "f:apiEnablements" in rest
    assert "f:kubernetesVersion" not in rest
    applied = manifest("cluster.karmada.io/v1alpha1", "Cluster", name)
    status = {"status": {"kubernetesVersion": "v1.31.0"}}
    apply = ("apply", "--server-side", "--subresource=status", "-f", "-", "--field-manager=other")
    kubectl(*apply, stdin=json.dumps({**applied, **status}), code=1)
    assert 'conflict with "agent" with subresource "status"' in kubectl.errors
    kubectl(*apply, "--force-conflicts", stdin=json.dumps({**applied, **status}))
    assert _status(kubectl, "cluster", name)["kubernetesVersion"] == "v1.31.0"
    kubectl("delete", "cluster", name)


_TOLD: dict[str, object] = {
    "Service": {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}},
    "Ingress": {"loadBalancer": {"ingress": [{"hostname": "shop.example"}]}},
    "CronJob": {"active": [{"name": "sum-1"}], "lastScheduleTime": "2026-01-01T00:00:00Z"},
}
"""Status that simulated members report, by kind."""


def _of_kind(api_version: str, kind: str, spec: dict[str, object]) -> dict[str, object]:
    status = {"simulation.reballast.io/status": json.dumps(_TOLD[kind])} if kind in _TOLD else {}
    return manifest(api_version, kind, "shop", metadata={"annotations": status}, spec=spec)


def test_statuses_of_all_members_are_aggregated_by_kind(kubectl: Kubectl) -> None:
    pod: dict[str, object] = {"containers": [{"name": "main", "image": "nginx"}]}
    job = {"spec": {"template": {"spec": {**pod, "restartPolicy": "Never"}}}}
    backend = {"service": {"name": "shop", "port": {"number": 80}}}
    objects = [
        _of_kind("v1", "Service", {"type": "LoadBalancer", "ports": [{"port": 80}]}),
        _of_kind("networking.k8s.io/v1", "Ingress", {"defaultBackend": backend}),
        _of_kind("batch/v1", "CronJob", {"schedule": "* * * * *", "jobTemplate": job}),
        _of_kind(
            "v1",
            "PersistentVolumeClaim",
            {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        ),
        _of_kind("v1", "Pod", pod),
    ]
    selectors = [{"apiVersion": template["apiVersion"], "kind": template["kind"]} for template in objects]
    placed = policy("shop", on("member1", "member2"), *selectors)
    items = {"apiVersion": "v1", "kind": "List", "items": [*objects, placed]}
    kubectl("apply", "-f", "-", stdin=json.dumps(items))
    addresses = "jsonpath={.status.loadBalancer.ingress[*]['ip','hostname']}"
    _becomes(kubectl, "192.0.2.7", "svc", "shop", "-o", addresses)
    _becomes(kubectl, "shop.example", "ingress", "shop", "-o", addresses)
    _becomes(
        kubectl,
        "sum-1 sum-1 2026-01-01T00:00:00Z",
        "cj",
        "shop",
        "-o",
        "jsonpath={.status.active[*].name} {.status.lastScheduleTime}",
    )
    _becomes(kubectl, "Bound", "pvc", "shop", "-o", "jsonpath={.status.phase}")
    _becomes(kubectl, "Running", "pod", "shop", "-o", "jsonpath={.status.phase}")
    # Running as soon as one member reports it.
    kubectl.until(["NAME READY STATUS RESTARTS", "shop 2/1 Running 0"], "pod", "shop")
    member = "jsonpath={.status.aggregatedStatus[0].status.loadBalancer.ingress[*].ip}"
    assert kubectl("get", "rb", "shop-service", "-o", member) == "192.0.2.7"


def test_stateful_set_shows_current_replicas_and_revisions(kubectl: Kubectl) -> None:
    spec: dict[str, object] = {
        "serviceName": "db",
        "replicas": 2,
        "selector": {"matchLabels": {"app": "db"}},
        "template": {
            "metadata": {"labels": {"app": "db"}},
            "spec": {"containers": [{"name": "main", "image": "nginx"}]},
        },
    }
    placed = policy("db", on("member1", "member2"), {"apiVersion": "apps/v1", "kind": "StatefulSet"})
    items = {
        "apiVersion": "v1",
        "kind": "List",
        "items": [manifest("apps/v1", "StatefulSet", "db", spec=spec), placed],
    }
    kubectl("apply", "-f", "-", stdin=json.dumps(items))
    _becomes(kubectl, "4 4", "sts", "db", "-o", "jsonpath={.status.currentReplicas} {.status.replicas}")
    revisions = "jsonpath={.status.currentRevision} {.status.updateRevision}"
    current, update = kubectl("get", "sts", "db", "-o", revisions).split()
    assert current == update == kubectl.on("member1")("get", "sts", "db", "-o", revisions).split()[0]


def _becomes(kubectl: Kubectl, expected: str, *words: str) -> None:
    kubectl.until_true(
        lambda: kubectl("get", *words) == expected, lambda: kubectl("get", *words[:2], "-o", "yaml")
    )
