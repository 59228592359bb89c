"""Selection of candidates by spread constraints on clusters; `regions` handles those on regions.

The rules of Karmada's scheduler: all candidates are chosen without constraints and with static weights;
otherwise by a region constraint, or else by a cluster constraint. Provider and zone constraints act only as
filters.
"""

import numpy as np

from engine.objects import placements
from engine.placement import encoded_columns, failures, regions, scheduling_context


def select(context: scheduling_context.Context) -> encoded_columns.Integers | None:
    """Return positions of the chosen candidates, in the order of choice; None means all.

    Raises `failures.SpreadError` if a constraint cannot be satisfied.
    """
    masks = context.masks
    if masks.ignores_spread:
        return None
    if masks.regions is not None:
        return regions.select(context, masks.spread["region"], masks.spread.get("cluster"), masks.regions)
    if "cluster" in masks.spread:
        return _select_clusters(context, masks.spread["cluster"])
    msg = "just support cluster and region spread constraint"
    raise failures.SpreadError(msg)


def _select_clusters(
    context: scheduling_context.Context, constraint: placements.SpreadConstraint
) -> encoded_columns.Integers:
    """The first clusters in order, at most maxGroups; for divided replicas, with enough capacity together."""
    if len(context.index) < constraint.min_groups:
        msg = "the number of feasible clusters is less than spreadConstraint.MinGroups"
        raise failures.SpreadError(msg)
    count = max(min(len(context.index), constraint.max_groups), 0)
    order = context.order
    if not context.masks.duplicates:
        order = _with_more_capacity(order, context.available, count, context.request.replicas)
        if order is None:
            msg = f"no enough resource when selecting {count} clusters"
            reason = failures.UNSCHEDULABLE if context.request.prioritized else failures.SCHEDULER_ERROR
            raise failures.SpreadError(msg, reason)
    return order[:count]


def _with_more_capacity(
    order: encoded_columns.Integers, available: encoded_columns.Integers, count: int, replicas: int
) -> encoded_columns.Integers | None:
    """Replace the last chosen clusters by ones with more capacity until all replicas fit; None if they never do."""
    capacities = available[order]
    total = int(capacities[:count].sum())
    if total >= replicas:
        # Karmada reports insufficient resources also if no cluster is to be chosen, even for zero replicas.
        return order if count else None
    order = order.copy()
    for slot in range(count - 1, -1, -1):
        if total >= replicas or count == len(order):
            break
        replacement = count + int(np.argmax(capacities[count:]))
        gain = int(capacities[replacement]) - int(capacities[slot])
        if gain > 0:
            total += gain
            order[[slot, replacement]] = order[[replacement, slot]]
            capacities[[slot, replacement]] = capacities[[replacement, slot]]
    return order if total >= replicas else None
