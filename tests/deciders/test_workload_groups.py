"""Workloads of a group share all clusters (``workloadAffinity.affinity``), or none (``antiAffinity``)."""

import pytest

from engine.deciders import workload_groups
from events import decisions, group_decisions, rebalance_decisions, release, shapes
from events.json_values import Json
from tests.builders.inputs import (
    capacity,
    deleted,
    deployment,
    joined,
    key,
    policy,
    rebalancer,
    ref,
    tainted,
    untainted,
)
from tests.builders.manifests import DYNAMIC, on, selector
from tests.deciders.story import Story

WEB, API, DB = key("web"), key("api"), key("db")
ONE: Json = {"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}
APART: Json = {"antiAffinity": {"groupByLabelKey": "tier"}}
GROUPS = [{"affinityName": name, "clusterNames": [name]} for name in ("member1", "member2")]
TOGETHER: Json = {"affinity": {"groupByLabelKey": "team"}}
APART_TEXT = "cluster already has workload with the same anti-affinity group"
TOGETHER_TEXT = "ResourceBinding with the same affinity group does not target this cluster"


async def _begun(story: Story, affinity: Json) -> None:
    """Three clusters, and a policy that places each Deployment in one of them."""
    await story.submit(*(joined(f"member{index}") for index in (1, 2, 3)), _policy("p", affinity))


def _policy(name: str, affinity: Json, *clusters: str, workload: str = "") -> shapes.Event:
    placed: Json = {"workloadAffinity": affinity, "spreadConstraints": [ONE]}
    return policy(
        name,
        {**(on(*clusters) if clusters else {}), **placed},
        selector(name=workload) if workload else selector(),
    )


def _labelled(name: str, **labels: str) -> shapes.Event:
    return deployment(name, labels=labels)


async def _failures(story: Story, binding_key: str) -> list[tuple[str, dict[str, int]]]:
    return [
        (failure.reason, failure.excluded)
        for failure in await story.recorded(decisions.ScheduleFailed, binding_key)
    ]


async def test_workloads_of_a_group_that_are_kept_apart_share_no_cluster(story: Story) -> None:
    await _begun(story, APART)
    await story.submit(_labelled("web", tier="a"), _labelled("api", tier="a"), _labelled("db", tier="b"))
    await story.restart()
    assert len({*story.placed(WEB), *story.placed(API)}) == 2
    assert len(story.placed(DB)) == 1
    await story.submit(_labelled("db", tier="a"))
    assert len(story.placed(DB)) == 1, "a workload is not moved from where it runs"


@pytest.mark.parametrize("left", ["web", "api", "db"])
async def test_workload_without_a_cluster_of_its_own_waits_until_one_is_free(story: Story, left: str) -> None:
    await _begun(story, APART)
    await story.submit(*(_labelled(name, tier="a") for name in ("web", "api", "db")))
    await story.submit(_labelled("late", tier="a"))
    assert story.placed(key("late")) == {}
    assert await _failures(story, key("late")) == [("NoClusterFit", {APART_TEXT: 3})]
    await story.restart()
    (freed,) = story.placed(key(left))
    await story.submit(deleted(left))
    assert list(story.placed(key("late"))) == [freed]


async def test_workloads_of_a_group_that_are_kept_together_share_their_cluster(story: Story) -> None:
    await story.submit(*(joined(f"member{index}") for index in (1, 2, 3)))
    await story.submit(_policy("web", TOGETHER, "member2", workload="web"), _labelled("web", team="a"))
    await story.submit(_policy("p", TOGETHER), _labelled("api", team="b"), _labelled("db", team="a"))
    assert [list(story.placed(binding_key)) for binding_key in (WEB, API, DB)] == [
        ["member2"],
        ["member1"],
        ["member2"],
    ]


async def test_workload_that_is_drawn_and_repelled_by_one_cluster_fits_nowhere(story: Story) -> None:
    await story.submit(*(joined(f"member{index}") for index in (1, 2, 3)))
    await story.submit(_policy("web", TOGETHER, "member1", workload="web"), _labelled("web", team="a"))
    await story.submit(_policy("api", APART, "member1", workload="api"), _labelled("api", tier="a"))
    await story.submit(_policy("db", TOGETHER | APART, workload="db"), _labelled("db", team="a", tier="a"))
    assert story.placed(DB) == {}
    assert (await _failures(story, DB))[-1] == ("NoClusterFit", {APART_TEXT: 1, TOGETHER_TEXT: 2})


async def test_granted_clusters_are_taken_although_others_are_free_by_then(story: Story) -> None:
    placement: Json = {"workloadAffinity": APART}
    await story.submit(joined("member1"), joined("member2"))
    await story.submit(
        policy("api", on("member2") | placement, selector(name="api")), _labelled("api", tier="a")
    )
    await story.write(policy("web", placement, selector(name="web")), _labelled("web", tier="a"))
    while not _refusals(await story.recorded(group_decisions.GroupDecided)):
        await story.worker.turn()
    await story.submit(deleted("api"))
    assert list(story.placed(WEB)) == ["member1"]


def _refusals(decided: list[group_decisions.GroupDecided]) -> list[str]:
    return [verdict.by for decision in decided for verdict in decision.verdicts if not verdict.granted]


@pytest.mark.parametrize("affinity", [APART, TOGETHER])
async def test_label_that_is_missing_makes_no_group(story: Story, affinity: Json) -> None:
    await _begun(story, affinity)
    await story.submit(_labelled("web", other="a"), _labelled("api", other="a"))
    assert list(story.placed(WEB)) == list(story.placed(API))


async def test_evicted_workload_runs_until_its_replacement_is_granted_and_healthy(story: Story) -> None:
    await _begun(story, APART)
    await story.submit(_labelled("web", tier="a"))
    await story.report(WEB, "member1")
    await story.submit(tainted("member1", "NoExecute"))
    assert list(story.placed(WEB)) == ["member2"]
    assert await story.recorded(decisions.EvictionFinished) == []
    await story.report(WEB, "member2")
    assert [eviction.cluster for eviction in await story.recorded(decisions.EvictionFinished)] == ["member1"]


async def _placed_in_second_group(story: Story) -> None:
    """Place ``web`` in member2, by its second affinity group; then untaint member1, the cluster of the first group."""
    await story.submit(joined("member1"), joined("member2"), tainted("member1", "NoSchedule"))
    await story.submit(policy("p", {"clusterAffinities": GROUPS, "workloadAffinity": APART}, selector()))
    await story.submit(_labelled("web", tier="a"))
    await story.submit(untainted("member1"))


async def test_rebalancer_is_answered_after_the_decision_that_waits_for_the_group(story: Story) -> None:
    await _placed_in_second_group(story)
    assert list(story.placed(WEB)) == ["member2"]
    await story.submit(rebalancer("again", ref("nobody"), ref("web")))
    assert list(story.placed(WEB)) == ["member1"]
    order = [
        record.headers["ce_type"].split(".")[2]
        for record in await story.log.read_all(0, story.log.last_number())
    ]
    names = ("schedule-decided", "reschedule-answered", "workload-rebalanced", "rebalance-finished")
    decided, answered, counted, finished = (len(order) - order[::-1].index(name) for name in names)
    assert order.count("reschedule-answered") == 2
    assert decided < answered < counted < finished


async def test_rebalancer_is_answered_when_its_workload_leaves_the_group_meanwhile(story: Story) -> None:
    await _placed_in_second_group(story)
    await story.write(rebalancer("again", ref("web")))
    await story.worker.turn()
    await story.worker.turn()
    claimed = (await story.recorded(group_decisions.GroupClaimed, WEB))[-1]
    assert (claimed.placed, claimed.wanted) == (("member2",), ("member1",))
    assert await story.recorded(rebalance_decisions.WorkloadRebalanced) == []
    await story.submit(policy("p", {"clusterAffinities": GROUPS}, selector()))
    assert [
        rebalanced.result for rebalanced in await story.recorded(rebalance_decisions.WorkloadRebalanced)
    ] == ["Successful"]


async def test_group_counts_placements_by_a_release_without_groups(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_groups(*_: object) -> list[workload_groups.Group]:
        return []

    with monkeypatch.context() as former:
        former.setattr(release, "RELEASE", "0.5.0")
        former.setattr(workload_groups, "groups_of", no_groups)
        await _begun(story, APART)
        await story.submit(_labelled("web", tier="a"))
    await story.restart()
    await story.submit(_labelled("api", tier="a"))
    assert [list(story.placed(binding_key)) for binding_key in (WEB, API)] == [["member1"], ["member2"]]


async def test_restart_repeats_no_scheduling_pass(story: Story) -> None:
    placed: Json = {"workloadAffinity": APART, "spreadConstraints": [ONE], "replicaScheduling": DYNAMIC}
    await story.submit(joined("member1"), capacity("member1", 0), policy("p", placed, selector()))
    await story.submit(_labelled("web", tier="a"))
    failures = await _failures(story, WEB)
    assert len(failures) == 1
    await story.restart()
    assert await _failures(story, WEB) == failures


async def test_evicted_workloads_that_are_kept_together_move_together(story: Story) -> None:
    await _begun(story, TOGETHER)
    await story.submit(_labelled("web", team="x"), _labelled("api", team="x"))
    assert story.placed(WEB) == story.placed(API) == {"member1": 1}
    await story.submit(tainted("member1", "NoExecute"))
    assert story.placed(WEB) == story.placed(API) == {"member2": 1}


async def test_workload_moves_to_a_cluster_that_another_of_its_group_has_left(story: Story) -> None:
    await _begun(story, APART)
    await story.submit(tainted("member3", "NoSchedule"))
    await story.submit(_labelled("web", tier="a"))
    await story.submit(_labelled("api", tier="a"))
    assert (story.placed(WEB), story.placed(API)) == ({"member1": 1}, {"member2": 1})
    await story.submit(deleted("web"))
    await story.submit(tainted("member2", "NoExecute"))
    assert story.placed(API) == {"member1": 1}


async def test_workload_joins_its_group_where_all_others_run(story: Story) -> None:
    await story.submit(*(joined(f"member{index}") for index in (1, 2, 3)))
    everywhere = {**on("member1", "member2"), "workloadAffinity": TOGETHER}
    await story.submit(policy("web", everywhere, selector(name="web")), _labelled("web", team="a"))
    await story.submit(_policy("api", TOGETHER, "member2", workload="api"), _labelled("api", team="a"))
    assert (set(story.placed(WEB)), set(story.placed(API))) == ({"member1", "member2"}, {"member2"})
    await story.submit(_policy("p", TOGETHER), _labelled("db", team="a"))
    assert set(story.placed(DB)) == {"member2"}


async def test_waiting_workload_does_not_delay_others_of_its_group(story: Story) -> None:
    await story.submit(joined("member1"), joined("member2"))
    for name, cluster in (("web", "member1"), ("api", "member1"), ("db", "member2")):
        await story.submit(_policy(name, APART, cluster, workload=name), _labelled(name, tier="a"))
    assert [story.placed(binding_key) for binding_key in (WEB, API, DB)] == [
        {"member1": 1},
        {},
        {"member2": 1},
    ]
