"""Which candidates are chosen: spread constraints by cluster; those by region are `regions`.

By the reference scheduler: without constraints, or with static weights, all candidates; otherwise a region constraint
decides, or else a cluster constraint. Provider and zone constraints act through the filters alone.
"""

import numpy as np

from engine.objects import placements
from engine.placement import facts, failures, regions, scenes


def select(scene: scenes.Scene) -> facts.Integers | None:
    """Positions of the chosen candidates, in the order in which they were chosen; None means all of them.

    Raises `failures.SpreadError` where a constraint cannot be met.
    """
    masks = scene.masks
    if masks.ignores_spread:
        return None
    if masks.regions is not None:
        return regions.select(scene, masks.spread["region"], masks.spread.get("cluster"), masks.regions)
    if "cluster" in masks.spread:
        return _select_clusters(scene, masks.spread["cluster"])
    msg = "just support cluster and region spread constraint"
    raise failures.SpreadError(msg)


def _select_clusters(scene: scenes.Scene, constraint: placements.SpreadConstraint) -> facts.Integers:
    """The first clusters in order, as many as are wanted; for divided replicas, enough room in them."""
    if len(scene.index) < constraint.min_groups:
        msg = "the number of feasible clusters is less than spreadConstraint.MinGroups"
        raise failures.SpreadError(msg)
    wanted = max(min(len(scene.index), constraint.max_groups), 0)
    order = scene.order
    if not scene.masks.duplicates:
        order = _with_room(order, scene.available, wanted, scene.request.replicas)
        if order is None:
            msg = f"no enough resource when selecting {wanted} clusters"
            raise failures.SpreadError(msg)
    return order[:wanted]


def _with_room(
    order: facts.Integers, available: facts.Integers, wanted: int, replicas: int
) -> facts.Integers | None:
    """Swap the last chosen for roomier ones until all replicas fit; None where they never do."""
    rooms = available[order]
    sums = int(rooms[:wanted].sum())
    if sums >= replicas:
        # Even no cluster at all is "not enough" to the reference, whatever has to be placed.
        return order if wanted else None
    order = order.copy()
    for slot in range(wanted - 1, -1, -1):
        if sums >= replicas or wanted == len(order):
            break
        rival = wanted + int(np.argmax(rooms[wanted:]))
        gain = int(rooms[rival]) - int(rooms[slot])
        if gain > 0:
            sums += gain
            order[[slot, rival]] = order[[rival, slot]]
            rooms[[slot, rival]] = rooms[[rival, slot]]
    return order if sums >= replicas else None
