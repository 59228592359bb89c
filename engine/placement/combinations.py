"""Which regions: the best combination of scored ones.

By the reference scheduler, whose search over combinations is exponential in the number of regions. Where any regions
as few as allowed have enough clusters, the best combination is simply the regions with the best scores. Only where
clusters are lacking is there a search; it stops after `STEPS_MAX` steps and takes the best one found so far, which only
fleets with very many regions ever see.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

STEPS_MAX: Final = 50_000


class Region(msgspec.Struct, frozen=True, gc=False):
    """One region: where its candidates start in the list of all by region, how many there are, its score."""

    name: str
    start: int
    size: int
    score: int


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
