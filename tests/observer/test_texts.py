"""Observations in one line, for timelines, the log and the pages."""

from collections.abc import Mapping

import msgspec
import pytest

from engine.http import summaries
from engine.http.query.response_types import Entry
from events.json_values import Json

READY: Json = {"type": "Ready", "status": "True"}
FAILED: Json = {
    "type": "Scheduled",
    "status": "False",
    "reason": "NoClusterFit",
    "message": "0/2 are available",
}
BINDING: Json = {
    "spec": {"clusters": [{"name": "b", "replicas": 1}, {"name": "a", "replicas": 2}]},
    "status": {"conditions": [{"type": "Scheduled", "status": "True", "reason": "Success"}]},
}
EVICTED: Json = {
    "spec": {"gracefulEvictionTasks": [{"fromCluster": "a"}]},
    "status": {"conditions": [FAILED]},
}
CLUSTER: Json = {
    "spec": {"taints": [{"key": "maintenance", "effect": "NoExecute"}]},
    "status": {"conditions": [READY]},
}
EVENT: Json = {
    "reason": "ApplyPolicySucceed",
    "message": "done",
    "involvedObject": {"kind": "Deployment", "namespace": "shop", "name": "web"},
}
REBALANCER: Json = {
    "spec": {"workloads": [{}, {}]},
    "status": {"observedWorkloads": [{"result": "Successful"}]},
}


def entry(event: str, data: Mapping[str, object]) -> Entry:
    kind = f"io.reballast.{event}.v1"
    return Entry(number=1, position="", key="", type=kind, data=msgspec.Raw(msgspec.json.encode(data)))


@pytest.mark.parametrize(
    ("kind", "manifest", "shown"),
    [
        ("ResourceBinding", BINDING, "a: 2, b: 1"),
        ("ResourceBinding", EVICTED, "nowhere; evicting from a; NoClusterFit: 0/2 are available"),
        ("Cluster", CLUSTER, "Cluster: ready, tainted maintenance:NoExecute"),
        ("Cluster", {}, "Cluster: readiness unknown"),
        ("Event", EVENT, "Event ApplyPolicySucceed: done"),
        ("WorkloadRebalancer", REBALANCER, "WorkloadRebalancer: 1 of 2 workloads rebalanced"),
        (
            "Deployment",
            {"spec": {"replicas": 3}, "metadata": {"generation": 2}},
            "Deployment: 3 replicas, generation 2",
        ),
        ("ConfigMap", {"metadata": {"resourceVersion": "9"}}, "ConfigMap: version 9"),
        ("Secret", {"spec": "none", "metadata": None}, "Secret: version None"),
    ],
)
def test_object_is_shown_by_its_state(kind: str, manifest: Json, shown: str) -> None:
    data = {"kind": kind, "namespace": "shop", "name": "web", "manifest": manifest}
    assert summaries.summary(entry("object-observed", data), is_named=False) == shown


def test_name_is_left_out_of_a_timeline_only() -> None:
    data = {"kind": "Deployment", "namespace": "shop", "name": "web"}
    assert summaries.summary(entry("object-vanished", data)) == "Deployment shop/web: deleted"
    event = {"kind": "Event", "namespace": "shop", "name": "web.17f3", "manifest": EVENT}
    shown = summaries.summary(entry("object-observed", event))
    assert shown == "Event Deployment shop/web: ApplyPolicySucceed: done"


def test_compared_decision_is_shown_with_both_results_if_they_differ() -> None:
    karmada: Json = {"clusters": {"a": 2}, "reason": "Success", "message": "done"}
    reballast: Json = {"clusters": {}, "reason": "NoClusterFit", "message": "no"}
    data: Json = {
        "kind": "ResourceBinding",
        "name": "web",
        "verdict": "same",
        "observed": karmada,
        "computed": reballast,
    }
    assert summaries.summary(entry("decision-compared", data), is_named=False) == "same: a: 2"
    raced = {**data, "verdict": "race", "why": "decided earlier"}
    shown = "race (decided earlier): Karmada a: 2; Reballast NoClusterFit: no"
    assert summaries.summary(entry("decision-compared", raced), is_named=False) == shown
