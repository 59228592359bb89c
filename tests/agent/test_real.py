"""An agent against a real cluster, if ``REBALLAST_TEST_KUBECONFIG`` names its kubeconfig.

The cluster's own controllers run, so the agent meets the fields that they really set and report.
"""

import secrets
from pathlib import Path

import pytest

from tests.agent.conftest import Installation
from tests.agent.real import Cluster, Real, deployment, marks, pods
from tests.agent.servers import Json, command, eventually, join, serving
from tests.builders.manifests import config_map, manifest

pytestmark = marks


def test_deployment_and_service_are_applied_corrected_and_removed(real: Real) -> None:
    control, cluster = real.control, real.cluster
    service = manifest("v1", "Service", "web", spec={"selector": {"app": "web"}, "ports": [{"port": 80}]})
    real.send(deployment("web"), service)
    real.wait_healthy("Deployment", "web", readyReplicas=2)
    real.wait_healthy("Service", "web")
    address = cluster.field("service", "web", ".spec.clusterIP")
    generation = int(cluster.field("deployment", "web", ".metadata.generation"))

    cluster("scale", "deployment", "web", "--replicas", "3")
    eventually(lambda: cluster.field("deployment", "web", ".spec.replicas") == "2", "the corrected drift")
    assert cluster.field("service", "web", ".spec.clusterIP") == address
    assert int(cluster.field("deployment", "web", ".metadata.generation")) == generation + 2

    for kind in ("deployment", "service"):
        control.delete(kind, "web", real.namespace)
    eventually(lambda: not cluster.get("deployment", "web"), "the removal")
    eventually(lambda: not cluster.get("service", "web"), "the removal of the Service")


def test_unmanaged_object_is_kept_unless_the_policy_overwrites_it(real: Real) -> None:
    cluster = real.cluster
    cluster("create", "namespace", real.namespace)
    cluster.make(config_map("theirs", by="them"))
    real.send(config_map("theirs", by="us"))
    eventually(
        lambda: (
            "already exists in the cluster" in real.status("ConfigMap", "theirs").get("appliedMessage", "")
        ),
        "the fault",
    )
    assert cluster.field("configmap", "theirs", ".data.by") == "them"
    real.send(config_map("theirs", by="us"), conflictResolution="Overwrite")
    eventually(
        lambda: cluster.field("configmap", "theirs", ".data.by") == "us", "the object that was taken over"
    )
    eventually(lambda: real.status("ConfigMap", "theirs").get("applied") is True, "the report")


def test_autoscaled_workload_keeps_its_replicas(real: Real) -> None:
    cluster = real.cluster
    real.send(deployment("scaled"))
    real.wait_healthy("Deployment", "scaled", readyReplicas=2)
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "scaled"}
    spec = {"scaleTargetRef": target, "minReplicas": 4, "maxReplicas": 9}
    cluster.make(manifest("autoscaling/v2", "HorizontalPodAutoscaler", "scaled", spec=spec))
    real.wait_healthy("Deployment", "scaled", readyReplicas=4)
    edited = deployment("scaled", 3)
    edited["metadata"]["labels"] = {"edited": "yes"}
    real.send(edited)
    eventually(lambda: cluster.field("deployment", "scaled", ".metadata.labels.edited") == "yes", "the edit")
    assert cluster.field("deployment", "scaled", ".spec.replicas") == "4"


def test_service_keeps_its_cluster_ip_and_node_port(real: Real) -> None:
    cluster = real.cluster
    ports = [{"name": "http", "port": 80}]
    service: Json = manifest("v1", "Service", "open", spec={"type": "NodePort", "ports": ports})
    real.send(service)
    real.wait_healthy("Service", "open")
    initial = [
        cluster.field("service", "open", path) for path in (".spec.clusterIP", ".spec.ports[0].nodePort")
    ]
    assert all(initial)
    service["spec"]["ports"] = [*ports, {"name": "metrics", "port": 9100}]
    real.send(service)
    eventually(lambda: cluster.field("service", "open", ".spec.ports[1].nodePort"), "the second port")
    later = [
        cluster.field("service", "open", path) for path in (".spec.clusterIP", ".spec.ports[0].nodePort")
    ]
    assert later == initial


@pytest.mark.parametrize("by", ["class", "name"])
def test_claim_and_volume_stay_bound(real: Real, by: str) -> None:
    cluster, size = real.cluster, {"storage": "1Gi"}
    volume_name = f"volume-{secrets.token_hex(3)}"
    kept = {"accessModes": ["ReadWriteOnce"], "storageClassName": volume_name}
    volume: Json = manifest(
        "v1", "PersistentVolume", volume_name, spec={**kept, "capacity": size, "hostPath": {"path": "/none"}}
    )
    claim: Json = manifest(
        "v1", "PersistentVolumeClaim", "data", spec={**kept, "resources": {"requests": size}}
    )
    if by == "name":
        volume["spec"]["claimRef"] = {
            "namespace": real.namespace,
            "name": "data",
            "uid": "of-another-cluster",
        }
        claim["spec"]["volumeName"] = volume_name
    real.send_whole(volume)
    real.send(claim)
    real.wait_healthy("PersistentVolumeClaim", "data")
    assert cluster.field("pvc", "data", ".spec.volumeName") == volume_name
    for document in (volume, claim):
        document["metadata"]["labels"] = {"edited": "yes"}
    real.send_whole(volume)
    real.send(claim)
    for kind, name in (("pv", volume_name), ("pvc", "data")):
        eventually(lambda: cluster.field(kind, name, ".metadata.labels.edited") == "yes", "the edit")  # noqa: B023
    assert cluster.field("pv", volume_name, ".spec.claimRef.name") == "data"
    assert cluster.field("pvc", "data", ".status.phase") == "Bound"
    real.control.delete("persistentvolumeclaim", "data", real.namespace)
    real.control.delete("persistentvolume", volume_name, "")
    eventually(lambda: not cluster.get("pv", volume_name), "the end of the volume")


