"""Cached decisions equal fresh ones."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.objects import clusters, placements
from engine.placement import decision_cache, fleet, requests, schedule
from tests.placement import strategies


@pytest.mark.slow
@given(
    strategies.fleets(),
    strategies.changes(),
    st.lists(strategies.scheduling_requests(), min_size=1, max_size=3),
)
def test_cached_decision_equals_a_fresh_one(
    known: fleet.Fleet,
    changed: list[tuple[str, clusters.ClusterManifest]],
    drawn_requests: list[requests.Request],
) -> None:
    remembering = decision_cache.DecisionCache(known)
    for kind, cluster in [("put", strategies.with_large_capacity("a")), *changed]:
        strategies.change(known, kind, cluster)
        for request in [*drawn_requests, *drawn_requests]:
            cached, fresh = remembering.decide(request), schedule.schedule(request, known)
            assert (cached.clusters, cached.available) == (fresh.clusters, fresh.available)
            for field in ("trigger", "fresh", "affinity_name", "status", "reason", "message", "retry"):
                assert getattr(cached, field) == getattr(fresh, field)
            assert (cached.changed, cached.records_placement) == (fresh.changed, fresh.records_placement)
            assert cached.excluded == fresh.excluded


@pytest.mark.slow
@given(strategies.fleets(), strategies.scheduling_requests())
def test_workloads_that_differ_only_by_name_share_a_decision(
    known: fleet.Fleet, request: requests.Request
) -> None:
    remembering = decision_cache.DecisionCache(known)
    other = msgspec.structs.replace(request.resource, name="other", namespace="elsewhere")
    first = remembering.decide(request)

    assert remembering.decide(msgspec.structs.replace(request, resource=other)) is first


def test_number_of_cached_decisions_is_limited() -> None:
    known = fleet.Fleet()
    known.put(strategies.with_large_capacity("a"))
    remembering = decision_cache.DecisionCache(known)
    resource = requests.Resource(api_version="apps/v1", kind="Deployment")
    for replicas in range(1, decision_cache.DECISIONS_MAX + 2):
        request = requests.Request(resource=resource, placement=placements.Placement(), replicas=replicas)
        remembering.decide(request)
        assert len(remembering) <= decision_cache.DECISIONS_MAX
