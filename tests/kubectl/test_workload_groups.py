"""Workloads that are kept apart, as kubectl meets them."""

import json

from events.json_values import Json, at
from tests.builders.manifests import deployment, on, policy
from tests.kubectl.commands import Kubectl


def test_workloads_that_are_kept_apart_wait_until_a_cluster_is_free(kubectl: Kubectl) -> None:
    constraint = {"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}
    apart: Json = {"antiAffinity": {"groupByLabelKey": "tier"}}
    placed = on("member1", "member2", spreadConstraints=[constraint], workloadAffinity=apart)
    kubectl("apply", "-f", "-", stdin=json.dumps(policy("apart", placed)))
    assert kubectl.errors == ""

    def create(name: str) -> None:
        workload = json.dumps(deployment(name, metadata={"labels": {"tier": "a"}}))
        kubectl("apply", "-f", "-", stdin=workload)
        kubectl.until_true(lambda: scheduled(name) != "", lambda: kubectl("get", "rb"))

    def scheduled(name: str) -> str:
        path = '{.spec.clusters[*].name} {.status.conditions[?(@.type=="Scheduled")].reason}'
        return kubectl("get", "rb", f"{name}-deployment", "-o", f"jsonpath={path}").strip()

    for name in ("one", "two", "late"):
        create(name)
    clusters = {"member1 Success", "member2 Success"}
    kubectl.until_true(
        lambda: {scheduled("one"), scheduled("two")} == clusters and scheduled("late") == "NoClusterFit",
        lambda: kubectl("get", "rb", "-o", "yaml"),
    )
    text = str(at(kubectl.json("rb", "late-deployment"), "status", "conditions"))
    assert "2 cluster already has workload with the same anti-affinity group" in text
    kubectl("delete", "deployment", "one")
    kubectl.until_true(lambda: scheduled("late") in clusters, lambda: scheduled("late"))
