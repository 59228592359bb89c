"""Selection of candidates by spread constraints, on clusters or on regions.

The rules of Karmada's scheduler: without constraints, or with static weights, all candidates are chosen. Otherwise
a region constraint is used if there is one, else a cluster constraint. Provider and zone constraints are only filters.

By region: score the regions, choose a combination (`combinations`), then choose clusters in them. Few candidates are
scored in plain Python, which is faster than array operations; a property test shows that both give the same result.
"""

import numpy as np

from engine.objects import placements
from engine.placement import combinations, encoded_columns, failures, scheduling_context


def select(context: scheduling_context.Context) -> encoded_columns.Integers | None:
    """Return positions of the chosen candidates, in the order of choice; None means all.

    Raises `failures.SpreadError` if a constraint cannot be satisfied.
    """
    masks = context.masks
    if masks.ignores_spread:
        return None
    if masks.regions is not None:
        return _select_regions(context, masks.spread["region"], masks.spread.get("cluster"), masks.regions)
    if "cluster" in masks.spread:
        return _select_clusters(context, masks.spread["cluster"])
    msg = "just support cluster and region spread constraint"
    raise failures.SpreadError(msg)


def _select_clusters(
    context: scheduling_context.Context, constraint: placements.SpreadConstraint
) -> encoded_columns.Integers:
    """Return the best ``maxGroups`` clusters.

    If replicas are divided, some of these clusters are exchanged for clusters with more capacity until all replicas
    fit. Raises SpreadError if there are fewer than ``minGroups`` clusters, or the replicas do not fit.
    """
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
    """Exchange some of the first ``count`` clusters for clusters with more capacity until all replicas fit there.

    The last of the ``count`` clusters is exchanged first. Return the new order; None if the replicas do not fit.
    """
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


def _select_regions(
    context: scheduling_context.Context,
    constraint: placements.SpreadConstraint,
    cluster_constraint: placements.SpreadConstraint | None,
    ranks: tuple[list[str], encoded_columns.Integers],
) -> encoded_columns.Integers:
    """Return positions of candidates: the best one of each chosen region, then the best others in these regions.

    Raises `failures.SpreadError` if there are too few regions, or too few clusters in every combination.
    """
    clusters = cluster_constraint or placements.SpreadConstraint(spread_by_field="cluster")
    if len(context.index) <= encoded_columns.FEW_CLUSTERS:
        by_region, regions = _score_few(context, constraint, clusters, ranks)
    else:
        by_region, regions = _score(context, constraint, clusters, ranks)
    if len(regions) < constraint.min_groups:
        msg = "the number of feasible region is less than spreadConstraint.MinGroups"
        raise failures.SpreadError(msg)
    chosen = combinations.choose(regions, constraint.min_groups, constraint.max_groups, clusters.min_groups)
    if not chosen:
        msg = "the number of clusters is less than the cluster spreadConstraint.MinGroups"
        raise failures.SpreadError(msg)
    best = by_region[[region.start for region in chosen]]
    extra = min(sum(region.size for region in chosen), clusters.max_groups) - len(best)
    if extra <= 0:
        return best
    others = np.zeros(len(by_region), dtype=np.bool_)
    for region in chosen:
        others[by_region[region.start + 1 : region.start + region.size]] = True
    return np.concatenate((best, context.order[others[context.order]][:extra]))


