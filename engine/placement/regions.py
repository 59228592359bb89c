"""Spread by region: score the regions, choose a combination of them, then clusters in them.

By the reference scheduler, whose search over combinations is exponential in the number of regions. Where any regions
as few as allowed have enough clusters, the best combination is simply the regions with the best scores. Only where
clusters are lacking is there a search; it stops after `STEPS_MAX` steps and takes the best one found so far, which only
fleets with very many regions ever see.
"""

from collections.abc import Iterator
from typing import Final

import msgspec
import numpy as np

from engine.objects import placements
from engine.placement import facts, failures, scenes

STEPS_MAX: Final = 50_000


class Region(msgspec.Struct, frozen=True, gc=False):
    """One region: where its candidates start in the list of all by region, how many there are, its score."""

    name: str
    start: int
    size: int
    score: int


def select(
    scene: scenes.Scene,
    constraint: placements.SpreadConstraint,
    cluster_constraint: placements.SpreadConstraint | None,
    ranks: tuple[list[str], facts.Integers],
) -> facts.Integers:
    """Positions of the chosen candidates: the best of each chosen region, then the best of the rest.

    Raises `failures.SpreadError` where there are too few regions, or too few clusters in any choice of them.
    """
    clusters = cluster_constraint or placements.SpreadConstraint(spread_by_field="cluster")
    order = scene.order
    codes = ranks[1][scene.index][order].astype(np.uint16)
    by_region = order[np.argsort(codes, kind="stable")]
    found = _score(scene, by_region, constraint, clusters, ranks)
    if len(found) < constraint.min_groups:
        msg = "the number of feasible region is less than spreadConstraint.MinGroups"
        raise failures.SpreadError(msg)
    chosen = choose(found, constraint.min_groups, constraint.max_groups, clusters.min_groups)
    if not chosen:
        msg = "the number of clusters is less than the cluster spreadConstraint.MinGroups"
        raise failures.SpreadError(msg)
    best = by_region[[region.start for region in chosen]]
    more = min(sum(region.size for region in chosen), clusters.max_groups) - len(best)
    if more <= 0:
        return best
    left = np.zeros(len(order), dtype=np.bool_)
    for region in chosen:
        left[by_region[region.start + 1 : region.start + region.size]] = True
    return np.concatenate((best, order[left[order]][:more]))


def _score(
    scene: scenes.Scene,
    by_region: facts.Integers,
    constraint: placements.SpreadConstraint,
    clusters: placements.SpreadConstraint,
    ranks: tuple[list[str], facts.Integers],
) -> list[Region]:
    """All regions that have candidates, with their scores."""
    names, codes = ranks
    sizes = np.bincount(codes[scene.index], minlength=len(names))
    present = np.flatnonzero(sizes)
    sizes = sizes[present]
    starts = np.cumsum(sizes) - sizes
    if scene.masks.duplicates:
        takes_all = scene.available[by_region] >= scene.request.replicas
        able = np.add.reduceat(takes_all, starts, dtype=np.int64).tolist()
        current = np.add.reduceat(takes_all & scene.current[by_region], starts, dtype=np.int64).tolist()
        scores = [_duplicated_score(able_here, held) for able_here, held in zip(able, current, strict=True)]
    else:
        scores = _divided_scores(scene, by_region, constraint, clusters, starts, sizes)
    return [
        Region(names[code], start, size, score)
        for code, start, size, score in zip(
            present.tolist(), starts.tolist(), sizes.tolist(), scores, strict=True
        )
    ]


def _duplicated_score(able: int, current: int) -> int:
    """Clusters that take all replicas count 1000 each, the mean of their scores decides among equals."""
    return able * 1000 + scenes.SCORE_OF_CURRENT * current // able if able else 0


