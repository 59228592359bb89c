"""Facts of member clusters: manifests for scheduling, the queue of clusters to evict from, reported ResourceQuotas."""

import bisect
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final, TypeAlias

from engine.domain.clusters import Cluster
from engine.kubeapi.values import quantity
from engine.objects import clusters as manifests
from engine.placement import requests
from events import clusters, times

QuotaAmounts: TypeAlias = dict[str, dict[str, dict[str, int]]]
"""Unused amounts of ResourceQuotas by namespace, cluster and resource: cpu in millicores, others in whole units."""

_CACHED_MODELS_MAX: Final = 256


class Queue:
    """Clusters from which all workloads are to be evicted, one cluster after the other, sorted by time.

    The next call of ``ordered`` evaluates the clusters in ``changed`` again.
    """

    def __init__(self) -> None:
        self.changed: set[str] = set()
        self._order: list[tuple[int, str]] | None = None
        self._positions: dict[str, tuple[int, str]] = {}

    def ordered(self, names: Iterable[str], since_ms: Callable[[str], int | None]) -> list[tuple[int, str]]:
        """Return (since_ms, name) of the waiting clusters, sorted.

        ``since_ms`` returns None for a cluster that does not wait. The first call evaluates all clusters in ``names``,
        later ones only those in ``changed``: ``since_ms`` must return the same result as before for all others.
        """
        if self._order is None:
            self._order, self.changed = [], set(names)
        for name in self.changed:
            # Find the old entry by its stored position, because the cluster may have another time now.
            if (entry := self._positions.pop(name, None)) is not None:
                del self._order[bisect.bisect_left(self._order, entry)]
            if (since := since_ms(name)) is not None:
                self._positions[name] = (since, name)
                bisect.insort(self._order, (since, name))
        self.changed = set()
        return self._order


@lru_cache(_CACHED_MODELS_MAX)
def _models(grades: tuple[clusters.ResourceGrade, ...]) -> tuple[manifests.ResourceModel, ...]:
    return tuple(
        manifests.ResourceModel(
            grade=model.grade,
            ranges=tuple(manifests.ModelRange(name=r.name, min=r.min, max=r.max) for r in model.ranges),
        )
        for model in grades
    )


def manifest(name: str, cluster: Cluster) -> manifests.ClusterManifest:
    """Return the fields of a cluster that scheduling reads."""
    spec = cluster.spec
    enablements = tuple(
        manifests.ApiEnablement(
            group_version=api.group_version,
            resources=tuple(manifests.ApiResource(kind=kind) for kind in api.kinds),
        )
        for api in spec.apis
    )
    return manifests.ClusterManifest(
        metadata=manifests.ClusterMetadata(
            name=name,
            labels=spec.labels,
            deletion_timestamp=None if cluster.leaving_ms is None else times.to_text(cluster.leaving_ms),
        ),
        spec=manifests.ClusterSpec(
            provider=spec.provider,
            region=spec.region,
            zones=spec.zones,
            taints=tuple(map(_taint, spec.taints)),
            resource_models=_models(spec.models_in_use),
            sync_mode=spec.sync_mode,
        ),
        status=manifests.ClusterStatus(
            api_enablements=enablements,
            resource_summary=summary(cluster.capacity),
        ),
    )


def _taint(taint: clusters.Taint) -> manifests.Taint:
    added = times.to_text(taint.time_added_ms or 0)
    return manifests.Taint(key=taint.key, effect=taint.effect, value=taint.value, time_added=added)


def summary(capacity: clusters.CapacityReported | None) -> manifests.ResourceSummary | None:
    """Return the resources that a cluster reports, as scheduling reads them; None before the first report."""
    if capacity is None:
        return None
    return manifests.ResourceSummary(
        allocatable=dict(capacity.allocatable),
        allocated=dict(capacity.allocated),
        allocating=dict(capacity.allocating),
        allocatable_modelings=tuple(
            manifests.GradeCount(grade=modeling.grade, count=modeling.count)
            for modeling in capacity.modelings
        ),
    )


class QuotaLimits:
    """The ResourceQuotas that clusters report: the amounts left, and how many more replicas these allow.

    The mapping ``free`` is shared with the caller and changed in place.
    """

    def __init__(self, free: QuotaAmounts) -> None:
        self.free = free
        self._namespaces: dict[str, set[str]] = {}
        for namespace, by_cluster in self.free.items():
            for cluster in by_cluster:
                self._namespaces.setdefault(cluster, set()).add(namespace)

    def put(self, cluster: str, reported: tuple[clusters.NamespaceQuota, ...]) -> None:
        """Replace the quotas of a cluster by those that it reports now."""
        for namespace in self._namespaces.pop(cluster, ()):
            by_cluster = self.free[namespace]
            del by_cluster[cluster]
            if not by_cluster:
                del self.free[namespace]
        for quota in reported:
            left = {name: _units(name, amount) for name, amount in quota.free.items()}
            self.free.setdefault(quota.namespace, {})[cluster] = left
            self._namespaces.setdefault(cluster, set()).add(quota.namespace)

    def replica_limits(self, namespace: str, amounts: requests.Requests) -> tuple[tuple[str, int], ...]:
        """Return (cluster, number of replicas with these requests that its quotas still allow), sorted by cluster."""
        limited = self.free.get(namespace)
        if not limited:
            return ()
        per_replica = {quantity.PODS: 1, **dict(amounts)}
        result: list[tuple[str, int]] = []
        for cluster, left in sorted(limited.items()):
            counts = [left[name] // amount for name, amount in per_replica.items() if name in left]
            if counts:
                # A quota that was lowered below its use leaves a negative amount.
                result.append((cluster, max(min(counts), 0)))
        return tuple(result)


def _units(resource: str, amount: str) -> int:
    return quantity.counted_units(resource, quantity.nano_units(amount))
