"""Amounts and limits of overall quotas (``spec.overall`` of FederatedResourceQuotas)."""

from typing import Final, TypeAlias

import msgspec

from engine.deciders.fact_changes import OverallChanged
from engine.domain.bindings import Targets
from engine.kubeapi.values import quantity
from engine.objects import workloads
from engine.placement import requests
from events import kube_objects
from events.json_values import Json, object_at

Amounts: TypeAlias = dict[str, int]
"""Amounts by resource: cpu in millicores, others in whole units."""

Limits: TypeAlias = dict[str, dict[str, Amounts]]
"""The overall limits by namespace and name of the FederatedResourceQuota."""

_NANO: Final = 10**9


def limits(manifest: msgspec.Raw) -> Amounts:
    """Return the overall limits of a FederatedResourceQuota."""
    overall: Json = object_at(kube_objects.decoded(msgspec.json.decode, manifest), "spec", "overall")
    nano = {resource: quantity.nano_units_of(amount) or 0 for resource, amount in overall.items()}
    return {resource: amount // _unit(resource) for resource, amount in nano.items()}


def put(known: Limits, namespace: str, name: str, overall: Amounts) -> list[OverallChanged]:
    """Store the overall limits of a FederatedResourceQuota (empty: it has none); return the change, if there is one."""
    before = known.get(namespace, {})
    after = {quota: amounts for quota, amounts in before.items() if quota != name}
    if overall:
        after[name] = overall
    if after == before:
        return []
    known.pop(namespace, None)
    if after:
        known[namespace] = after
    return [OverallChanged(namespace, not before or not after, "" if overall else name)]


def shown(resource: str, amount: int) -> str:
    """Return an amount as Kubernetes writes it."""
    return quantity.of_nano(resource.rpartition(".")[2], amount * _unit(resource))


def amounts(resource_requests: workloads.Requests | None, replicas: int) -> Amounts:
    """Return the requests of all replicas together."""
    if not resource_requests or not replicas:
        return {}
    per_replica = requests.parse_pairs(resource_requests)
    return {resource: min(amount * replicas, requests.AMOUNT_MAX) for resource, amount in per_replica}


def replicas(clusters: Targets) -> int:
    """Return the total number of replicas in all clusters."""
    return sum(count for _, count in clusters)


def add(totals: Amounts, more: Amounts, sign: int = 1) -> None:
    """Add amounts to totals, or subtract them with the sign -1."""
    for resource, amount in more.items():
        totals[resource] = totals.get(resource, 0) + sign * amount


def _unit(resource: str) -> int:
    """Return the unit of a resource's amounts, in billionths: a thousandth for cpu, one for others."""
    return _NANO // 1_000 if resource == "cpu" else _NANO
