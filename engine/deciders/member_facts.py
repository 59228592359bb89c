"""Facts of member clusters: manifests for scheduling, the queue of clusters to empty, and reported ResourceQuotas."""

import bisect
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

import msgspec

from engine.domain import clusters as domain
from engine.kubeapi.values import quantity
from engine.objects import clusters as manifests
from engine.placement import requests
from events import clusters, times
from events.validation import verdicts

READY: Final = str(True)
"""Status of the Ready condition of a ready cluster."""

QuotaAmounts: TypeAlias = dict[str, dict[str, dict[str, int]]]
"""Unused amounts of ResourceQuotas by namespace, cluster and resource: cpu in millicores, others in whole units."""


class Queue:
    """Clusters that wait to be emptied, sorted by time.

    The next call of ``ordered`` evaluates the clusters in ``changed`` again.
    """

    def __init__(self) -> None:
        self.changed: set[str] = set()
        self._order: list[tuple[int, str]] | None = None
        self._positions: dict[str, tuple[int, str]] = {}

    def ordered(self, names: Iterable[str], since_ms: Callable[[str], int | None]) -> list[tuple[int, str]]:
        """Return (since_ms, name) of the waiting clusters, sorted.

        ``since_ms`` returns None for a cluster that does not wait. The first call evaluates all clusters in
        ``names``, later ones only those in ``changed``: ``since_ms`` must return the same result for all
        others.
        """
        if self._order is None:
            self._order, self.changed = [], set(names)
        for name in self.changed:
            # Find the old entry by its stored key: the cluster's current values differ already.
            if (entry := self._positions.pop(name, None)) is not None:
                del self._order[bisect.bisect_left(self._order, entry)]
            if (since := since_ms(name)) is not None:
                self._positions[name] = (since, name)
                bisect.insort(self._order, (since, name))
        self.changed = set()
        return self._order


def changed(old: manifests.ClusterManifest | None, taken: verdicts.Taken) -> manifests.ClusterManifest:
    """Return the cluster's manifest after an input about it.

    Raises AssertionError for a cluster that never joined (the verdicts refuse such inputs), TypeError for an
    event that changes no cluster.
    """
    data = taken.data
    if isinstance(data, clusters.ClusterJoined):
        return _joined(old, data, taken.at_ms)
    if old is None:
        message = f"{type(data).__name__} of a cluster that never joined was taken"
        raise AssertionError(message)
    replace = msgspec.structs.replace
    match data:
        case clusters.ClusterLeaving():
            if old.metadata.deletion_timestamp is not None:
                return old
            stamp = times.to_text(taken.at_ms)
            return replace(old, metadata=replace(old.metadata, deletion_timestamp=stamp))
        case clusters.ClusterLabelled(labels=labels):
            return replace(old, metadata=replace(old.metadata, labels=labels))
        case clusters.ClusterApisReported(apis=apis):
            return replace(old, status=replace(old.status, api_enablements=_enablements(apis)))
        case clusters.ClusterDescribed(provider=provider, region=region, zones=zones):
            return replace(old, spec=replace(old.spec, provider=provider, region=region, zones=zones))
        case clusters.ClusterTainted(taint=taint):
            taints = domain.with_taint(old.spec.taints, _taint(taint, taken.at_ms))
            return old if taints is old.spec.taints else replace(old, spec=replace(old.spec, taints=taints))
        case clusters.ClusterUntainted(key=key, effect=effect):
            taints = domain.without_taint(old.spec.taints, key, effect)
            return replace(old, spec=replace(old.spec, taints=taints))
        case _:
            message = f"{type(data).__name__} changes no cluster"
            raise TypeError(message)


def _joined(
    old: manifests.ClusterManifest | None, data: clusters.ClusterJoined, at_ms: int
) -> manifests.ClusterManifest:
    models = tuple(
        manifests.ResourceModel(
            grade=model.grade,
            ranges=tuple(manifests.ModelRange(name=r.name, min=r.min, max=r.max) for r in model.ranges),
        )
        for model in data.resource_models
    )
    return manifests.ClusterManifest(
        metadata=manifests.ClusterMetadata(
            name=data.name,
            labels=data.labels,
            # Leaving is final: a cluster that joins again while leaving is still leaving.
            deletion_timestamp=old.metadata.deletion_timestamp if old else None,
        ),
        spec=manifests.ClusterSpec(
            provider=data.provider,
            region=data.region,
            zones=data.zones,
            taints=tuple(_taint(taint, at_ms) for taint in data.taints),
            resource_models=models,
            sync_mode=data.sync_mode,
        ),
        status=manifests.ClusterStatus(
            api_enablements=_enablements(data.apis),
            resource_summary=old.status.resource_summary if old else None,
        ),
    )


def _enablements(apis: Iterable[clusters.ApiKind]) -> tuple[manifests.ApiEnablement, ...]:
    return tuple(
        manifests.ApiEnablement(
            group_version=api.group_version,
            resources=tuple(manifests.ApiResource(kind=kind) for kind in api.kinds),
        )
        for api in apis
    )


def _taint(taint: clusters.Taint, at_ms: int) -> manifests.Taint:
    added = times.to_text(domain.since(taint, at_ms).time_added_ms or 0)
    return manifests.Taint(key=taint.key, effect=taint.effect, value=taint.value, time_added=added)


def summary(report: clusters.CapacityReported) -> manifests.ResourceSummary:
    """Return the resources that a cluster reports."""
    return manifests.ResourceSummary(
        allocatable=dict(report.allocatable),
        allocated=dict(report.allocated),
        allocating=dict(report.allocating),
        allocatable_modelings=tuple(
            manifests.GradeCount(grade=modeling.grade, count=modeling.count) for modeling in report.modelings
        ),
    )


class QuotaLimits:
    """The ResourceQuotas that clusters report: the amounts left, and how many more replicas these allow.

    The mapping ``free`` is not copied but changed in place.
    """

    def __init__(self, free: QuotaAmounts | None = None) -> None:
        self.free: QuotaAmounts = {} if free is None else free
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

    def ceilings(self, namespace: str, amounts: requests.Requests) -> tuple[tuple[str, int], ...]:
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
