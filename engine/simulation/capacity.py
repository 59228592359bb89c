"""Capacity of a member and its use: exact sums in billionths of each resource's unit.

Capacity is counted for the whole cluster, as in its resource summary; the distribution of replicas over nodes
is not simulated. A replica takes capacity from its admission on. Pending replicas take none; their requests may
exceed the capacity.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from engine.kubeapi.values import quantity
from engine.simulation import specs
from engine.works.amounts import Amounts

AMOUNT_MAX: Final = (2**63 - 1) * quantity.NANO
"""The largest amount that is reported, in billionths: the largest integer that a Kubernetes quantity holds."""


class Capacity(Struct):
    """Sums by resource: allocatable, and the use by running, starting and pending replicas."""

    allocatable: dict[str, int]
    running: dict[str, int] = {}
    starting: dict[str, int] = {}
    pending: dict[str, int] = {}


def capacity_of(nodes: Iterable[specs.NodeGroup]) -> Capacity:
    """Return the capacity of a cluster with these nodes; raises quantity.QuantityError for malformed quantities."""
    total: dict[str, int] = {}
    for group in nodes:
        for resource, text in group.allocatable.items():
            total[resource] = total.get(resource, 0) + quantity.nano_units(text) * group.count
    return Capacity(total)


def add(sums: dict[str, int], amounts: Amounts, count: int) -> None:
    """Add the requests of ``count`` replicas (``amounts`` each) to sums; a negative count subtracts them."""
    for resource, amount in amounts:
        sums[resource] = sums.get(resource, 0) + amount * count


def replicas_that_fit(cluster_capacity: Capacity, amounts: Amounts, count: int) -> int:
    """Return how many of ``count`` replicas fit into the free capacity."""
    for resource, amount in amounts:
        used = cluster_capacity.running.get(resource, 0) + cluster_capacity.starting.get(resource, 0)
        count = min(count, max(cluster_capacity.allocatable.get(resource, 0) - used, 0) // amount)
    return count


def scarce(cluster_capacity: Capacity, amounts: Amounts, count: int) -> list[str]:
    """Return the resources of which less is free than ``count`` replicas need."""
    return [
        resource
        for resource, amount in amounts
        if replicas_that_fit(cluster_capacity, ((resource, amount),), count) < count
    ]


def total_quantities(cluster_capacity: Capacity, *sums: Mapping[str, int]) -> dict[str, str]:
    """Return ``sums``, added up by resource, as Kubernetes quantities; allocatable resources are included even if 0.

    A negative total becomes 0; it occurs in the model of a cluster that reported less use than its workloads have.
    """
    names = {
        *cluster_capacity.allocatable,
        *(resource for sums_of in sums for resource, amount in sums_of.items() if amount),
    }
    totals = {name: sum(sums_of.get(name, 0) for sums_of in sums) for name in names}
    return quantity.texts({name: min(max(total, 0), AMOUNT_MAX) for name, total in totals.items()})
