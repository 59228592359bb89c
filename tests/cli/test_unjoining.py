"""``unjoin`` of a cluster: what it waits for, and its timeout."""

import json

from tests.cli.servers import Shell

EDGE = """
apiVersion: cluster.karmada.io/v1alpha1
kind: Cluster
metadata: {name: edge}
spec: {syncMode: Pull}
"""
SETTINGS = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: settings}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: settings}]
  placement: {clusterAffinity: {clusterNames: [edge, member3]}}
"""


def works(shell: Shell, cluster: str) -> int:
    return sum(
        work["metadata"]["namespace"] == f"karmada-es-{cluster}"
        for work in json.loads(shell("get", "works", "-A", "--json"))["items"]
    )


def test_unjoined_member_leaves_and_its_timeline_shows_it(shell: Shell) -> None:
    shell.apply(SETTINGS)
    shell.until_true(lambda: works(shell, "member3") == 1)
    assert shell("unjoin", "member3") == "cluster/member3 removed\n"
    assert works(shell, "member3") == 0
    assert "member3" not in shell("get", "clusters")
    event_types = [line.split()[2] for line in shell("timeline", "cluster", "member3").splitlines()[1:]]
    ends = [
        event_type
        for event_type in event_types
        if event_type.startswith(("cluster-lea", "cluster-left", "cluster-vac"))
    ]
    assert ends == ["cluster-leaving", "cluster-vacated", "cluster-left"]
    shell("unjoin", "member3", code=1)
    assert 'cluster.cluster.karmada.io "member3" not found' in shell.errors
    assert "the log is verified, no findings" in shell("log", "verify")


def test_unjoin_times_out_and_can_be_forced(shell: Shell) -> None:
    shell.apply(f"{EDGE}---{SETTINGS}")
    shell.until_true(lambda: works(shell, "edge") == 1)
    shell("unjoin", "edge", "--wait", "0.1", code=1)
    assert "cluster/edge is not removed after 0.1 s: no report yet that all works are removed" in shell.errors
    assert "remove it at once: --wait 0 --force" in shell.errors
    explained = shell("explain", "configmap", "settings")
    assert any(
        "the cluster is being removed" in line for line in explained.splitlines() if line.startswith("edge")
    )
    shell.apply(EDGE, code=1)
    assert "cluster edge is being removed and can't join again until that is finished" in shell.errors
    assert "reballast unjoin edge --wait 0 --force" in shell.errors
    assert shell("unjoin", "edge", "--wait", "0") == "cluster/edge is being removed\n"
    assert shell("unjoin", "edge", "--wait", "0", "--force").startswith("cluster/edge removed by force: ")
    shell.apply(EDGE)
    shell("unjoin", "edge", "--wait", "0", "--force", "--json")