def test_workloads_of_each_kind_run_and_report_their_status(real: Real) -> None:
    cluster = real.cluster
    template = pods("once", restartPolicy="Never")["template"]
    job_template = {"spec": {"template": template}}
    real.send(
        manifest("apps/v1", "StatefulSet", "set", spec={"replicas": 2, "serviceName": "set", **pods("set")}),
        manifest("apps/v1", "DaemonSet", "each", spec=pods("each")),
        manifest("batch/v1", "Job", "once", spec={"parallelism": 2, "completions": 2, "template": template}),
        manifest("batch/v1", "CronJob", "often", spec={"schedule": "* * * * *", "jobTemplate": job_template}),
        manifest("v1", "Pod", "single", spec=pods("single")["template"]["spec"]),
        manifest(
            "policy/v1",
            "PodDisruptionBudget",
            "set",
            spec={"minAvailable": 1, "selector": {"matchLabels": {"app": "set"}}},
        ),
    )
    real.wait_healthy("StatefulSet", "set", readyReplicas=2)
    real.wait_healthy("DaemonSet", "each")
    for kind, name in (("Pod", "single"), ("PodDisruptionBudget", "set"), ("Job", "once")):
        real.wait_healthy(kind, name)
    eventually(lambda: cluster.field("job", "once", ".status.succeeded") == "2", "both pods of the Job")

    def shown(group: str, plural: str, name: str) -> Json:
        """Return the status of a template, as the control plane shows it."""
        path = f"/apis/{group}/v1/namespaces/{real.namespace}/{plural}/{name}"
        return (real.control.get(path) or {}).get("status", {})

    eventually(lambda: shown("batch", "jobs", "once").get("completionTime"), "the Job's end")
    ended = shown("batch", "jobs", "once")
    assert ended["succeeded"] == 2
    assert [condition["type"] for condition in ended["conditions"]] == ["Complete"]
    real.wait_healthy("CronJob", "often")
    eventually(lambda: cluster.field("cronjob", "often", ".status.lastScheduleTime"), "its first run")
    # The shown status equals the cluster's own status of the DaemonSet.
    numbers = ("desiredNumberScheduled", "numberReady")

    def is_reported() -> bool:
        reported, live = shown("apps", "daemonsets", "each"), cluster.get("daemonset", "each")["status"]
        return [reported.get(name) for name in numbers] == [live[name] for name in numbers]

    eventually(is_reported, "the numbers of the DaemonSet")


def test_unschedulable_workload_moves_to_the_next_cluster(
    real: Real, installation: Installation, tmp_path: Path
) -> None:
    other = f"other-{secrets.token_hex(3)}"
    (tmp_path / "other").mkdir()
    with serving(
        tmp_path / "other", join(installation.control, other, installation.member.kubeconfig, tmp_path)
    ):
        groups = [{"affinityName": name, "clusterNames": [name]} for name in (real.name, other)]
        failover = {"application": {"decisionConditions": {"tolerationSeconds": 3}, "purgeMode": "Directly"}}
        real.send(
            deployment("nowhere", nodeSelector={"no": "node"}),
            placement={"clusterAffinities": groups},
            failover=failover,
            propagateDeps=True,
        )
        eventually(lambda: real.cluster.get("deployment", "nowhere"), "the Deployment in the first cluster")
        path = f"/apis/apps/v1/namespaces/{real.namespace}/deployments/nowhere"
        eventually(lambda: installation.member.get(path), "the Deployment in the second cluster")
        eventually(lambda: not real.cluster.get("deployment", "nowhere"), "its end in the first one")


