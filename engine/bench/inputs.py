"""Inputs of the benchmarks as records: Deployments, policies, rebalancers, taints."""

import uuid
from collections.abc import Awaitable, Sequence
from typing import Final, Protocol

import msgspec

from engine.process import installation
from engine.simulation import defaults, specs
from events import clusters, policies, shapes
from events import specs as spec_events
from events.client import statements
from events.records import Record

GROUP: Final = 10
"""Number of clusters over which a policy divides its Deployments, in benchmarks with many clusters."""

BATCH: Final = 500
"""Number of records per append."""

_SOURCE = "/reballast/bench"
_AMPLE_NODES = specs.NodeGroup(count=100_000, allocatable={"cpu": "32", "memory": "128Gi", "pods": "1100"})


def members(count: int = 3) -> list[specs.MemberSpec]:
    """Member specs with enough capacity for everything and no start-up time."""
    return [
        msgspec.structs.replace(member, nodes=(_AMPLE_NODES,), startup_ms=0)
        for member in (defaults.three_members(0) if count == 3 else defaults.many_members(count))  # noqa: PLR2004  # the tutorial has three
    ]


class _AppendedLog(Protocol):
    def append(self, batch: Sequence[Record]) -> Awaitable[object]: ...


async def append(log: _AppendedLog, batch: Sequence[Record], size: int = BATCH) -> None:
    """Append records in batches of ``size``."""
    for start in range(0, len(batch), size):
        await log.append(batch[start : start + size])


def deployment(index: int, replicas: int = 3, group: int = 0) -> Record:
    """The Deployment with this index in the namespace default; ``group`` becomes a label."""
    container = {
        "name": "main",
        "image": "nginx",
        "resources": {"requests": {"cpu": "10m", "memory": "10Mi"}},
    }
    manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": name_of(index),
            "namespace": "default",
            "labels": {"app": "bench", "group": f"g{group}"},
        },
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "bench"}},
            "template": {"metadata": {"labels": {"app": "bench"}}, "spec": {"containers": [container]}},
        },
    }
    return _record(spec_events.TemplateApplied(manifest=raw(manifest)))


def policy(names: Sequence[str] = ("member1", "member2"), group: int | None = None) -> Record:
    """A policy that divides Deployments (all, or those of a group) over clusters by free capacity."""
    scheduling = {
        "replicaSchedulingType": "Divided",
        "replicaDivisionPreference": "Weighted",
        "weightPreference": {"dynamicWeight": "AvailableReplicas"},
    }
    name = "bench" if group is None else f"bench-{group}"
    selector: dict[str, object] = {"apiVersion": "apps/v1", "kind": "Deployment"}
    if group is not None:
        selector["labelSelector"] = {"matchLabels": {"group": f"g{group}"}}
    spec = {
        "resourceSelectors": [selector],
        "placement": {
            "clusterAffinity": {"clusterNames": list(names)},
            "replicaScheduling": scheduling,
        },
    }
    manifest = {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }
    return _record(policies.PolicyApplied(manifest=raw(manifest)))


def joined() -> list[Record]:
    """Events of two clusters with enough capacity for everything, for runs without members."""
    allocatable = {"cpu": "3200k", "memory": "12800Ti", "pods": "110M"}
    apis = (clusters.ApiKind(group_version="apps/v1", kinds=("Deployment",)),)
    records: list[Record] = []
    for name in ("member1", "member2"):
        records.append(_record(clusters.ClusterJoined(name=name, apis=apis)))
        records.append(_record(clusters.CapacityReported(name=name, allocatable=allocatable)))
        records.append(health_report(name))
    return records


def health_report(cluster: str, grace_seconds: int = 0) -> Record:
    """A report that a cluster is ready; with ``grace_seconds``, the next report is due within that time."""
    return _record(clusters.ClusterHealthChanged(name=cluster, ready=True, grace_seconds=grace_seconds))


def taint(cluster: str) -> Record:
    """A NoExecute taint that no policy tolerates."""
    mark = clusters.Taint(key="bench", effect="NoExecute")
    return _record(clusters.ClusterTainted(name=cluster, taint=mark))


def rebalancer(count: int) -> Record:
    """A rebalancer of the first ``count`` Deployments."""
    workloads = [
        {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": name_of(index)}
        for index in range(count)
    ]
    manifest = {
        "apiVersion": "apps.karmada.io/v1alpha1",
        "kind": "WorkloadRebalancer",
        "metadata": {"name": "bench"},
        "spec": {"workloads": workloads},
    }
    return _record(spec_events.RebalancerApplied(manifest=raw(manifest)))


def name_of(index: int) -> str:
    return f"bench-{index}"


def raw(manifest: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(manifest))


def _record(data: shapes.Event) -> Record:
    return statements.record_of(
        statements.Statement(data=data), _SOURCE, installation.clock_ms(), str(uuid.uuid4())
    )
