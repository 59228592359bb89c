"""The choice of regions: examples worked out by hand, and a search of all combinations."""

import itertools

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engine.objects import clusters, placements
from engine.placement import combinations, encoded_columns, fleet, requests, schedule
from tests.placement import strategies


def region(name: str, *, size: int, score: int) -> combinations.Region:
    return combinations.Region(name, 0, size, score)


def names(regions: list[combinations.Region]) -> list[str]:
    return [chosen_region.name for chosen_region in regions]


def test_greatest_total_score_wins_and_regions_are_ordered_by_score() -> None:
    regions = [region("a", size=1, score=10), region("b", size=2, score=30), region("c", size=3, score=20)]
    assert names(combinations.choose(regions, least=2, most=2, clusters_min=0)) == ["b", "c"]


def test_more_clusters_win_among_equal_scores() -> None:
    regions = [region("a", size=1, score=10), region("b", size=1, score=10), region("c", size=5, score=10)]
    assert names(combinations.choose(regions, least=1, most=1, clusters_min=0)) == ["c"]


def test_regions_are_added_until_there_are_enough_clusters() -> None:
    regions = [region("a", size=1, score=10), region("b", size=2, score=10), region("c", size=3, score=10)]
    assert names(combinations.choose(regions, least=1, most=3, clusters_min=6)) == ["a", "b", "c"]
    assert combinations.choose(regions, least=1, most=3, clusters_min=7) == []


def test_sufficient_prefix_of_the_best_regions_is_preferred() -> None:
    # Depth first, smallest first: [a, b] has 4 clusters, but [b] alone suffices and is a prefix of [b, a].
    regions = [region("a", size=1, score=1), region("b", size=3, score=5)]
    assert names(combinations.choose(regions, least=1, most=2, clusters_min=3)) == ["b"]


def test_all_regions_are_chosen_if_all_are_needed() -> None:
    regions = [region("a", size=1, score=10), region("b", size=2, score=0)]
    assert len(combinations.choose(regions, least=2, most=2, clusters_min=3)) == 2
    assert combinations.choose(regions, least=2, most=2, clusters_min=4) == []


def test_nothing_is_chosen_if_max_groups_is_absent() -> None:
    # An absent maxGroups is 0, even if there are exactly minGroups regions.
    regions = [region("a", size=1, score=10), region("b", size=2, score=0)]
    assert combinations.choose(regions, least=2, most=0, clusters_min=3) == []


@given(
    kinds=st.lists(st.tuples(st.integers(1, 3), st.sampled_from([0, 10, 1_000, 1_100])), max_size=9),
    least=st.integers(-1, 5),
    most=st.integers(-1, 6),
    clusters_min=st.integers(-1, 9),
)
def test_best_scores_equal_those_of_the_search(
    kinds: list[tuple[int, int]], least: int, most: int, clusters_min: int
) -> None:
    regions = [region(f"r{number}", size=size, score=score) for number, (size, score) in enumerate(kinds)]
    chosen = combinations.choose(regions[::-1], least, most, clusters_min)
    assert chosen == combinations.search(regions, least, most, clusters_min)


@given(
    sizes=st.lists(st.integers(1, 3), min_size=3, max_size=7),
    scores=st.lists(st.integers(0, 3), min_size=7, max_size=7),
    least=st.integers(1, 3),
)
def test_best_scores_are_the_maximum_over_all_combinations(
    sizes: list[int], scores: list[int], least: int
) -> None:
    regions = [
        region(f"r{number}", size=size, score=score)
        for number, (size, score) in enumerate(zip(sizes, scores, strict=False))
    ]
    assume(least < len(regions))
    chosen = combinations.choose(regions, least, least, 1)
    totals = [
        (sum(member.score for member in combination), sum(member.size for member in combination))
        for combination in itertools.combinations(regions, least)
    ]
    assert (sum(member.score for member in chosen), sum(member.size for member in chosen)) == max(totals)


def test_search_of_very_many_regions_is_bounded() -> None:
    regions = [region(f"r{number:03}", size=1, score=number % 7) for number in range(300)]
    chosen = combinations.choose(regions, least=20, most=40, clusters_min=21)
    assert len(chosen) == 21
    assert combinations.choose(regions, least=20, most=40, clusters_min=21) == chosen
    assert combinations.choose(regions, least=1, most=40, clusters_min=300) == []


def spread_by_region() -> st.SearchStrategy[placements.Placement]:
    """Placements that spread by region and cluster, for divided and other replicas."""
    preferences = st.none() | strategies.divided_by_capacity()
    return st.builds(_spread, st.integers(0, 3), st.integers(0, 3), st.integers(0, 4), preferences)


def _spread(
    least: int, more: int, clusters: int, preference: placements.ReplicaSchedulingStrategy | None
) -> placements.Placement:
    return placements.Placement(
        spread_constraints=(
            placements.SpreadConstraint(spread_by_field="region", min_groups=least, max_groups=least + more),
            placements.SpreadConstraint(
                spread_by_field="cluster", min_groups=clusters, max_groups=clusters + 4
            ),
        ),
        replica_scheduling=preference,
    )


@pytest.mark.parametrize("size", [2, encoded_columns.FEW_CLUSTERS])
def test_region_that_holds_the_replicas_is_chosen(size: int) -> None:
    def member(region_name: str, number: int, pods: int) -> clusters.ClusterManifest:
        return clusters.ClusterManifest(
            metadata=clusters.ClusterMetadata(name=f"{region_name}{number:02}"),
            spec=clusters.ClusterSpec(region=region_name),
            status=clusters.ClusterStatus(
                api_enablements=(strategies.DEPLOYMENTS,),
                resource_summary=clusters.ResourceSummary(allocatable={"pods": str(pods)}),
            ),
        )

    pods_of = {"east": 1, "west": 100}
    known = strategies.filled(
        [member(name, number, pods) for name, pods in pods_of.items() for number in range(size)]
    )
    by_region = placements.SpreadConstraint(spread_by_field="region", min_groups=1, max_groups=1)
    preference = placements.ReplicaSchedulingStrategy(
        replica_scheduling_type="Divided", replica_division_preference="Aggregated"
    )
    placement = placements.Placement(spread_constraints=(by_region,), replica_scheduling=preference)
    request = requests.Request(
        resource=strategies.resource(""), placement=placement, replicas=60, trigger="PlacementChanged"
    )
    decision = schedule.schedule(request, known)
    assert decision.clusters == (("west00", 60),)


@given(
    known=strategies.fleets(),
    request=strategies.scheduling_requests(),
    placement=spread_by_region(),
)
def test_scores_of_regions_are_equal_in_plain_python_and_arrays(
    known: fleet.Fleet, request: requests.Request, placement: placements.Placement
) -> None:
    request = msgspec.structs.replace(request, placement=placement)
    outcomes: list[tuple[object, ...]] = []
    for few in (0, fleet.CLUSTERS_MAX):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(encoded_columns, "FEW_CLUSTERS", few)
            decision = schedule.schedule(request, known, explain=True)
        outcomes.append((decision.clusters, decision.reason, decision.message, decision.explanation))
    assert outcomes[0] == outcomes[1]
