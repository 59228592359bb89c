"""Health of objects by their status, and free capacity of nodes."""

from typing import Any

import msgspec
import pytest

from engine.agent import member_capacity, statuses
from engine.agent.statuses import ObjectState
from engine.objects import interpreters
from events import clusters, limits, shapes
from events.kube_objects import KubeObject

Json = dict[str, Any]


def value(api_version: str, kind: str, spec: Json, status: Json, generation: int = 1) -> Json:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"generation": generation},
        "spec": spec,
        "status": status,
    }


REPLICAS = {"replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2}
DAEMONS = {
    "desiredNumberScheduled": 3,
    "updatedNumberScheduled": 3,
    "numberReady": 3,
    "numberAvailable": 3,
    "observedGeneration": 1,
}
READY = [{"type": "Ready", "status": "True"}]


@pytest.mark.parametrize(
    ("manifest", "standing"),
    [
        (
            value("apps/v1", "Deployment", {"replicas": 2}, {**REPLICAS, "observedGeneration": 1}),
            ObjectState(replicas=2, updated=2, ready=2, available=2, generation=1, observed_generation=1),
        ),
        (
            value("apps/v1", "Deployment", {"replicas": 2}, {**REPLICAS, "observedGeneration": 1}, 2),
            ObjectState(
                replicas=2,
                updated=2,
                ready=2,
                available=2,
                healthy=False,
                generation=2,
                observed_generation=1,
            ),
        ),
        (value("apps/v1", "StatefulSet", {"replicas": 3}, {}), ObjectState(healthy=False, generation=1)),
        (
            value("apps/v1", "ReplicaSet", {"replicas": 2}, {**REPLICAS, "observedGeneration": 1}),
            ObjectState(replicas=2, updated=2, ready=2, available=2, generation=1, observed_generation=1),
        ),
        (
            value("apps/v1", "DaemonSet", {}, DAEMONS),
            ObjectState(replicas=3, updated=3, ready=3, available=3, generation=1, observed_generation=1),
        ),
        (
            value("batch/v1", "Job", {}, {"active": 2, "ready": 1}),
            ObjectState(replicas=2, updated=2, ready=1, available=1),
        ),
        (
            value("batch/v1", "Job", {}, {"conditions": [{"type": "Failed", "status": "True"}]}),
            ObjectState(),
        ),
        (
            value("v1", "Pod", {}, {"phase": "Running", "conditions": READY}),
            ObjectState(replicas=1, updated=1, ready=1, available=1),
        ),
        (value("v1", "Pod", {}, {"phase": "Pending"}), ObjectState(replicas=1, updated=1, healthy=False)),
        (value("v1", "Service", {"type": "LoadBalancer"}, {}), ObjectState(healthy=False)),
        (value("v1", "Service", {"type": "ClusterIP"}, {}), ObjectState()),
        (value("v1", "PersistentVolumeClaim", {}, {"phase": "Pending"}), ObjectState(healthy=False)),
        (value("v1", "ConfigMap", {}, {}), ObjectState()),
        (
            value("example.io/v1", "Thing", {"replicas": 4}, {"readyReplicas": 4}),
            ObjectState(ready=4, available=4, status='{"readyReplicas":4}'),
        ),
        (value("example.io/v1", "Thing", {}, {"text": "x" * 9_000}), ObjectState()),
        ({"status": "odd", "spec": [1], "kind": 7}, ObjectState()),
    ],
)
def test_object_state_is_read_from_the_status(manifest: Json, standing: ObjectState) -> None:
    assert statuses.object_state(KubeObject(manifest)) == standing


def counted(replicas: int, updated: int, available: int) -> Json:
    return {
        "replicas": replicas,
        "updatedReplicas": updated,
        "availableReplicas": available,
        "observedGeneration": 1,
    }


PARTED: Json = {"updateStrategy": {"rollingUpdate": {"partition": 2}}}
OPEN: Json = {"loadBalancer": {"ingress": [{}, {"ip": "10.0.0.1"}]}}
NAMED: Json = {"loadBalancer": {"ingress": [{"hostname": "a.example"}]}}
UNNAMED: Json = {"loadBalancer": {"ingress": [{"ports": []}]}}


@pytest.mark.parametrize(
    ("kind", "spec", "status", "healthy"),
    [
        # Surplus pods during scale-down do not make the workload unhealthy.
        ("apps/v1 Deployment", {"replicas": 2}, counted(3, 3, 3), True),
        ("apps/v1 Deployment", {"replicas": 2}, counted(3, 3, 2), False),
        ("apps/v1 Deployment", {"replicas": 2}, counted(2, 1, 2), False),
        ("apps/v1 Deployment", {"replicas": 2}, counted(3, 2, 3), True),
        ("apps/v1 Deployment", {"replicas": 0}, {"observedGeneration": 1}, True),
        ("apps/v1 ReplicaSet", {"replicas": 2}, counted(3, 0, 3), True),
        ("apps/v1 ReplicaSet", {"replicas": 2}, counted(2, 0, 1), False),
        ("apps/v1 StatefulSet", {"replicas": 3}, counted(3, 3, 3), True),
        ("apps/v1 StatefulSet", {"replicas": 3}, counted(3, 1, 3), False),
        ("apps/v1 StatefulSet", {"replicas": 3, **PARTED}, counted(3, 1, 3), True),
        ("apps/v1 StatefulSet", {"replicas": 3, **PARTED}, counted(3, 0, 3), False),
        ("apps/v1 StatefulSet", {"replicas": 3, **PARTED}, counted(3, 1, 2), False),
        ("apps/v1 DaemonSet", {}, DAEMONS, True),
        ("apps/v1 DaemonSet", {}, {**DAEMONS, "updatedNumberScheduled": 2, "numberAvailable": 2}, False),
        ("apps/v1 DaemonSet", {}, {**DAEMONS, "numberAvailable": 2}, False),
        ("batch/v1 Job", {}, {"failed": 3}, True),
        ("batch/v1 CronJob", {}, {}, True),
        ("v1 Pod", {}, {"phase": "Succeeded"}, True),
        ("v1 Pod", {}, {"phase": "Running"}, False),
        ("v1 Pod", {}, {"phase": "Failed", "conditions": READY}, False),
        ("v1 Service", {"type": "NodePort"}, {}, True),
        ("v1 Service", {"type": "LoadBalancer"}, OPEN, True),
        ("v1 Service", {"type": "LoadBalancer"}, UNNAMED, False),
        ("networking.k8s.io/v1 Ingress", {}, {}, False),
        ("networking.k8s.io/v1 Ingress", {}, NAMED, True),
        ("networking.k8s.io/v1 Ingress", {}, UNNAMED, False),
        ("v1 PersistentVolumeClaim", {}, {"phase": "Bound"}, True),
        ("v1 PersistentVolumeClaim", {}, {"phase": "Lost"}, False),
        ("v1 PersistentVolume", {}, {"phase": "Failed"}, True),
        ("policy/v1 PodDisruptionBudget", {}, {"currentHealthy": 1, "desiredHealthy": 2}, False),
        ("policy/v1 PodDisruptionBudget", {}, {"currentHealthy": 2, "desiredHealthy": 2}, True),
        ("autoscaling/v2 HorizontalPodAutoscaler", {}, {}, True),
    ],
)
def test_health_follows_the_rule_of_karmada(kind: str, spec: Json, status: Json, healthy: bool) -> None:
    api_version, _, name = kind.partition(" ")
    assert statuses.object_state(KubeObject(value(api_version, name, spec, status))).healthy is healthy


def node(cpu: str, *, ready: bool = True, unschedulable: bool = False) -> member_capacity.Node:
    conditions = [{"type": "Ready", "status": str(ready)}]
    status = {"allocatable": {"cpu": cpu, "pods": "10"}, "conditions": conditions}
    return member_capacity.node_of(KubeObject({"spec": {"unschedulable": unschedulable}, "status": status}))


def pod(on: str, cpu: str, phase: str = "Running") -> member_capacity.Pod | None:
    container = {"resources": {"requests": {"cpu": cpu}}}
    return member_capacity.pod_of(
        KubeObject({"spec": {"nodeName": on, "containers": [container]}, "status": {"phase": phase}})
    )


def test_capacity_is_that_of_schedulable_nodes_minus_the_requests_of_their_pods() -> None:
    nodes = {
        "a": node("4"),
        "b": node("8"),
        "sick": node("16", ready=False),
        "c": node("2", unschedulable=True),
    }
    pods = [pod("a", "1500m"), pod("b", "1"), pod("c", "1"), pod("", "250m"), pod("a", "3", "Succeeded")]
    models = tuple(
        clusters.ResourceGrade(grade=grade, ranges=(clusters.Quantities(name="cpu", min=least),))
        for grade, least in enumerate(("0", "2", "4"))
    )
    capacity = member_capacity.report(nodes, [pod for pod in pods if pod is not None], models)
    assert capacity.allocatable == {"cpu": "12", "pods": "20"}
    assert capacity.allocated == {"cpu": "2500m", "pods": "2"}
    assert capacity.allocating == {"cpu": "250m", "pods": "1"}
    assert (capacity.nodes, capacity.nodes_ready) == (4, 3)
    assert {modeling.grade: modeling.count for modeling in capacity.modelings} == {0: 0, 1: 1, 2: 1}


def test_reading_returns_requested_values_and_health() -> None:
    flink = value("flink.example.io/v1", "FlinkJob", {}, {"job": {"id": "a1", "state": "FAILED", "n": 3}})
    rule = shapes.HealthRule(path=".job.state", values=("RUNNING", "FINISHED"))
    reading = shapes.Reading(values=("{.job.id}", ".job.n", ".job.nothing"), health=rule)
    state = statuses.object_state(KubeObject(flink), reading)
    assert state.values == {"{.job.id}": "a1", ".job.n": "3"}
    assert not state.healthy
    flink["status"]["job"]["state"] = "RUNNING"
    assert statuses.object_state(KubeObject(flink), reading).healthy
    assert statuses.object_state(KubeObject(flink)) == ObjectState(
        status='{"job":{"id":"a1","n":3,"state":"RUNNING"}}'
    )


COUNTS: Json = {"desired": 3, "updated": 3}
STARTED: Json = {"phase": "", "conditions": [{"type": "Ready", "status": "True", "reason": "Started"}]}


@pytest.mark.parametrize(
    ("check", "status", "healthy"),
    [
        ({"jsonPath": ".phase", "operator": "NotIn", "values": ["Failed"]}, {"phase": "Failed"}, False),
        ({"jsonPath": ".phase", "operator": "NotIn", "values": ["Failed"]}, {"other": 1}, True),
        ({"jsonPath": ".phase", "operator": "NotIn", "values": ["Failed"]}, {}, False),
        ({"jsonPath": ".phase", "operator": "Exists"}, {"phase": None}, False),
        ({"jsonPath": ".phase", "operator": "Exists"}, {"phase": {}}, True),
        ({"jsonPath": ".phase", "operator": "DoesNotExist"}, STARTED, False),
        ({"jsonPath": ".other", "operator": "DoesNotExist"}, STARTED, True),
        ({"jsonPath": ".updated", "atLeast": ".status.desired"}, COUNTS, True),
        ({"jsonPath": ".updated", "atLeast": ".status.desired"}, {**COUNTS, "desired": 4}, False),
        ({"jsonPath": ".updated", "atLeast": ".metadata.generation"}, {"updated": 0}, False),
        ({"jsonPath": ".updated", "atLeast": ".spec.size"}, {"updated": 3}, False),
        ({"jsonPath": ".updated", "atLeast": ".spec.size"}, {"updated": 4}, True),
        ({"jsonPath": ".updated", "atLeast": ".spec.other"}, {"updated": None, "desired": 1}, True),
        ({"condition": {"type": "Ready", "reasons": ["Started", "Done"]}}, STARTED, True),
        ({"condition": {"type": "Ready", "reasons": ["Done"]}}, STARTED, False),
        ({"condition": {"type": "Ready", "status": "False", "reasons": ["Started"]}}, STARTED, False),
    ],
)
def test_health_follows_the_checks_of_an_interpreter(check: Json, status: Json, healthy: bool) -> None:
    failing: Json = {"jsonPath": ".never", "operator": "Exists"}
    rules = {"anyOf": [{"allOf": [failing]}, {"allOf": [check, check]}]}
    alternatives = interpreters.health_rules(msgspec.convert(rules, interpreters.Health))
    thing = KubeObject(value("example.io/v1", "Thing", {"size": 4}, status))
    assert statuses.object_state(thing, shapes.Reading(alternatives=alternatives)).healthy is healthy


def test_all_checks_of_an_alternative_must_pass() -> None:
    checks = [{"jsonPath": ".phase", "values": ["Up"]}, {"jsonPath": ".phase", "operator": "DoesNotExist"}]
    rules = interpreters.health_rules(msgspec.convert({"anyOf": [{"allOf": checks}]}, interpreters.Health))
    thing = KubeObject(value("example.io/v1", "Thing", {}, {"phase": "Up"}))
    assert not statuses.object_state(thing, shapes.Reading(alternatives=rules)).healthy


def test_long_values_are_truncated() -> None:
    long = value("v1", "ConfigMap", {}, {"text": "x" * 1000})
    state = statuses.object_state(KubeObject(long), shapes.Reading(values=(".text",)))
    assert state.values == {".text": "x" * limits.STATUS_VALUE_CHARS_MAX}


def test_unreadable_quantities_count_as_zero() -> None:
    node = KubeObject({"status": {"allocatable": {"cpu": "much"}}})
    assert member_capacity.node_of(node).allocatable == (("cpu", 0),)
    assert member_capacity.pod_of(KubeObject({"spec": {"containers": "none"}})) == member_capacity.Pod(
        "", (("pods", 10**9),)
    )


def test_null_fields_of_a_status_count_as_absent() -> None:
    document = value("apps/v1", "Deployment", {"replicas": None}, {**REPLICAS, "conditions": None})
    old = KubeObject({**document, "metadata": {"generation": 0}})
    assert statuses.object_state(old).ready == REPLICAS["readyReplicas"]


@pytest.mark.parametrize("status", [{"readyReplicas": "two"}, {"conditions": ["Ready"]}, {"loadBalancer": 3}])
def test_status_that_does_not_fit_its_kind_is_unhealthy(status: Json) -> None:
    assert not statuses.object_state(
        KubeObject(value("apps/v1", "Deployment", {"replicas": 2}, status))
    ).healthy
