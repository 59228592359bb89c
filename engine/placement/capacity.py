"""Free capacity of clusters: a report converted to integers for columns.

A cluster's report becomes a `Capacity`; the fleet keeps the columns, and `estimate` converts them to
replicas.
"""

from typing import Final

import msgspec

from engine.kubeapi.values import quantity
from engine.objects import clusters

UNITS_MAX: Final = 2**62 - 1
"""Upper bound of free units in a column, so that int64 holds them."""

FREE_MAX: Final = 2**44
"""Upper bound of free replicas in one cluster, so that sums over a fleet are exact in int64."""

UNLIMITED: Final = 2**31 - 1
"""Free replicas in a cluster for a template without replicas: MaxInt32, which means "not estimated" in Karmada."""


class Grade(msgspec.Struct, frozen=True, gc=False):
    """Free nodes of one grade: their number, and the least units of each resource that such a node has."""

    count: int
    holds: dict[str, int]


class Capacity(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Free pods, free units by resource (never negative), and nodes by grade if the cluster has a resource model."""

    pods: int = 0
    units: dict[str, int] = {}
    grades: tuple[Grade, ...] = ()


def capacity(cluster: clusters.ClusterManifest) -> Capacity:
    """Return the free capacity that a cluster reports; an empty one without a resource summary.

    Raises `quantity.QuantityError` if a quantity is malformed.
    """
    summary = cluster.status.resource_summary
    if summary is None:
        return Capacity()
    units = {resource: _free_units(summary, resource) for resource in summary.allocatable}
    return Capacity(
        pods=units.pop(quantity.PODS, 0), units=units, grades=_grades(cluster.spec.resource_models, summary)
    )


def _free_units(summary: clusters.ResourceSummary, resource: str) -> int:
    nano = (
        quantity.nano_units(summary.allocatable[resource])
        - quantity.nano_units(summary.allocated.get(resource, "0"))
        - quantity.nano_units(summary.allocating.get(resource, "0"))
    )
    return _bounded(quantity.counted_units(resource, nano))


def _bounded(units: int) -> int:
    return min(max(units, 0), UNITS_MAX)


def _grades(
    models: tuple[clusters.ResourceModel, ...], summary: clusters.ResourceSummary
) -> tuple[Grade, ...]:
    """Nodes by grade; empty without a resource model, and if any count is negative."""
    free = summary.allocatable_modelings
    if any(nodes.count < 0 for nodes in free):
        return ()
    grades: list[Grade] = []
    for model in sorted(models, key=lambda model: model.grade) if free else ():
        holds = {
            minimum.name: _bounded(quantity.counted_units(minimum.name, quantity.nano_units(minimum.min)))
            for minimum in model.ranges
        }
        grades.append(Grade(sum(nodes.count for nodes in free if nodes.grade == model.grade), holds))
    return tuple(grades)
