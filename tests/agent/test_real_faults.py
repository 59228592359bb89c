"""Faults of an agent in a real cluster: few rights, throttling, a frozen API server, a killed agent.

``REBALLAST_TEST_KUBECONFIG`` names the cluster's kubeconfig; only a cluster of ``tests.clusters`` can be
frozen.
"""

import os
import re
import secrets
import signal
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
import yaml

import engine.agent
from tests.agent.conftest import Installation
from tests.agent.real import Cluster, Real, deployment, marks
from tests.agent.servers import Json, eventually, join, serving
from tests.builders.manifests import config_map, manifest
from tests.clusters.__main__ import PROCESSES

pytestmark = marks
GRACE_S: Final = 20
OUTAGE_S: Final = 60
BUSY: Final = 60
README: Final = Path(engine.agent.__file__).with_name("README.md")


def documented_rules() -> list[Json]:
    """Return the rules of the ClusterRole in the agent's documentation."""
    blocks = re.findall(r"```yaml\n(.*?)```", README.read_text(), re.DOTALL)
    (role,) = (document for document in map(yaml.safe_load, blocks) if document["kind"] == "ClusterRole")
    return role["rules"]


@pytest.fixture
def account(cluster: Cluster, tmp_path: Path) -> Iterator[Path]:
    """A kubeconfig with exactly the documented rights."""
    cluster("create", "namespace", cluster.namespace)
    yield cluster.account("agent", documented_rules(), tmp_path / "account")
    for kind in ("clusterrole", "clusterrolebinding"):
        cluster("delete", kind, f"{cluster.namespace}-agent", "--ignore-not-found")


@pytest.fixture
def limited(installation: Installation, cluster: Cluster, account: Path, tmp_path: Path) -> Iterator[Real]:
    """An agent with the documented rights."""
    name = f"limited-{secrets.token_hex(3)}"
    configuration = join(installation.control, name, account, tmp_path)
    with serving(tmp_path, configuration, grace=GRACE_S) as agent:
        yield Real(installation.control, cluster, name, agent)


def test_documented_rights_are_sufficient(limited: Real) -> None:
    control, cluster = limited.control, limited.cluster
    limited.send(deployment("web"), config_map("settings", a="b"))
    limited.wait_healthy("Deployment", "web", readyReplicas=2)
    limited.wait_healthy("ConfigMap", "settings")
    cluster("scale", "deployment", "web", "--replicas", "3")
    eventually(lambda: cluster.field("deployment", "web", ".spec.replicas") == "2", "the corrected drift")
    summary = control.ask(f"clusters/{limited.name}")["status"]
    assert summary["nodeSummary"]["readyNum"] >= 1
    assert summary["resourceSummary"]["allocatable"]["cpu"] != "0"
    # A work beyond the rights fails alone, with a reason.
    limited.send(manifest("networking.k8s.io/v1", "NetworkPolicy", "none", spec={"podSelector": {}}))
    eventually(
        lambda: "forbidden" in limited.status("NetworkPolicy", "none").get("appliedMessage", ""), "the fault"
    )
    limited.send(config_map("settings", a="c"))
    eventually(lambda: cluster.field("configmap", "settings", ".data.a") == "c", "the edit")
    for kind, name in (("deployment", "web"), ("configmap", "settings")):
        control.delete(kind, name, limited.namespace)
    eventually(lambda: not cluster.get("deployment", "web"), "the removal")
    eventually(lambda: not cluster.get("configmap", "settings"), "the removal of the ConfigMap")


