"""The choice of regions, on examples that can be worked out by hand."""

from engine.placement import regions


def region(name: str, *, size: int, score: int) -> regions.Region:
    return regions.Region(name, 0, size, score)


def names(found: list[regions.Region]) -> list[str]:
    return [each.name for each in found]


def test_the_greatest_total_score_wins_and_is_ordered_by_score() -> None:
    found = [region("a", size=1, score=10), region("b", size=2, score=30), region("c", size=3, score=20)]
    assert names(regions.choose(found, least=2, most=2, clusters_min=0)) == ["b", "c"]


def test_among_equal_scores_more_clusters_win() -> None:
    found = [region("a", size=1, score=10), region("b", size=1, score=10), region("c", size=5, score=10)]
    assert names(regions.choose(found, least=1, most=1, clusters_min=0)) == ["c"]


def test_regions_are_added_until_there_are_enough_clusters() -> None:
    found = [region("a", size=1, score=10), region("b", size=2, score=10), region("c", size=3, score=10)]
    assert names(regions.choose(found, least=1, most=3, clusters_min=6)) == ["a", "b", "c"]
    assert regions.choose(found, least=1, most=3, clusters_min=7) == []


def test_a_beginning_of_the_best_that_does_alone_is_preferred() -> None:
    # Depth first, smallest first: [a, b] has 4 clusters, then [b] alone is enough as well and begins [b, a].
    found = [region("a", size=1, score=1), region("b", size=3, score=5)]
    assert names(regions.choose(found, least=1, most=2, clusters_min=3)) == ["b"]


def test_as_many_regions_as_needed_leave_no_choice() -> None:
    found = [region("a", size=1, score=10), region("b", size=2, score=0)]
    assert len(regions.choose(found, least=2, most=1, clusters_min=3)) == 2
    assert regions.choose(found, least=2, most=2, clusters_min=4) == []


def test_very_many_regions_are_searched_for_a_bounded_time() -> None:
    found = [region(f"r{number:03}", size=1, score=number % 7) for number in range(300)]
    chosen = regions.choose(found, least=20, most=40, clusters_min=20)
    assert len(chosen) == 20
    assert regions.choose(found, least=20, most=40, clusters_min=20) == chosen
    assert regions.choose(found, least=1, most=40, clusters_min=300) == []
