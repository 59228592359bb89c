"""Remedies: as few clusters as possible, and only those that the policies allow."""

from engine.plans import drills
from engine.plans.predictions import WorkloadChange
from events import shapes


def lacking(name: str, missing: int, needed_in: list[str], cpu: str) -> WorkloadChange:
    return WorkloadChange(
        key=f"default/{name}",
        template=shapes.WorkloadRef(api_version="apps/v1", kind="Deployment", name=name, namespace="default"),
        before={},
        after={},
        condition="Unschedulable",
        message="",
        stopped=0,
        started=0,
        ready_before=missing,
        ready_min=0,
        ready_after=0,
        missing=missing,
        missing_requests={"cpu": cpu},
        needed_in=needed_in,
    )


def test_one_cluster_that_all_may_use_is_cheapest() -> None:
    changes = [
        lacking("a", 2, ["member1", "member3"], "2"),
        lacking("b", 4, ["member2", "member3"], "500m"),
    ]
    assert drills.cheapest_remedies(changes) == [drills.Remedy("member3", 6, {"cpu": "2500m"})]


def test_workloads_without_a_common_cluster_need_several() -> None:
    changes = [lacking("a", 2, ["member1"], "2"), lacking("b", 4, ["member2"], "4")]
    assert [(remedy.cluster, remedy.replicas) for remedy in drills.cheapest_remedies(changes)] == [
        ("member2", 4),
        ("member1", 2),
    ]


def test_workload_without_other_permitted_clusters_has_no_remedy() -> None:
    assert drills.cheapest_remedies([lacking("a", 2, [], "2")]) == []


def test_remedy_is_worded_for_one_replica_and_for_several() -> None:
    assert drills.Remedy("member1", 1, {"cpu": "1"}).text == "member1 needs 1 more cpu for 1 replica"
    assert drills.Remedy("member1", 2, {}).text == "member1 needs more capacity for 2 replicas"
