"""Selection of regions: the best combination of scored regions.

Karmada's scheduler searches all combinations, which is exponential in the number of regions. Let n be the least number
of regions. If even the n smallest regions have enough clusters, the best combination is the n regions with the highest
scores. Otherwise there is a search; it stops after `STEPS_MAX` steps with the best combination found. Only fleets with
very many regions reach this limit.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

STEPS_MAX: Final = 50_000


class Region(msgspec.Struct, frozen=True, gc=False):
    """A region: index of its first candidate in the list ordered by region, number of candidates, and score."""

    name: str
    start: int
    size: int
    score: int


def choose(regions: list[Region], least: int, most: int, clusters_min: int) -> list[Region]:
    """Return the best combination of regions, ordered by score; empty if none has enough clusters.

    If even the ``least`` smallest regions have enough clusters, then all combinations of ``least`` regions do. The
    best one has the regions with the highest scores; of equal scores those with the most clusters, then the first
    names. `search` would return the same.
    """
    count = max(least, 1)
    sizes = sorted([region.size for region in regions])
    if count > len(regions) or count > most or sum(sizes[:count]) < clusters_min:
        return search(regions, least, most, clusters_min)
    keys = sorted([(-region.score, -region.size, region.name, index) for index, region in enumerate(regions)])
    best = [regions[index] for *_, index in keys[:count]]
    return best if len({score for score, *_ in keys[:count]}) == count else _by_score(best)


def search(regions: list[Region], least: int, most: int, clusters_min: int) -> list[Region]:
    """Return the best of all combinations, tried one by one.

    Combinations are visited depth first. If another combination is a proper prefix of the best one, the shorter one
    is returned, since it needs fewer regions.
    """
    regions = sorted(regions, key=lambda region: (region.size, -region.score, region.name))
    # Entries differ in `number`, so the lists of regions in them are never compared.
    ranked = [
        (-score, -clusters, number, members)
        for number, (score, clusters, members) in enumerate(_combinations(regions, least, most, clusters_min))
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
    regions: list[Region], least: int, most: int, clusters_min: int
) -> Iterator[tuple[int, int, list[Region]]]:
    """Yield (total score, number of clusters, regions) of the combinations that satisfy both constraints.

    The constraints are ``least`` to ``most`` regions, and at least ``clusters_min`` clusters. The search is depth first
    in the order of ``regions`` and ends after `STEPS_MAX` steps; a combination that satisfies both is not extended.
    """
    count = len(regions)
    if least > most:
        return
    if count == least:
        clusters = sum(region.size for region in regions)
        if clusters >= clusters_min:
            yield sum(region.score for region in regions), clusters, regions
        return
    members: list[Region] = []
    indexes: list[int] = []
    score = clusters = depth = following = 0
    for _ in range(STEPS_MAX):
        if depth < most and following < count and depth + count - following >= least:
            region = regions[following]
            members.append(region)
            indexes.append(following)
            score += region.score
            clusters += region.size
            depth += 1
            following += 1
            if depth < least or clusters < clusters_min:
                continue
            yield score, clusters, members[:]
        elif not depth:
            return
        region = members.pop()
        score -= region.score
        clusters -= region.size
        depth -= 1
        following = indexes.pop() + 1
