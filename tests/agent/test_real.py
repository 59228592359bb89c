"""An agent against a real cluster, where there is one: ``REBALLAST_TEST_KUBECONFIG`` names its kubeconfig.

Its own controllers act here, so that what they set and report is met as it is.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.agent.conftest import House
from tests.agent.house import Json, deployment, eventually, join, policy, serving

VARIABLE: Final = "REBALLAST_TEST_KUBECONFIG"
NAMESPACE: Final = "reballast-test"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        VARIABLE not in os.environ,
        reason=f"no real cluster: {VARIABLE} names no kubeconfig, so NOTHING is shown",
    ),
]


class Cluster:
    """The cluster, as its own people see it."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig

    def __call__(self, *words: str) -> str:
        """What kubectl prints; empty where it fails."""
        command = ["kubectl", "--kubeconfig", str(self.kubeconfig), "--namespace", NAMESPACE, *words]
        return subprocess.run(command, capture_output=True, check=False, timeout=120).stdout.decode()

    def get(self, kind: str, name: str) -> Json:
        """An object; an empty one where there is none."""
        return json.loads(self("get", kind, name, "--output", "json") or "{}")


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """The cluster, without the namespace of these tests before and after them."""
    found = Cluster(Path(os.environ[VARIABLE]))
    found("delete", "namespace", NAMESPACE, "--ignore-not-found")
    yield found
    found("delete", "namespace", NAMESPACE, "--ignore-not-found")


def test_a_deployment_and_its_service_run_drift_and_go(
    house: House, cluster: Cluster, tmp_path: Path
) -> None:
    control, key = house.control, f"{NAMESPACE}/real-deployment"
    namespace: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    service: Json = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "real", "namespace": NAMESPACE},
        "spec": {"selector": {"app": "real"}, "ports": [{"port": 80}]},
    }
    workload, to = deployment("real"), policy("real", ["real"])
    for each in (workload, to):
        each["metadata"]["namespace"] = NAMESPACE
    to["spec"]["resourceSelectors"].append({"apiVersion": "v1", "kind": "Service", "name": "real"})
    with serving(tmp_path, join(control, "real", cluster.kubeconfig, tmp_path)):
        control.apply(namespace, workload, service, to)
        eventually(
            lambda: (
                control.member_status(key, "real").get("health") == "Healthy"
                and control.member_status(key, "real")["status"]["readyReplicas"] == 2
            ),
            "two replicas that the cluster itself says are ready",
        )
        address = cluster.get("service", "real")["spec"]["clusterIP"]
        generation = cluster.get("deployment", "real")["metadata"]["generation"]

        cluster("scale", "deployment", "real", "--replicas", "3")
        eventually(lambda: cluster.get("deployment", "real")["spec"]["replicas"] == 2, "drift put right")
        assert cluster.get("service", "real")["spec"]["clusterIP"] == address
        assert cluster.get("deployment", "real")["metadata"]["generation"] == generation + 2

        assert control.ask("clusters/real")["status"]["nodeSummary"]["readyNum"] >= 1
        for kind in ("deployment", "service"):
            control.delete(kind, "real", NAMESPACE)
        eventually(lambda: not cluster.get("deployment", "real"), "the removal")
        eventually(lambda: not cluster.get("service", "real"), "the removal of the Service")
