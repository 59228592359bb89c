"""The fold of events about a cluster."""

from engine.domain.clusters import Cluster, after, joined
from events.clusters import ClusterJoined, ClusterLeaving, ClusterUntainted, Taint


def test_first_request_to_leave_sets_the_time_even_if_that_is_unknown() -> None:
    cluster = Cluster(joined(ClusterJoined(name="member1"), 1))
    assert cluster.leaving_ms is None
    leaving = after(cluster, ClusterLeaving(name="member1"), 0)
    assert leaving.leaving_ms == 0
    assert after(leaving, ClusterLeaving(name="member1"), 5).leaving_ms == 0
    assert after(leaving, ClusterJoined(name="member1"), 6).leaving_ms == 0


def test_taint_with_another_effect_is_not_removed() -> None:
    taints = tuple(Taint(key="maintenance", effect=effect) for effect in ("NoSchedule", "NoExecute"))
    cluster = Cluster(joined(ClusterJoined(name="member1", taints=taints), 1))
    untainted = after(cluster, ClusterUntainted(name="member1", key="maintenance", effect="NoExecute"), 2)
    assert [taint.effect for taint in untainted.spec.taints] == ["NoSchedule"]
    assert after(cluster, ClusterUntainted(name="member1", key="maintenance"), 2).spec.taints == ()
