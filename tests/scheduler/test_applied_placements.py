"""Applied placements that cannot be read: they count as unchanged, as in Karmada."""

import pytest

from engine.bench.karmada_api import binding, cluster, divided
from engine.domain import marks
from engine.scheduler.decider import Decider
from tests.scheduler.api import Api
from tests.scheduler.scheduling import HOUR_MS, NAME, observed


@pytest.mark.parametrize(
    "applied", ["{", '{"clusterAffinity": 1}', '{"x": ' + "[" * 100_000 + "]" * 100_000 + "}"]
)
def test_unreadable_applied_placement_counts_as_unchanged(applied: str) -> None:
    api, decider = Api(), Decider(NAME)
    api.put("clusters", cluster("member1"))
    for replicas in (4, 5):
        web = binding("web", replicas, divided("member1"), clusters=[{"name": "member1", "replicas": 4}])
        web["metadata"]["annotations"] = {marks.APPLIED_PLACEMENT: applied}
        api.put("resourcebindings", web)
        for document in (*api.of_kind("clusters"), *api.of_kind("resourcebindings")):
            decider.take(observed(document))
        (made,) = decider.decide(HOUR_MS, 0, 10)
        assert made.reason == "Success"
        assert made.places == (replicas == 5)
        assert bool(made.applied) == (replicas == 5)
