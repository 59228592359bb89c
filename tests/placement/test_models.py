"""Resource models: node counts by columns equal those computed per cluster."""

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from engine.kubeapi.values import quantity
from engine.objects import clusters, placements
from engine.placement import capacity, fleet, requests, resource_models, schedule
from tests.placement import strategies

RESOURCES = ["cpu", "memory", "pods", "example.com/gpu", "example.kubernetes.io/not-counted", "not-counted"]
RANGES = [
    ("cpu", "1"),
    ("cpu", "2500m"),
    ("memory", "4Gi"),
    ("memory", "9Ei"),
    ("memory", "-1"),
    ("pods", "20"),
    ("example.com/gpu", "2"),
]
COUNTS = [0, 0, 1, 2, 7, 1_000, 2**62, 2**63 - 1, -1]
AMOUNTS = [1, 3, 100, 1_000, 2**30, 2**62]

Grades = list[tuple[int, list[tuple[str, str]], int]]


def grades() -> st.SearchStrategy[Grades]:
    """Grades of one cluster: number, capacity of a node, and free nodes."""
    ranges = st.lists(st.sampled_from(RANGES), max_size=3)
    grade = st.tuples(st.integers(0, 4), ranges, st.sampled_from(COUNTS))
    return st.lists(grade, max_size=4, unique_by=lambda numbered: numbered[0])


def summary(pods: int, cluster_grades: Grades) -> clusters.ResourceSummary:
    return clusters.ResourceSummary(
        allocatable={"cpu": "8", "memory": "16Gi", "pods": str(pods)},
        allocatable_modelings=tuple(
            clusters.GradeCount(grade=grade, count=count) for grade, _, count in cluster_grades
        ),
    )


def modelled(name: str, pods: int, cluster_grades: Grades, *, elsewhere: bool) -> clusters.ClusterManifest:
    """A cluster with a resource model; ``elsewhere``: without the API, so it cannot be chosen."""
    models = [
        clusters.ResourceModel(
            grade=grade,
            ranges=tuple(clusters.ModelRange(name=resource, min=least) for resource, least in ranges),
        )
        for grade, ranges, _ in cluster_grades
    ]
    return clusters.ClusterManifest(
        metadata=clusters.ClusterMetadata(name=name),
        spec=clusters.ClusterSpec(resource_models=tuple(models)),
        status=clusters.ClusterStatus(
            api_enablements=() if elsewhere else (strategies.DEPLOYMENTS,),
            resource_summary=summary(pods, cluster_grades),
        ),
    )


