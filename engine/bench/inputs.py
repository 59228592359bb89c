"""Inputs of the benchmarks as records: Deployments, policies, rebalancers, taints."""

import uuid
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from engine.process import installation
from engine.simulation import defaults, specs
from events import clusters, policies, shapes
from events import specs as spec_events
from events.client import statements
from events.json_values import Json
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


def joining(
    name: str, labels: Mapping[str, str] | None = None, taints: tuple[clusters.Taint, ...] = ()
) -> Iterator[shapes.Event]:
    """Events of a cluster that is ready and has enough capacity for everything, for runs without simulated members."""
    allocatable = {"cpu": "3200k", "memory": "12800Ti", "pods": "110M"}
    apis = (
        clusters.ApiKind(group_version="apps/v1", kinds=("Deployment",)),
        clusters.ApiKind(group_version="v1", kinds=("ConfigMap",)),
    )
    yield clusters.ClusterJoined(name=name, labels=dict(labels or {}), apis=apis, taints=taints)
    yield clusters.CapacityReported(name=name, allocatable=allocatable)
    yield clusters.ClusterHealthChanged(name=name, ready=True)


def joined() -> list[Record]:
    """Two clusters that join, for runs without simulated members."""
    return [_record(event) for name in ("member1", "member2") for event in joining(name)]


def health_report(cluster: str, grace_seconds: int) -> Record:
    """A report that a cluster is ready; the next one is due within ``grace_seconds``, 0 for never."""
    return _record(clusters.ClusterHealthChanged(name=cluster, ready=True, grace_seconds=grace_seconds))


def taint(cluster: str) -> Record:
    """A NoExecute taint that no policy tolerates."""
    mark = clusters.Taint(key="bench", effect="NoExecute")
    return _record(clusters.ClusterTainted(name=cluster, taint=mark))


def rebalancer(count: int) -> Record:
    """A rebalancer of the first ``count`` Deployments."""
    manifest = rebalancer_manifest("bench", map(name_of, range(count)))
    return _record(spec_events.RebalancerApplied(manifest=raw(manifest)))


def rebalancer_manifest(name: str, deployments: Iterable[str]) -> Json:
    """A rebalancer of the Deployments with these names in the namespace default."""
    workload = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default"}
    return {
        "apiVersion": "apps.karmada.io/v1alpha1",
        "kind": "WorkloadRebalancer",
        "metadata": {"name": name},
        "spec": {"workloads": [{**workload, "name": deployment} for deployment in deployments]},
    }


def name_of(index: int) -> str:
    return f"bench-{index}"


def raw(manifest: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(manifest))


def _record(data: shapes.Event) -> Record:
    return statements.record_of(
        statements.Statement(data=data), _SOURCE, installation.clock_ms(), str(uuid.uuid4())
    )