def _target(context: scheduling_context.Context, constraint: placements.SpreadConstraint) -> int:
    """Number of replicas that each region should hold; 0 without minGroups, as in Karmada's scheduler."""
    return -(-context.request.replicas // constraint.min_groups) if constraint.min_groups > 0 else 0


def _score_few(
    context: scheduling_context.Context,
    constraint: placements.SpreadConstraint,
    clusters: placements.SpreadConstraint,
    ranks: tuple[list[str], encoded_columns.Integers],
) -> tuple[encoded_columns.Integers, list[combinations.Region]]:
    """Return ordered candidates and scored regions as ``_score`` does, in plain Python, for few candidates."""
    names, codes = ranks
    coded = codes[context.index].tolist()
    members: dict[int, list[int]] = {}
    for position in context.order.tolist():
        members.setdefault(coded[position], []).append(position)
    available = context.available.tolist()
    current = set(context.previous.positions.tolist())
    target = _target(context, constraint)
    least = max(clusters.min_groups, constraint.min_groups, 1)
    by_region: list[int] = []
    regions: list[combinations.Region] = []
    for code in sorted(members):
        positions = members[code]
        capacities = [available[position] for position in positions]
        are_current = [position in current for position in positions]
        if context.masks.duplicates:
            fits = [
                is_current
                for free, is_current in zip(capacities, are_current, strict=True)
                if free >= context.request.replicas
            ]
            score = _duplicated_score(len(fits), sum(fits))
        else:
            score = _divided_score(capacities, are_current, target, least)
        regions.append(combinations.Region(names[code], len(by_region), len(positions), score))
        by_region += positions
    return np.array(by_region, dtype=np.int64), regions


def _divided_score(capacities: list[int], are_current: list[bool], target: int, least: int) -> int:
    """Score of a region: 1000 per replica that fits, up to ``target``, plus the mean score of the clusters used.

    The clusters used are the first ones that hold ``target`` replicas together, at least ``least`` of them.
    """
    total = used = 0
    for free in capacities:
        if used >= least and total >= target:
            break
        total += free
        used += 1
    return (
        min(sum(capacities), target) * 1000
        + scheduling_context.SCORE_OF_CURRENT * sum(are_current[:used]) // used
    )


def _score(
    context: scheduling_context.Context,
    constraint: placements.SpreadConstraint,
    clusters: placements.SpreadConstraint,
    ranks: tuple[list[str], encoded_columns.Integers],
) -> tuple[encoded_columns.Integers, list[combinations.Region]]:
    """Return the candidates ordered by region, the best of each region first, and the regions with their scores."""
    names, codes = ranks
    order = context.order
    coded = codes[context.index]
    by_region = order[np.argsort(coded[order].astype(np.uint16), kind="stable")]
    sizes = np.bincount(coded, minlength=len(names))
    present = np.flatnonzero(sizes)
    sizes = sizes[present]
    starts = np.cumsum(sizes) - sizes
    if context.masks.duplicates:
        takes_all = context.available[by_region] >= context.request.replicas
        fits = np.add.reduceat(takes_all, starts, dtype=np.int64).tolist()
        current = np.add.reduceat(takes_all & context.current[by_region], starts, dtype=np.int64).tolist()
        scores = [
            _duplicated_score(clusters_fitting, clusters_current)
            for clusters_fitting, clusters_current in zip(fits, current, strict=True)
        ]
    else:
        least = max(clusters.min_groups, constraint.min_groups, 1)
        scores = _divided_scores(context, by_region, _target(context, constraint), least, starts, sizes)
    return by_region, [
        combinations.Region(names[code], start, size, score)
        for code, start, size, score in zip(
            present.tolist(), starts.tolist(), sizes.tolist(), scores, strict=True
        )
    ]


def _duplicated_score(fitting: int, current: int) -> int:
    """Score of a region: 1000 per cluster that can hold all replicas, plus the mean of these clusters' scores."""
    return fitting * 1000 + scheduling_context.SCORE_OF_CURRENT * current // fitting if fitting else 0


def _divided_scores(
    context: scheduling_context.Context,
    by_region: encoded_columns.Integers,
    target: int,
    least: int,
    starts: encoded_columns.Integers,
    sizes: encoded_columns.Integers,
) -> list[int]:
    """Compute each region's ``_divided_score``; ``starts`` and ``sizes`` are the ranges of regions in ``by_region``."""
    sums = _prefix_sums(context.available[by_region])
    current = _prefix_sums(context.current[by_region])
    reached = np.searchsorted(sums[1:], sums[starts] + target) - starts + 1
    used = np.minimum(np.maximum(reached, least), sizes)
    fit = scheduling_context.SCORE_OF_CURRENT * (current[starts + used] - current[starts]) // used
    placed = np.minimum(sums[starts + sizes] - sums[starts], target)
    return [replicas * 1000 + score for replicas, score in zip(placed.tolist(), fit.tolist(), strict=True)]


def _prefix_sums(column: encoded_columns.Integers | encoded_columns.Mask) -> encoded_columns.Integers:
    """Prefix sums of a column, beginning with 0."""
    return np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(column, dtype=np.int64)))
