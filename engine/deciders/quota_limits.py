"""ResourceQuotas in clusters, as their reports have them: how many further replicas they allow in a namespace."""

from typing import Final, TypeAlias

from engine.kubeapi.values import quantity
from engine.placement import requests
from events import clusters

_PODS: Final = "pods"

QuotaAmounts: TypeAlias = dict[str, dict[str, dict[str, int]]]
"""Amounts left to further pods, by namespace, cluster and resource, in the units of replica estimates."""


class QuotaLimits:
    """The free amounts of all namespaces with quotas. The mapping ``free`` is kept and changed, not copied."""

    def __init__(self, free: QuotaAmounts | None = None) -> None:
        self.free: QuotaAmounts = {} if free is None else free
        self._namespaces: dict[str, set[str]] = {}
        for namespace, by_cluster in self.free.items():
            for cluster in by_cluster:
                self._namespaces.setdefault(cluster, set()).add(namespace)

    def put(self, cluster: str, reported: tuple[clusters.NamespaceQuota, ...]) -> None:
        """Take the quotas that a cluster reports in place of its former ones."""
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
        """Return the further replicas with these requests that each cluster's quotas allow, in name order."""
        limited = self.free.get(namespace)
        if not limited:
            return ()
        per_replica = {_PODS: 1, **dict(amounts)}
        result: list[tuple[str, int]] = []
        for cluster, left in sorted(limited.items()):
            counts = [left[name] // amount for name, amount in per_replica.items() if name in left]
            if counts:
                result.append((cluster, min(counts)))
        return tuple(result)


def _units(resource: str, amount: str) -> int:
    return quantity.counted_units(resource, quantity.nano_units(amount))
