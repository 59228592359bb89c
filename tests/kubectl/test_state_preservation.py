"""State preservation with kubectl: status of a failed cluster is passed as a label to the next cluster."""

import json
from typing import cast

from tests.kubectl.commands import Json, Kubectl

STATE = '{"jobStatus":{"jobID":"a1"}}'
"""Status that the simulated members report besides the replicas."""

STATEFUL = """
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: flink
  annotations: {simulation.reballast.io/status: '%s'}
spec:
  replicas: 1
  selector: {matchLabels: {app: flink}}
  template:
    metadata: {labels: {app: flink}}
    spec:
      containers: [{name: main, image: flink, resources: {requests: {cpu: 1M}}}]
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: flink}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: StatefulSet, name: flink}]
  placement:
    clusterAffinity: {clusterNames: [member1, member2]}
    spreadConstraints: [{spreadByField: cluster, minGroups: 1, maxGroups: 1}]
  failover:
    cluster:
      purgeMode: Directly
      statePreservation:
        rules:
        - {aliasLabelName: example.com/job, jsonPath: "{.jobStatus.jobID}"}
        - {aliasLabelName: example.com/savepoint, jsonPath: "{.savepoint}"}
"""
LABEL = r"jsonpath={.metadata.labels.example\.com/job}"
REPORTED = "jsonpath={.status.aggregatedStatus[*].status.jobStatus.jobID}"


def _where(kubectl: Kubectl) -> list[str]:
    return kubectl("get", "rb", "flink-statefulset", "-o", "jsonpath={.spec.clusters[*].name}").split()


def _reported(kubectl: Kubectl) -> str:
    return kubectl("get", "rb", "flink-statefulset", "-o", REPORTED)


def _taint(kubectl: Kubectl, cluster: str, taints: object) -> None:
    kubectl("patch", "cluster", cluster, "--type=merge", "-p", json.dumps({"spec": {"taints": taints}}))


def test_state_of_a_workload_is_passed_to_its_new_cluster(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=STATEFUL % STATE)
    # The workload waits for capacity that no member has, so its eviction lasts as long as the test.
    kubectl.until_true(lambda: _reported(kubectl) == "a1", lambda: _reported(kubectl))
    (first,) = _where(kubectl)
    second = {"member1": "member2", "member2": "member1"}[first]
    _taint(kubectl, first, [{"key": "failed", "effect": "NoExecute"}])
    try:
        kubectl.until_true(
            lambda: kubectl.on(second)("get", "sts", "flink", "-o", LABEL, code=None) == "a1",
            lambda: kubectl("get", "rb", "-o", "yaml"),
        )
        binding = cast("dict[str, dict[str, list[Json]]]", kubectl.json("rb", "flink-statefulset"))
        (task,) = binding["spec"]["gracefulEvictionTasks"]
        assert task["fromCluster"] == first
        assert task["preservedLabelState"] == {"example.com/job": "a1"}
        assert task["clustersBeforeFailover"] == [first]
        assert task["purgeMode"] == "Directly"
        message = "example.com/savepoint is not preserved: nothing was reported at {.savepoint}"
        assert task["message"] == message
        happened = json.loads(kubectl("get", "events", "-o", "json"))["items"]
        assert any(message in event["message"] for event in happened)
        # Directly means during the eviction, which lasts as long as the test.
        kubectl.on(first).until([], "sts")
        assert "gracefulEvictionTasks" in cast("Json", kubectl.json("rb", "flink-statefulset")["spec"])
        assert kubectl("get", "sts", "flink", "-o", LABEL) == "", "the template stays as it was written"
    finally:
        _taint(kubectl, first, None)


def test_invalid_json_path_of_a_state_rule_is_refused(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=STATEFUL.replace("{.savepoint}", "{.save[}") % STATE, code=1)
    assert "spec.failover.cluster.statePreservation.rules[1].jsonPath" in kubectl.errors
