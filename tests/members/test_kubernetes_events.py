"""Kubernetes Events about the pods of a member."""

from engine.simulation import kubernetes_events
from events.json_values import Json
from events.kube_objects import KubeObject


def _reasons(metadata: Json, status: Json) -> list[str]:
    own: Json = {
        "name": "web-0",
        "namespace": "default",
        "uid": "1",
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    pod = KubeObject({"apiVersion": "v1", "kind": "Pod", "metadata": {**own, **metadata}, "status": status})
    return [event.text_at("reason") for event in kubernetes_events.of_pods("member1", [pod])]


def test_pod_with_an_incomplete_owner_has_no_event_about_its_creation() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "2"}
    assert _reasons({"ownerReferences": [owner]}, {}) == ["SuccessfulCreate"]
    assert _reasons({"ownerReferences": [{"kind": "ReplicaSet"}]}, {}) == []


def test_unscheduled_pod_needs_no_message() -> None:
    assert _reasons({}, {"conditions": [{"type": "PodScheduled", "status": "False"}]}) == ["FailedScheduling"]
