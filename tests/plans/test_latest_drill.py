"""The failures of a drill, and the results of the newest one."""

from engine.plans.drills import Latest, Outage, Result, outages
from events.kube_objects import KubeObject


def outage_of(name: str, missing: int) -> Result:
    outage = Outage("cluster", name, (name,))
    return Result(
        outage, moved=0, missing=missing, needed={}, recovered_ms=None, suffering=[], assumptions=[]
    )


def shown(latest: Latest) -> list[tuple[str, int]]:
    return [(result.outage.name, result.missing) for result in latest.results]


def test_results_of_one_drill_are_collected() -> None:
    latest = Latest()
    for result in (outage_of("a", 1), outage_of("b", 2), outage_of("a", 3)):
        latest.take(result, number=10, ended_ms=1)
    assert shown(latest) == [("b", 2), ("a", 3)]


def test_later_drill_replaces_the_results_and_an_earlier_one_that_ends_later_does_not() -> None:
    latest = Latest()
    latest.take(outage_of("a", 1), number=10, ended_ms=1)
    latest.take(outage_of("b", 2), number=20, ended_ms=2)
    latest.take(outage_of("c", 3), number=10, ended_ms=3)
    assert shown(latest) == [("b", 2)]
    assert (latest.number, latest.ended_ms) == (20, 2)


def test_zone_that_a_cluster_names_twice_is_the_same_failure_as_the_cluster() -> None:
    spec = {"zones": ["north-1", "north-1"], "region": "north"}
    cluster = KubeObject({"metadata": {"name": "member1"}, "spec": spec})
    assert outages([cluster]) == [Outage("cluster", "member1", ("member1",))]
    assert outages([cluster], ["zone"]) == [Outage("zone", "north-1", ("member1",))]


def test_failures_are_listed_by_domain_and_name_in_whatever_order_clusters_are_listed() -> None:
    regions = {"member1": "south", "member2": "north", "member3": "north", "member4": "south"}
    listed = [
        KubeObject({"metadata": {"name": name}, "spec": {"region": region}})
        for name, region in regions.items()
    ]
    expected = [*(("cluster", name) for name in regions), ("region", "north"), ("region", "south")]
    for clusters in (listed, listed[::-1]):
        assert [(outage.domain, outage.name) for outage in outages(clusters)] == expected