def free_replicas(cluster: clusters.ClusterManifest, requested: requests.Requests) -> int:
    """Return the free replicas of one cluster by the documented rule, grade by grade."""
    reported = cluster.status.resource_summary
    assert reported is not None
    free = reported.allocatable_modelings
    pods = int(str(reported.allocatable["pods"]))
    if cluster.spec.resource_models and free and all(reported_grade.count >= 0 for reported_grade in free):
        nodes = 0
        for model in cluster.spec.resource_models:
            holds = {
                resource_range.name: quantity.nano_units(resource_range.min)
                for resource_range in model.ranges
            }
            node_replicas = 110
            for resource, amount in requested:
                if not resource.endswith("not-counted"):
                    units = quantity.counted_units(resource, holds.get(resource, 0))
                    node_replicas = min(node_replicas, min(max(units, 0), capacity.UNITS_MAX) // amount)
            nodes += node_replicas * sum(
                reported_grade.count for reported_grade in free if reported_grade.grade == model.grade
            )
        pods = min(pods, nodes)
    else:
        units = {"cpu": 8_000, "memory": 16 << 30, "pods": pods}
        pods = min([pods, *(units.get(resource, 0) // amount for resource, amount in requested)])
    return min(pods, capacity.FREE_MAX)


members = st.lists(
    st.tuples(st.sampled_from([0, 5, 400, 2**31, 2**50]), grades(), st.booleans()), min_size=1, max_size=7
)
reports = st.lists(
    st.tuples(
        st.sampled_from(strategies.NAMES[:7]),
        st.integers(0, 900),
        grades(),
        st.sampled_from(["report", "put", "remove"]),
    ),
    max_size=6,
)
drawn_requests = st.dictionaries(st.sampled_from(RESOURCES), st.sampled_from(AMOUNTS), max_size=3)


@given(members=members, reports=reports, drawn_requests=drawn_requests)
@example(members=[(2**50, [(0, [], 2**63 - 1)], False)], reports=[], drawn_requests={})
def test_columns_count_as_a_loop_over_clusters(
    members: list[tuple[int, Grades, bool]],
    reports: list[tuple[str, int, Grades, str]],
    drawn_requests: dict[str, int],
) -> None:
    known = strategies.filled(
        [
            modelled(name, pods, cluster_grades, elsewhere=elsewhere)
            for name, (pods, cluster_grades, elsewhere) in zip(strategies.NAMES, members, strict=False)
        ]
    )
    _check(known, drawn_requests)
    for name, pods, cluster_grades, kind in reports:
        if kind == "put":
            known.put(modelled(name, pods, cluster_grades, elsewhere=False))
        elif kind == "remove":
            known.remove(name)
        elif known.get(name) is not None:
            known.report(name, summary(pods, cluster_grades))
        _check(known, drawn_requests)


def test_workload_without_requirements_counts_free_pods_and_no_models() -> None:
    known = strategies.filled([modelled("member1", 25, [(0, [("cpu", "8")], 3)], elsewhere=False)])
    absent = requests.Request(
        resource=strategies.resource("a"), placement=placements.Placement(), replicas=1, requests=None
    )
    empty = msgspec.structs.replace(absent, requests=())
    assert schedule.schedule(absent, known).available == {"member1": 25}
    assert schedule.schedule(empty, known).available == {"member1": 25}
    roomy = strategies.filled([modelled("member1", 900, [(0, [("cpu", "8")], 3)], elsewhere=False)])
    assert schedule.schedule(absent, roomy).available == {"member1": 900}
    assert schedule.schedule(empty, roomy).available == {"member1": 330}


def _check(known: fleet.Fleet, drawn_requests: dict[str, int]) -> None:
    requested = tuple(sorted(drawn_requests.items()))
    request = requests.Request(
        resource=strategies.resource("a"), placement=placements.Placement(), replicas=1, requests=requested
    )
    expected: dict[str, int] = {}
    for name in known.names():
        cluster = known.get(name)
        assert cluster is not None
        if cluster.status.api_enablements:
            expected[name] = free_replicas(cluster, requested)
    assert schedule.schedule(request, known).available == expected


def test_report_with_the_same_grades_keeps_the_columns() -> None:
    cluster = modelled("a", 400, [(0, [("cpu", "1")], 3), (1, [("cpu", "2")], 5)], elsewhere=False)
    known = strategies.filled([cluster])
    before = known.nodes()
    known.report("a", summary(400, [(0, [], 2), (1, [], 1)]))
    assert before is not None
    assert known.nodes() is before
    assert before.replicas((("cpu", 1_000),)).tolist() == [2 * 1 + 1 * 2]


def test_cluster_without_free_nodes_by_grade_leaves_the_columns() -> None:
    known = strategies.filled([modelled("a", 400, [(0, [("cpu", "1")], 3)], elsewhere=False)])
    assert known.nodes() is not None
    reported = summary(400, [])
    known.report("a", reported)
    assert known.nodes() is None
    known.put(strategies.with_large_capacity("b"))
    assert known.nodes() is None


def test_only_vendor_resources_are_extended() -> None:
    named = {
        name: resource_models.is_extended(name)
        for name in ("cpu", "example.com/gpu", "kubernetes.io/x", "a.kubernetes.io/x")
    }
    assert named == {
        "cpu": False,
        "example.com/gpu": True,
        "kubernetes.io/x": False,
        "a.kubernetes.io/x": False,
    }
