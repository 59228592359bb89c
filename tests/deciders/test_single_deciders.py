"""Single deciders: a view and one value in, decisions out. The stories test them together."""

from typing import Final

import pytest

from engine.deciders import application_failover, preemption_victims, rebalance
from engine.deciders.facts import Facts
from engine.deciders.placement_cache import Placements
from engine.deciders.state import Binding, Rebalancer, Report, ShardState
from engine.deciders.step_outputs import View
from engine.domain.bindings import Claim
from engine.domain.rebalancers import Observed
from events import decisions, rebalance_decisions, shapes, specs

POLICY: Final = shapes.PolicyRef(kind="PropagationPolicy", name="p", namespace="default")
FAILOVER: Final = decisions.ApplicationFailover(toleration_seconds=30, purge_mode="Directly")
CLAIM: Final = Claim(POLICY, "", 1, "", False, (), "", "Abort", None, False, FAILOVER)  # noqa: FBT003
WORKLOAD: Final = shapes.WorkloadRef(
    api_version="apps/v1", kind="Deployment", name="web", namespace="default"
)


def at(seconds: int) -> View:
    """The view of an empty shard in a step at this time."""
    return View(ShardState(0), Facts(), Placements({}), 1, 1, seconds * 1_000)


@pytest.mark.parametrize(("seconds", "evicted"), [(39, []), (40, ["member1"])])
def test_unhealthy_workload_is_evicted_once_its_toleration_is_over(seconds: int, evicted: list[str]) -> None:
    binding = Binding(
        key="deployment.apps:default/web", claim=CLAIM, clusters=(("member1", 2), ("member2", 1))
    )
    binding.reports["member1"] = Report(1, 1, 2, 2, 0, 0, healthy=False, unhealthy_ms=10_000)

    decided = list(application_failover.decide(binding, at(seconds)))

    assert [
        eviction.cluster for eviction in decided if isinstance(eviction, decisions.EvictionStarted)
    ] == evicted


def test_rescheduled_binding_may_return_to_clusters_from_which_it_was_preempted() -> None:
    key = "deployment.apps:default/web"
    preempted, tainted = (
        decisions.EvictionStarted(
            key=key, cluster=cluster, reason="", producer="", purge_mode=mode, created_ms=0, held=is_held
        )
        for cluster, mode, is_held in (("member1", "Directly", True), ("member2", "Gracefully", False))
    )
    binding = Binding(key=key, tasks=(preempted, tainted))

    assert list(preemption_victims.release(binding)) == [
        decisions.EvictionFinished(key=binding.key, cluster="member1", reason="RescheduleTriggered")
    ]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(69, []), (70, [rebalance_decisions.RebalancerExpired, specs.RebalancerDeleted])],
)
def test_finished_rebalancer_is_deleted_after_its_ttl(seconds: int, expected: list[type]) -> None:
    rebalancer = Rebalancer(
        key="rebalancer:r",
        name="r",
        uid="u",
        generation=1,
        created_ms=0,
        edited_ms=0,
        version=1,
        workloads=(WORKLOAD,),
        ttl_seconds=60,
        started=1,
        finished=1,
        finish_ms=10_000,
        observed={WORKLOAD.sort_key: Observed(WORKLOAD, 1, "Successful")},
    )

    assert [type(event) for event in rebalance.decide(rebalancer, at(seconds))] == expected
