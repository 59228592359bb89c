"""The topology of the compose file as local processes: its command lines, on brokers with its settings."""

import re
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Final

import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from engine.agent.agent_metrics import AgentCollector
from events import keys, topics
from tests import waiting
from tests.brokers.processes import LocalBrokers
from tests.compose import documents
from tests.scaleout.processes import Process

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(600)]

COMPOSE: Final = documents.compose()
TOKEN: Final = "a-token-for-tests"  # noqa: S105  # it opens nothing
TRACE: Final = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
WAIT_S: Final = 180.0
KEY: Final = keys.binding_key("Deployment", "default", "shop")
PATHS: Final = (
    "apps/v1/namespaces/default/deployments",
    "policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies",
)
SHOP: Final = b"""\
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: default}
spec:
  replicas: 6
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: shop, image: shop}]}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: shop, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment}]
  placement:
    replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted}
"""

Values = Mapping[tuple[str, tuple[tuple[str, str], ...]], float]


class Part(Process):
    """A service of the compose file, with a free local port and directory."""

    def __init__(self, service: str, number: int, log: str, directory: Path) -> None:
        words = [{"8080": "0", "9100": "0"}.get(word, word) for word in COMPOSE.services[service].command]
        self.data = directory / f"data-{number}"
        words = [str(self.data) if word == "/data" else word for word in words]
        super().__init__(f"{service}-{number}", log, directory, *words)
        self.environment["REBALLAST_TOKEN"] = TOKEN
        self.http = httpx.Client(trust_env=False, headers={"authorization": f"Bearer {TOKEN}"})

    def is_ready(self) -> bool:
        """Query the health check of the compose file."""
        match = re.search(r"url=http://127\.0\.0\.1:(\d+)|monitoring started\s+.*port=(\d+)", self.plain())
        if match is None:
            return False
        self.http.base_url = f"http://127.0.0.1:{match[1] or match[2]}"
        try:
            return self.http.get("/readyz").is_success
        except httpx.TransportError:
            return False

    def plain(self) -> str:
        """Return the output without colours."""
        return re.sub(r"\x1b\[[0-9;]*m", "", self.output())

    def figures(self) -> Values:
        """Return the metrics as Prometheus scrapes them."""
        text = self.http.get("/metrics").text
        return {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def figure(self, name: str) -> float:
        """Return the sum of a metric over its labels."""
        return sum(value for (metric, _), value in self.figures().items() if metric == f"reballast_{name}")


class Topology:
    def __init__(self, brokers: LocalBrokers, directory: Path) -> None:
        self.brokers = brokers
        log = f"kafka://{brokers.servers}/compose"
        count = COMPOSE.services["worker"].deploy["replicas"]
        self.workers = [Part("worker", number, log, directory) for number in range(1, count + 1)]
        self.api = Part("api", 1, log, directory)
        self.parts = [*self.workers, self.api]

    def shards(self) -> list[float]:
        return [worker.figure("worker_shards") for worker in self.workers]

    def until(self, is_so: Callable[[], bool]) -> None:
        waiting.until(is_so, lambda: "\n".join(part.last_lines() for part in self.parts), WAIT_S)

    def placed(self) -> dict[str, int]:
        """Return the placement of the binding; empty if there is none."""
        answer = self.api.http.get(f"/api/v1/bindings/{KEY}")
        if not answer.is_success:
            return {}
        return {cluster["name"]: cluster["replicas"] for cluster in answer.json()["spec"].get("clusters", [])}

    def traces(self) -> dict[str, str]:
        """Return the trace of the first event of each type about the binding."""
        traces: dict[str, str] = {}
        answer = self.api.http.get(f"/api/v1/timeline/{KEY}")
        # Under load the replica may answer 503 until it has caught up with the brokers.
        for event in answer.json()["items"] if answer.is_success else ():
            traces.setdefault(event["type"], event.get("trace", ""))
        return traces


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Generator[Topology]:
    """The whole topology, ready, with an applied and decided Deployment."""
    (broker, *_) = COMPOSE.brokers.values()
    with LocalBrokers(len(COMPOSE.brokers), properties=documents.properties(broker.environment)) as brokers:
        topology = Topology(brokers, tmp_path_factory.mktemp("compose"))
        try:
            for part in topology.parts:
                part.launch()
            for part in topology.parts:
                part.wait_until(part.is_ready)
            for path, manifest in zip(PATHS, yaml.safe_load_all(SHOP), strict=True):
                headers = {"traceparent": TRACE}
                answer = topology.api.http.post(f"/kubernetes/apis/{path}", json=manifest, headers=headers)
                assert answer.is_success, answer.text
            topology.until(lambda: sum(topology.placed().values()) == 6)
            yield topology
        finally:
            for part in topology.parts:
                part.kill()
                part.http.close()


def test_every_setting_is_valid_for_brokers(running: Topology) -> None:
    words = ["--describe", "--all", "--broker", "1", "--bootstrap-server", running.brokers.servers]
    output = running.brokers.run_tool("kafka.admin.ConfigCommand", *words)
    (broker, *_) = COMPOSE.brokers.values()
    for name, value in documents.properties(broker.environment).items():
        assert f" {name}={value} " in output


def test_applied_object_is_decided_and_each_shard_has_one_owner(running: Topology) -> None:
    running.until(lambda: sum(running.shards()) == topics.SHARDS and min(running.shards()) > 0)
    owner = ("reballast_worker_owns", (("shard", str(keys.shard_of(KEY))),))
    assert [owner in worker.figures() for worker in running.workers].count(True) == 1

    # A restarted worker counts from zero, but then the other one has decided something.
    assert sum(worker.figure("worker_decided_keys_total") for worker in running.workers) >= 1
    assert sum(worker.figure("worker_decision_latency_seconds_count") for worker in running.workers) >= 1
    assert running.api.figure("sequence_numbers_total") > 0
    running.until(lambda: running.api.figure("shard_lag_records") == 0)


def test_decisions_works_and_reports_have_the_trace_of_the_request(running: Topology) -> None:
    names = ("template-applied", "schedule-decided", "work-applied", "workload-reported")
    types = {f"io.reballast.{name}.v1" for name in names}
    # The members report when their pods have started.
    traces: dict[str, str] = {}

    def is_complete() -> bool:
        traces.update(running.traces())
        return types <= traces.keys()

    running.until(is_complete)
    assert {name: traces[name] for name in types} == dict.fromkeys(types, TRACE)


def test_each_metric_of_the_dashboard_is_exported_by_a_process(running: Topology) -> None:
    shown = {name for part in running.parts for name, _ in part.figures()}
    # Agents run elsewhere; their metrics are checked in test_figures.
    agents = {sample.name for metric in AgentCollector(["member1"]).collect() for sample in metric.samples}
    assert documents.metrics_named() - shown - agents == set()


def test_metrics_need_a_token_on_the_api_and_none_on_workers(running: Topology) -> None:
    with httpx.Client(trust_env=False) as stranger:
        assert (
            stranger.get(running.api.http.base_url.join("/metrics")).status_code == httpx.codes.UNAUTHORIZED
        )
        for worker in running.workers:
            assert stranger.get(worker.http.base_url.join("/metrics")).is_success


def test_stopped_worker_hands_its_shards_to_the_other(running: Topology) -> None:
    running.until(lambda: sum(running.shards()) == topics.SHARDS and min(running.shards()) > 0)
    stopped, other = running.workers
    assert stopped.stop() == 0
    running.until(lambda: other.figure("worker_shards") == topics.SHARDS)
    scale = {"spec": {"replicas": 9}}
    merge = {"content-type": "application/merge-patch+json"}
    answer = running.api.http.patch(f"/kubernetes/apis/{PATHS[0]}/shop/scale", json=scale, headers=merge)
    assert answer.is_success, answer.text
    running.until(lambda: sum(running.placed().values()) == 9)

    stopped.launch()
    stopped.wait_until(stopped.is_ready)
    running.until(lambda: sum(running.shards()) == topics.SHARDS and min(running.shards()) > 0)
