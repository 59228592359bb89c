"""The fold of events about a cluster."""

from engine.domain.clusters import Cluster, joined, with_event
from events.clusters import (
    ClusterCondition,
    ClusterConditionsReported,
    ClusterJoined,
    ClusterLeaving,
    ClusterUntainted,
    Taint,
)


def test_first_request_to_leave_sets_the_time_even_if_that_is_unknown() -> None:
    cluster = Cluster(joined(ClusterJoined(name="member1"), 1))
    assert cluster.leaving_ms is None
    leaving = with_event(cluster, ClusterLeaving(name="member1"), 0)
    assert leaving.leaving_ms == 0
    assert with_event(leaving, ClusterLeaving(name="member1"), 5).leaving_ms == 0
    assert with_event(leaving, ClusterJoined(name="member1"), 6).leaving_ms == 0


def test_only_the_taint_with_this_key_and_effect_is_removed() -> None:
    names = (("maintenance", "NoSchedule"), ("maintenance", "NoExecute"), ("other", "NoExecute"))
    taints = tuple(Taint(key=key, effect=effect) for key, effect in names)
    cluster = Cluster(joined(ClusterJoined(name="member1", taints=taints), 1))
    for effect, remaining in (("NoExecute", (names[0], names[2])), ("", (names[2],))):
        untainted = with_event(cluster, ClusterUntainted(name="member1", key="maintenance", effect=effect), 2)
        assert tuple((taint.key, taint.effect) for taint in untainted.spec.taints) == remaining


def test_taint_keeps_its_own_time() -> None:
    taints = (Taint(key="a", effect="NoExecute", time_added_ms=5), Taint(key="b", effect="NoExecute"))
    cluster = Cluster(joined(ClusterJoined(name="member1", taints=taints), 9))
    assert [taint.time_added_ms for taint in cluster.spec.taints] == [5, 9]


def test_condition_keeps_its_time_until_its_status_changes() -> None:
    def reported(cluster: Cluster, status: str, at_ms: int, own_ms: int | None = None) -> Cluster:
        condition = ClusterCondition(type="Disk", status=status, last_transition_ms=own_ms)
        return with_event(cluster, ClusterConditionsReported(name="member1", conditions=(condition,)), at_ms)

    cluster = Cluster(joined(ClusterJoined(name="member1"), 1))
    times_ms: list[int | None] = []
    for status, at_ms, own_ms in (("True", 2, None), ("True", 3, None), ("False", 4, None), ("False", 5, 1)):
        cluster = reported(cluster, status, at_ms, own_ms)
        times_ms += [condition.last_transition_ms for condition in cluster.conditions]
    assert times_ms == [2, 2, 4, 1]