def _divided_scores(
    scene: scenes.Scene,
    by_region: facts.Integers,
    constraint: placements.SpreadConstraint,
    clusters: placements.SpreadConstraint,
    starts: facts.Integers,
    sizes: facts.Integers,
) -> list[int]:
    """Replicas that a region takes of its share count 1000 each, the mean score of the clusters used comes second."""
    # The reference divides by an absent minGroups as well; what comes out counts as no share.
    target = -(-scene.request.replicas // constraint.min_groups) if constraint.min_groups > 0 else 0
    least = max(clusters.min_groups, constraint.min_groups, 1)
    sums = _running(scene.available[by_region])
    current = _running(scene.current[by_region])
    reached = np.searchsorted(sums[1:], sums[starts] + target) - starts + 1
    used = np.minimum(np.maximum(reached, least), sizes)
    fit = scenes.SCORE_OF_CURRENT * (current[starts + used] - current[starts]) // used
    placed = np.minimum(sums[starts + sizes] - sums[starts], target)
    return [replicas * 1000 + score for replicas, score in zip(placed.tolist(), fit.tolist(), strict=True)]


def _running(column: facts.Integers | facts.Mask) -> facts.Integers:
    """Sums of all beginnings of a column, the empty one first."""
    return np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(column, dtype=np.int64)))


def choose(found: list[Region], least: int, most: int, clusters_min: int) -> list[Region]:
    """The best combination of regions, ordered by score; nothing where none has enough clusters.

    Where the smallest regions, as few as allowed, have enough clusters, then so have any others: every combination is
    of that length, and the one that wins has the regions of the greatest score, then of the most clusters, then the
    first of them in name order. That is what `search` would find.
    """
    count = max(least, 1)
    sizes = sorted([region.size for region in found])
    if count > len(found) or count > most or sum(sizes[:count]) < clusters_min:
        return search(found, least, most, clusters_min)
    keys = sorted([(-region.score, -region.size, region.name, place) for place, region in enumerate(found)])
    best = [found[place] for *_, place in keys[:count]]
    return best if len({score for score, *_ in keys[:count]}) == count else _by_score(best)


def search(found: list[Region], least: int, most: int, clusters_min: int) -> list[Region]:
    """The best of all combinations, tried one by one.

    Combinations come in the order of a depth-first walk; a list that is a proper beginning of the best one is
    preferred to it, for it does with fewer regions.
    """
    found = sorted(found, key=lambda region: (region.size, -region.score, region.name))
    # No two entries have the same number, so what follows it is never compared.
    ranked = [
        (-score, -clusters, number, members)
        for number, (score, clusters, members) in enumerate(_combinations(found, least, most, clusters_min))
    ]
    if not ranked:
        return []
    best = _by_score(min(ranked)[3])
    if any(len(members) < len(best) for *_, members in ranked):
        for *_, members in sorted(ranked):
            shorter = _by_score(members)
            if len(shorter) < len(best) and best[: len(shorter)] == shorter:
                best = shorter
    return best


def _by_score(members: list[Region]) -> list[Region]:
    return sorted(members, key=lambda region: (-region.score, region.name))


def _combinations(
    found: list[Region], least: int, most: int, clusters_min: int
) -> Iterator[tuple[int, int, list[Region]]]:
    """Combinations that satisfy both constraints, each as soon as it does, depth first in the given order.

    Each comes with its total score and its number of clusters.
    """
    count = len(found)
    if count == least:
        clusters = sum(region.size for region in found)
        if clusters >= clusters_min:
            yield sum(region.score for region in found), clusters, found
        return
    path: list[Region] = []
    places: list[int] = []
    score = clusters = depth = following = 0
    for _ in range(STEPS_MAX):
        if depth < most and following < count and depth + count - following >= least:
            region = found[following]
            path.append(region)
            places.append(following)
            score += region.score
            clusters += region.size
            depth += 1
            following += 1
            if depth < least or clusters < clusters_min:
                continue
            yield score, clusters, path[:]
        elif not depth:
            return
        region = path.pop()
        score -= region.score
        clusters -= region.size
        depth -= 1
        following = places.pop() + 1