def test_free_capacity_is_that_of_the_nodes_minus_their_pods(real: Real) -> None:
    control, cluster = real.control, real.cluster
    cores = cluster("get", "nodes", "--output", "jsonpath={.items[*].status.allocatable.cpu}").split()
    whole = sum(map(int, cores))

    def room() -> Json:
        return control.ask(f"clusters/{real.name}").get("status", {}).get("resourceSummary", {})

    eventually(lambda: room().get("allocatable", {}).get("cpu") == str(whole), "the capacity of all nodes")
    placement = {
        "clusterAffinity": {"clusterNames": [real.name]},
        "replicaScheduling": {
            "replicaSchedulingType": "Divided",
            "replicaDivisionPreference": "Aggregated",
        },
    }
    real.send(deployment("fits", 2, "2"), placement=placement)
    real.wait_healthy("Deployment", "fits", readyReplicas=2)
    eventually(
        lambda: float(_cores(room().get("allocated", {}).get("cpu", "0"))) >= 4, "the running Deployment"
    )
    real.send(deployment("fits-not", whole, "1"), placement=placement)
    key = f"{real.namespace}/fits-not-deployment"

    def why() -> str:
        conditions = control.ask(f"bindings/{key}").get("status", {}).get("conditions", [])
        return next((condition["message"] for condition in conditions if condition["status"] == "False"), "")

    eventually(lambda: "not enough" in why(), "a refusal by the scheduler")
    assert not cluster.get("deployment", "fits-not")


def test_preserved_object_stays_without_managed_marks(real: Real) -> None:
    cluster = real.cluster
    real.send(config_map("kept", a="b"), preserveResourcesOnDeletion=True)
    real.wait_healthy("ConfigMap", "kept")
    real.control.delete("configmap", "kept", real.namespace)
    eventually(
        lambda: not cluster.field("configmap", "kept", ".metadata.labels.karmada\\.io/managed"),
        "the object without marks",
    )
    assert cluster.get("configmap", "kept")["data"] == {"a": "b"}
    assert "annotations" not in cluster.get("configmap", "kept")["metadata"]


def test_unjoin_removes_managed_objects_only(real: Real) -> None:
    cluster = real.cluster
    real.send(config_map("ours", a="b"), deployment("ours"))
    real.wait_healthy("Deployment", "ours", readyReplicas=2)
    cluster.make(config_map("theirs", a="b"))
    command(real.control, "unjoin", real.name)
    eventually(lambda: real.agent.process.poll() is not None, "the agent's end")
    assert not cluster.get("configmap", "ours")
    assert not cluster.get("deployment", "ours")
    assert cluster.get("configmap", "theirs")["data"] == {"a": "b"}


def test_custom_kind_is_reported_as_its_interpreter_defines(real: Real) -> None:
    cluster, group = real.cluster, f"g{secrets.token_hex(3)}.example.io"
    ships = f"ships.{group}"
    schema: Json = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version: Json = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": schema,
    }
    names = {"plural": "ships", "kind": "Ship"}
    definition = manifest(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        ships,
        spec={"group": group, "names": names, "scope": "Namespaced", "versions": [version]},
    )
    interpreter = manifest(
        "config.reballast.io/v1alpha1",
        "ReplicaInterpreter",
        group,
        spec={
            "target": {"apiVersion": f"{group}/v1", "kind": "Ship"},
            "replicasPath": "spec.crew.size",
            "health": {"jsonPath": ".phase", "values": ["Sailing"]},
        },
    )
    real.control.apply(interpreter)
    real.send_whole(definition)
    division = {
        "replicaSchedulingType": "Divided",
        "replicaDivisionPreference": "Weighted",
        "weightPreference": {
            "staticWeightList": [{"targetCluster": {"clusterNames": [real.name]}, "weight": 1}]
        },
    }
    ship = manifest(f"{group}/v1", "Ship", "argo", spec={"crew": {"size": 5, "captain": "Jason"}})
    real.send(
        ship,
        placement={"clusterAffinity": {"clusterNames": [real.name]}, "replicaScheduling": division},
    )
    eventually(lambda: cluster.get(ships, "argo"), "the custom resource")
    spec = cluster.get(ships, "argo")["spec"]
    assert spec == {"crew": {"size": 5, "captain": "Jason"}}
    eventually(lambda: real.status("Ship", "argo").get("health") == "Unhealthy", "no phase, no health")
    cluster.merge(ships, "argo", {"status": {"phase": "Sailing"}}, "--subresource=status")
    real.wait_healthy("Ship", "argo")
    cluster.merge(ships, "argo", {"spec": {"crew": {"size": 9}}})
    eventually(lambda: cluster.field(ships, "argo", ".spec.crew.size") == "5", "the corrected drift")
    real.control.delete("ship", "argo", real.namespace)
    eventually(lambda: not cluster.get(ships, "argo"), "its end")
    real.control.delete("customresourcedefinition", ships, "")
    eventually(lambda: not cluster.get("crd", ships), "the end of its kind")


def test_externally_deleted_namespace_is_restored_with_its_objects(real: Real, cluster: Cluster) -> None:
    real.send(config_map("here", a="b"), deployment("here"))
    real.wait_healthy("Deployment", "here", readyReplicas=2)
    before = cluster.field("configmap", "here", ".metadata.uid")
    cluster("delete", "namespace", real.namespace, "--wait=false")
    eventually(
        lambda: cluster.field("configmap", "here", ".metadata.uid") not in {"", before}, "the ConfigMap again"
    )
    real.wait_healthy("Deployment", "here", readyReplicas=2)
    real.wait_healthy("ConfigMap", "here")


def _cores(text: str) -> float:
    return float(text[:-1]) / 1_000 if text.endswith("m") else float(text)
