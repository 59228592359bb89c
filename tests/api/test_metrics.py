"""Metrics for Prometheus."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry

from engine.log.port import LogError
from events import clusters, keys
from tests.api.servers import client, served_requests, serving
from tests.cli.servers import running
from tests.projections.logs import RecordBuilder
from tests.projections.stories import KEY, decided, failed, placed


async def test_metrics_are_served_for_prometheus() -> None:
    async with serving(placed(RecordBuilder())) as services, client(services) as http:
        figures = (await http.get("/metrics")).text

    assert "reballast_log_records 7.0" in figures
    assert 'reballast_kept{what="bindings"} 1.0' in figures
    assert 'reballast_records_total{sort="decisions.io.reballast.schedule-decided"} 2.0' in figures
    shard = keys.shard_of("default/foo-deployment")
    assert f'reballast_shard_lag_records{{shard="{shard}",topic="specs"}}' in figures
    assert f'reballast_shard_ignored_steps_total{{shard="{shard}"}} 0.0' in figures


async def test_metrics_of_clusters_have_the_names_of_karmada() -> None:
    """Its dashboards and alerts use these names (``pkg/metrics/cluster.go``)."""
    builder = RecordBuilder()
    capacity = clusters.CapacityReported(
        name="member1",
        allocatable={"cpu": "7500m", "memory": "2Gi", "pods": "110"},
        allocated={"cpu": "1", "pods": "3"},
        nodes=3,
        nodes_ready=2,
    )
    events = (
        clusters.ClusterJoined(name="member1"),
        capacity,
        clusters.ClusterHealthChanged(name="member1", ready=True),
        clusters.ClusterJoined(name="member2"),
    )
    async with serving([builder.input(event) for event in events]) as services, client(services) as http:
        lines = (await http.get("/metrics")).text.splitlines()

    assert [line for line in lines if line.startswith("cluster_")] == [
        'cluster_ready_state{member_cluster="member1"} 1.0',
        'cluster_ready_state{member_cluster="member2"} 0.0',
        'cluster_node_number{member_cluster="member1"} 3.0',
        'cluster_ready_node_number{member_cluster="member1"} 2.0',
        'cluster_memory_allocatable_bytes{member_cluster="member1"} 2.147483648e+09',
        'cluster_cpu_allocatable_number{member_cluster="member1"} 7.5',
        'cluster_pod_allocatable_number{member_cluster="member1"} 110.0',
        'cluster_cpu_allocated_number{member_cluster="member1"} 1.0',
        'cluster_pod_allocated_number{member_cluster="member1"} 3.0',
    ]
    assert any(line.startswith("process_resident_memory_bytes ") for line in lines)
    assert not any("_created" in line for line in lines)


async def test_bindings_that_could_not_be_scheduled_are_counted_by_reason() -> None:
    builder = RecordBuilder()
    batch = placed(builder)
    for output, expected in (
        (failed(KEY), ['reballast_unscheduled_bindings{reason="NoClusterFit"} 1.0']),
        (decided(KEY, member1=3), []),
    ):
        batch += builder.decide(output)
        async with serving(batch) as services, client(services) as http:
            lines = (await http.get("/metrics")).text.splitlines()
        assert [line for line in lines if line.startswith("reballast_unscheduled")] == expected


async def test_metrics_are_served_while_the_end_of_the_log_is_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def unknown() -> int:
        raise LogError("the brokers do not answer")

    async with serving(placed(RecordBuilder())) as services, client(services) as http:
        await services.catch_up()
        monkeypatch.setattr(services.log, "newest", unknown)
        response = await http.get("/metrics")
        assert (await http.get("/api/v1/bindings")).status_code == 503

    assert response.status_code == 200
    assert "reballast_log_records 7.0" in response.text
    assert 'reballast_kept{what="bindings"} 1.0' in response.text


async def test_requests_are_counted_by_api_method_and_status() -> None:
    registry = CollectorRegistry()
    registry.register(await served_requests())

    def figure(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(name, {"api": "query", **labels})

    assert figure("reballast_requests_total", method="GET", code="200") == 1
    assert figure("reballast_requests_total", method="other", code="404") == 2
    assert figure("reballast_request_duration_seconds_count", method="other") == 2
    assert figure("reballast_requests_total", method="BREW", code="404") is None


@pytest.mark.slow
def test_running_server_counts_its_requests(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running(data):
        endpoint: dict[str, Any] = json.loads((data / "endpoint.json").read_bytes())
        headers = {"authorization": f"Bearer {endpoint['token']}"}
        httpx.get(f"{endpoint['url']}/api/v1/nothing", headers=headers)
        httpx.get(f"{endpoint['kube_url']}/api", headers=headers, verify=False)  # noqa: S501  # its own authority
        figures = httpx.get(f"{endpoint['url']}/metrics", headers=headers).text

    assert 'reballast_requests_total{api="query",code="404",method="GET"} 1.0' in figures
    assert 'reballast_request_duration_seconds_count{api="kubernetes",method="GET"}' in figures
