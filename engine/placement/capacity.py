"""Room in clusters: what a report says, as integers that a column holds.

One cluster's report becomes a `Capacity`; the fleet keeps the columns, `estimate` turns them into replicas.
"""

from typing import Final

import msgspec

from engine.objects import clusters, quantity

UNITS_MAX: Final = 2**62 - 1
"""More free units than this count as this many, so that an int64 column holds them."""

ROOM_MAX: Final = 2**44
"""More free replicas than this in one cluster count as this many, so that sums over a fleet stay exact in int64."""


class Grade(msgspec.Struct, frozen=True, gc=False):
    """How many nodes of one grade are free, and what each holds at least (never negative, at most `UNITS_MAX`)."""

    count: int
    holds: dict[str, int]


class Capacity(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Free pods, free units of each resource (never negative), and the nodes of a resource model, if one is in use."""

    pods: int = 0
    units: dict[str, int] = {}
    grades: tuple[Grade, ...] = ()


def capacity(cluster: clusters.ClusterManifest) -> Capacity:
    """Read the room that a cluster reports; no summary is no room.

    Raises `quantity.QuantityError` where a quantity is malformed.
    """
    summary = cluster.status.resource_summary
    if summary is None:
        return Capacity()
    units = {resource: _free_units(summary, resource) for resource in summary.allocatable}
    return Capacity(
        pods=units.pop("pods", 0), units=units, grades=_grades(cluster.spec.resource_models, summary)
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
    """Nodes by grade; nothing where no model is in use, or where a negative count makes it useless."""
    free = summary.allocatable_modelings
    if any(nodes.count < 0 for nodes in free):
        return ()
    grades: list[Grade] = []
    for model in sorted(models, key=lambda model: model.grade) if free else ():
        holds = {
            held.name: _bounded(quantity.counted_units(held.name, quantity.nano_units(held.min)))
            for held in model.ranges
        }
        grades.append(Grade(sum(nodes.count for nodes in free if nodes.grade == model.grade), holds))
    return tuple(grades)
