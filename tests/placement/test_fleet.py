"""A changed fleet equals one built from scratch."""

import msgspec
import pytest
from hypothesis import given

from engine.kubeapi.values import quantity
from engine.objects import clusters, placements
from engine.placement import fleet, requests, schedule
from tests.placement import strategies


@given(strategies.fleets(), strategies.changes(), strategies.scheduling_requests())
def test_changed_fleet_decides_as_a_rebuilt_one(
    known: fleet.Fleet, changed: list[tuple[str, clusters.ClusterManifest]], request: requests.Request
) -> None:
    schedule.schedule(request, known)
    for kind, cluster in changed:
        strategies.change(known, kind, cluster)
        schedule.schedule(request, known)
    rebuilt = fleet.Fleet()
    for name in known.names():
        cluster = known.get(name)
        assert cluster is not None
        rebuilt.put(cluster)
    incremental, full = (
        schedule.schedule(request, fleet_state, explain=True) for fleet_state in (known, rebuilt)
    )
    assert incremental.clusters == full.clusters
    assert incremental.available == full.available
    assert (incremental.reason, incremental.message, incremental.excluded) == (
        full.reason,
        full.message,
        full.excluded,
    )
    assert incremental.explanation == full.explanation


def test_report_changes_capacity_and_no_compiled_placements() -> None:
    known = fleet.Fleet()
    known.put(strategies.with_large_capacity("a"))
    masks = known.compile(placements.Placement())
    revision = known.revision
    known.report("a", clusters.ResourceSummary(allocatable={"pods": "7"}))
    assert known.revision == revision
    assert known.compile(placements.Placement()) is masks
    assert known.pods.tolist() == [7]
    cluster = known.get("a")
    assert cluster is not None
    assert cluster.status.resource_summary == clusters.ResourceSummary(allocatable={"pods": "7"})


def test_cluster_with_the_same_facts_keeps_the_revision() -> None:
    known = fleet.Fleet()
    known.put(strategies.with_large_capacity("a"))
    revision = known.revision
    known.put(strategies.with_large_capacity("a"))
    assert known.revision == revision


def test_taint_changes_the_revision() -> None:
    known = fleet.Fleet()
    known.put(strategies.with_large_capacity("a"))
    revision = known.revision
    spec = clusters.ClusterSpec(taints=(strategies.TAINTS[0],))
    known.put(msgspec.structs.replace(strategies.with_large_capacity("a"), spec=spec))
    assert known.revision > revision


def test_names_are_in_bytewise_order() -> None:
    known = fleet.Fleet()
    for name in ("m2", "m10", "M3", "m-1"):
        known.put(strategies.with_large_capacity(name))
    assert known.names() == ("M3", "m-1", "m10", "m2")


def test_malformed_report_changes_nothing() -> None:
    known = fleet.Fleet()
    known.put(strategies.with_large_capacity("a"))
    with pytest.raises(quantity.QuantityError, match="'4 apples'"):
        known.report("a", clusters.ResourceSummary(allocatable={"pods": "4 apples"}))
    assert known.get("a") == strategies.with_large_capacity("a")
    request = requests.Request(
        resource=requests.Resource(api_version="apps/v1", kind="Deployment"),
        placement=placements.Placement(),
        replicas=1,
    )
    assert schedule.schedule(request, known).available == {"a": 400}


def test_report_of_an_unknown_cluster_raises() -> None:
    with pytest.raises(KeyError, match="nobody"):
        fleet.Fleet().report("nobody", None)


def test_decision_keeps_its_numbers_when_the_fleet_changes() -> None:
    known = fleet.Fleet()
    known.put(strategies.with_large_capacity("a"))
    request = requests.Request(
        resource=requests.Resource(api_version="apps/v1", kind="Deployment"),
        placement=placements.Placement(),
        replicas=3,
    )
    decision = schedule.schedule(request, known)
    known.report("a", None)
    known.put(strategies.with_large_capacity("0"))
    assert decision.available == {"a": 400}
    assert decision.clusters == (("a", 3),)


def test_cluster_beyond_the_fleet_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet, "CLUSTERS_MAX", 1)
    known = fleet.Fleet()
    known.put(strategies.with_large_capacity("a"))
    known.put(strategies.with_large_capacity("a"))
    with pytest.raises(fleet.FleetFullError, match="cluster b"):
        known.put(strategies.with_large_capacity("b"))


def test_decisions_are_equal_after_compiled_placements_are_evicted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = fleet.Fleet()
    for name in ("a", "b"):
        known.put(strategies.with_large_capacity(name))
    questions = [
        requests.Request(
            resource=requests.Resource(api_version="apps/v1", kind="Deployment"),
            placement=placements.Placement(
                cluster_affinity=placements.ClusterAffinity(cluster_names=(name,))
            ),
            replicas=1,
        )
        for name in ("a", "b", "c")
    ]
    before = [schedule.schedule(question, known).clusters for question in questions]
    monkeypatch.setattr(fleet, "COMPILED_MAX", 1)
    again = [schedule.schedule(question, known).clusters for question in questions * 2]
    assert before == [(("a", 1),), (("b", 1),), ()]
    assert again == before * 2
