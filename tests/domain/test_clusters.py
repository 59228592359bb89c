"""The fold of events about a cluster."""

from engine.domain.clusters import Cluster, after, joined
from events.clusters import ClusterJoined, ClusterLeaving


def test_first_request_to_leave_sets_the_time_even_if_that_is_unknown() -> None:
    cluster = Cluster(joined(ClusterJoined(name="member1"), 1))
    assert cluster.leaving_ms is None
    leaving = after(cluster, ClusterLeaving(name="member1"), 0)
    assert leaving.leaving_ms == 0
    assert after(leaving, ClusterLeaving(name="member1"), 5).leaving_ms == 0
    assert after(leaving, ClusterJoined(name="member1"), 6).leaving_ms == 0