@contextmanager
def throttled(cluster: Cluster) -> Generator[None]:
    """Let the API server serve one request of the account at a time, and answer 429 otherwise."""
    name, head = f"{cluster.namespace}-none", "flowcontrol.apiserver.k8s.io/v1"
    limited = {"nominalConcurrencyShares": 0, "lendablePercent": 0, "borrowingLimitPercent": 0}
    limited["limitResponse"] = {"type": "Reject"}  # type: ignore[assignment]
    level = manifest(head, "PriorityLevelConfiguration", name, spec={"type": "Limited", "limited": limited})
    subject = {"kind": "ServiceAccount", "serviceAccount": {"name": "agent", "namespace": cluster.namespace}}
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True}
    paths = {"verbs": ["*"], "nonResourceURLs": ["*"]}
    rule = {
        "subjects": [subject],
        "resourceRules": [{**everything, "namespaces": ["*"]}],
        "nonResourceRules": [paths],
    }
    spec = {"matchingPrecedence": 3, "priorityLevelConfiguration": {"name": name}, "rules": [rule]}
    cluster.make(level)
    cluster.make(manifest(head, "FlowSchema", name, spec=spec))
    try:
        yield
    finally:
        cluster("delete", "flowschema", name)
        cluster("delete", "prioritylevelconfiguration", name)


def test_throttling_server_receives_all_works_in_the_end(limited: Real, tmp_path: Path) -> None:
    cluster, names = limited.cluster, [f"busy-{count}" for count in range(BUSY)]
    limited.send(config_map("first", a="b"))
    limited.wait_healthy("ConfigMap", "first")
    with throttled(cluster):
        limited.send(*(config_map(name, a="b") for name in names))
        log = tmp_path / "agent.log"
        eventually(lambda: b": 429 " in log.read_bytes(), "a call that was put off")
        for name in names:
            limited.wait_healthy("ConfigMap", name)
        # A server that answers 429 is still reachable.
        assert limited.control.condition(limited.name)["status"] == "True"


def test_server_frozen_for_a_minute_is_reported_and_served_afterwards(limited: Real) -> None:
    if PROCESSES not in os.environ:
        pytest.skip(
            f"only a cluster of tests.clusters can be frozen: {PROCESSES} names none, so NOTHING is shown"
        )
    control, cluster = limited.control, limited.cluster
    server = int((Path(os.environ[PROCESSES]) / "kube-apiserver" / "pid").read_text())
    limited.send(deployment("before"))
    limited.wait_healthy("Deployment", "before", readyReplicas=2)
    os.kill(server, signal.SIGSTOP)
    try:
        since = time.monotonic()
        eventually(
            lambda: control.condition(limited.name)["status"] == "False", "a cluster that is not ready"
        )
        assert control.condition(limited.name)["reason"] == "ClusterNotReachable"
        limited.send(deployment("during"))
        time.sleep(max(0.0, OUTAGE_S - (time.monotonic() - since)))
    finally:
        os.kill(server, signal.SIGCONT)
    eventually(lambda: control.condition(limited.name)["status"] == "True", "a ready cluster again")
    # The cluster's own controllers take longer to recover than the agent.
    eventually(lambda: cluster.get("deployment", "during"), "the work of the outage")
    eventually(lambda: limited.status("Deployment", "during").get("applied") is True, "the report")
    cluster("scale", "deployment", "before", "--replicas", "3")
    eventually(lambda: cluster.field("deployment", "before", ".spec.replicas") == "2", "the corrected drift")


def test_killed_agent_repeats_no_write(real: Real) -> None:
    cluster, names = real.cluster, [f"map-{count}" for count in range(20)]
    real.send(*(config_map(name, a="b") for name in names))
    for name in names:
        real.wait_healthy("ConfigMap", name)
    before = [cluster.field("configmap", name, ".metadata.resourceVersion") for name in names]
    real.agent.kill()
    cluster.merge("configmap", names[0], {"data": {"a": "drifted"}})
    cluster("delete", "configmap", names[1])
    real.agent.launch()
    eventually(lambda: cluster.field("configmap", names[0], ".data.a") == "b", "the drift during the outage")
    eventually(lambda: cluster.get("configmap", names[1]), "the ConfigMap that was deleted during the outage")
    after = [cluster.field("configmap", name, ".metadata.resourceVersion") for name in names]
    assert after[2:] == before[2:]
