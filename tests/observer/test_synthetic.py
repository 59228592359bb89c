"""Shapes that the recordings lack: cluster-scoped bindings, clusters that leave, evictions, suspension, 410."""

import itertools
import tracemalloc
from typing import Any

import msgspec
import pytest

from engine.log import local
from engine.observer.shadow import KNOWN, RACE, SAME, UNEXPLAINED, Shadow
from engine.placement.failures import NO_CLUSTER_FIT
from events import observations
from events.observations import DecisionCompared
from tests import lines_run, recordings
from tests.observer import synthetic
from tests.observer.observing import level, newest_versions, observed, observing, shown, versions
from tests.observer.playback import Playback, playing
from tests.rounds import ROUNDS

MOVES = 200


def compared(plane: synthetic.ControlPlane) -> list[DecisionCompared]:
    shadow = Shadow()
    return [
        decision for change in plane.changes if (decision := recordings.compare(shadow, change)) is not None
    ]


@pytest.mark.parametrize("seed", range(10 * ROUNDS))
def test_each_decision_is_found_and_is_the_same(seed: int) -> None:
    plane = synthetic.played(seed, MOVES)
    decisions = compared(plane)
    assert [decision.version for decision in decisions] == plane.decided
    wrong = [decision for decision in decisions if decision.verdict != SAME]
    assert not wrong, wrong[0]


def test_decisions_on_a_binding_within_one_second_are_all_found() -> None:
    plane = synthetic.ControlPlane(itertools.repeat(synthetic.BEGAN_S))
    for name in ("east", "north", "west"):
        plane.join(name)
    key = plane.bind("ResourceBinding", "web", is_divided=True)
    for name in ("north", "east"):
        # It finds nothing to decide, and writes the generation that it observed.
        plane.schedule(key)
        plane.report(key)
        plane.evict(key, name)
    decisions = compared(plane)
    assert [decision.version for decision in decisions] == plane.decided
    assert [decision.verdict for decision in decisions] == [SAME] * 3


def test_reports_of_members_take_no_memory_and_hide_no_decision() -> None:
    plane = synthetic.ControlPlane()
    plane.join("east")
    key = plane.bind("ResourceBinding", "web")
    for _ in range(200):
        plane.report(key)
    plane.evict(key, "east")
    *earlier, decision = plane.changes
    shadow = Shadow()
    for change in earlier[:10]:
        recordings.compare(shadow, change)
    tracemalloc.start()
    for change in earlier[10:]:
        recordings.compare(shadow, change)
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown < 100_000
    compared_decision = recordings.compare(shadow, decision)
    assert compared_decision is not None
    assert compared_decision.verdict == SAME


def test_change_of_one_of_many_clusters_costs_less_than_the_next_decision() -> None:
    def lines_run_for_decisions(*, with_changes: bool) -> int:
        plane = synthetic.ControlPlane()
        for number in range(200):
            plane.join(f"member{number}")
            plane.taint(f"member{number}")
        before = len(plane.changes)
        for number in range(20):
            if with_changes:
                plane.taint(f"member{number}", "maintenance")
            plane.bind("ResourceBinding", f"web{number}")
        shadow = Shadow()
        for change in plane.changes[:before]:
            recordings.compare(shadow, change)
        with lines_run.counted() as lines:
            decisions = [recordings.compare(shadow, change) for change in plane.changes[before:]]
        assert [decision.verdict for decision in decisions if decision is not None] == [SAME] * 20
        return lines.count

    # To read all clusters again takes as many lines as two decisions.
    assert lines_run_for_decisions(with_changes=True) < 2 * lines_run_for_decisions(with_changes=False)


def test_suspended_binding_is_not_decided_until_it_is_resumed() -> None:
    plane = synthetic.ControlPlane()
    plane.join("east")
    key = plane.bind("ResourceBinding", "web")
    plane.suspend(key, is_suspended=True)
    plane.join("west")
    plane.report(key)
    before = len(compared(plane))
    plane.suspend(key, is_suspended=False)
    decisions = compared(plane)
    assert (before, len(decisions)) == (1, 2)
    assert decisions[-1].observed.clusters == {"east": synthetic.REPLICAS, "west": synthetic.REPLICAS}
    assert decisions[-1].verdict == SAME


def test_binding_of_a_cluster_that_left_is_decided_without_it() -> None:
    plane = synthetic.ControlPlane()
    for name in ("east", "west"):
        plane.join(name)
    divided = plane.bind("ResourceBinding", "web", is_divided=True)
    role = plane.bind("ClusterResourceBinding", "reader")
    plane.begin_leaving("west")
    plane.leave("west")
    plane.evict(divided, "east")
    decisions = compared(plane)
    assert [decision.verdict for decision in decisions] == [SAME] * 5
    assert {decision.name: decision.observed.clusters for decision in decisions} == {
        divided[1]: {},
        role[1]: {"east": 0},
    }
    assert decisions[-1].observed.reason == "NoClusterFit"


def test_decisions_follow_the_clusters_of_the_other_workloads_of_a_group() -> None:
    plane = synthetic.ControlPlane()
    for name in ("east", "north", "west"):
        plane.join(name)
    kind, apart, together = "ResourceBinding", {"antiAffinityGroup": "app=web"}, {"affinityGroup": "app=web"}
    first = plane.bind(kind, "first", groups={**apart, **together})
    plane.evict(first, "east")
    plane.bind(kind, "apart", groups=apart)
    plane.bind(kind, "together", groups=together)
    plane.unbind(first)
    plane.bind(kind, "later", groups=apart)
    decisions = compared(plane)
    assert {decision.name: set(decision.computed.clusters) for decision in decisions} == {
        "first-deployment": {"north", "west"},
        "apart-deployment": {"east"},
        "together-deployment": {"north", "west"},
        "later-deployment": {"north", "west"},
    }
    assert {decision.verdict for decision in decisions} == {SAME}


def test_decision_of_a_scheduler_that_ignores_groups_is_a_known_difference() -> None:
    shadow = Shadow()
    free = synthetic.ControlPlane()
    for name in ("east", "west"):
        free.join(name)
    for name in ("web", "api"):
        free.bind("ResourceBinding", name)
    decisions: list[DecisionCompared] = []
    for change in free.changes:
        manifest = msgspec.json.decode(change.manifest, type=dict[str, Any])
        manifest["spec"]["workloadAffinityGroups"] = {"antiAffinityGroup": "app=web"}
        grouped = msgspec.structs.replace(change, manifest=msgspec.Raw(msgspec.json.encode(manifest)))
        decisions += [decision] if (decision := recordings.compare(shadow, grouped)) else []
    assert [decision.verdict for decision in decisions] == [SAME, KNOWN]
    assert "workloadAffinity" in decisions[1].why
    assert decisions[1].reasons[0].failed == (
        "cluster already has workload with the same anti-affinity group",
    )


def test_decision_from_other_clusters_of_its_group_is_a_race() -> None:
    """Karmada's cache shows the second of two deletions in a group after a decision on its third workload."""
    plane, shadow = synthetic.ControlPlane(), Shadow()
    for name in ("east", "west"):
        plane.join(name)
    groups = {"antiAffinityGroup": "app=web"}
    first = plane.bind("ResourceBinding", "first", groups=groups)
    plane.evict(first, "east")
    second = plane.bind("ResourceBinding", "second", groups=groups)
    began = len(plane.changes)
    plane.unbind(first)
    third = plane.bind("ResourceBinding", "third", groups=groups)
    plane.unbind(second)
    deleted, created, *decided, late = plane.changes[began:]
    # The third workload has the cluster of the first one, and not that of the second one.
    assert plane.bindings[third]["spec"]["clusters"] == [{"name": "west", "replicas": synthetic.REPLICAS}]
    decisions = [
        decision
        for change in (*plane.changes[:began], created, deleted, late, *decided)
        if (decision := recordings.compare(shadow, change)) is not None
    ]
    assert [decision.verdict for decision in decisions] == [SAME, SAME, SAME, RACE]
    assert decisions[-1].why.endswith("before or after a change of the other workloads of its group")


def test_race_names_three_of_the_clusters_that_changed_before_the_decision_was_written() -> None:
    plane, shadow = synthetic.ControlPlane(), Shadow()
    names = [f"member{number}" for number in range(5)]
    for name in names:
        plane.join(name)
    plane.bind("ResourceBinding", "web")
    joined, created, written = plane.changes[:5], plane.changes[5], plane.changes[6:]
    for name in names:
        plane.taint(name, "maintenance")
    tainted = plane.changes[-5:]
    decisions = [
        decision
        for version, change in enumerate((*joined, created, *tainted, *written), 1)
        if (decision := recordings.compare(shadow, at_version(change, version)))
    ]
    assert [decision.verdict for decision in decisions] == [RACE]
    assert decisions[0].why == (
        "decided with the clusters of 5, before member0, member1, member2 and 2 more changed"
    )


def at_version(change: recordings.Change, version: int) -> recordings.Change:
    value = msgspec.json.decode(change.manifest, type=dict[str, Any])
    value["metadata"]["resourceVersion"] = str(version)
    return recordings.change(change.type, value)


@pytest.mark.parametrize(
    ("kind", "verdict"), [("Cluster", RACE), ("Namespace", SAME), ("PropagationPolicy", SAME)]
)
def test_only_the_deletion_of_a_cluster_takes_it_from_later_decisions(kind: str, verdict: str) -> None:
    plane, shadow = synthetic.ControlPlane(), Shadow()
    for name in ("east", "west"):
        plane.join(name)
    plane.bind("ResourceBinding", "web")
    created = plane.changes[2]
    for change in plane.changes[:2]:
        recordings.compare(shadow, change)
    shadow.take_deletion(kind, "", "east", created.version)
    decisions = [decision for change in plane.changes[2:] if (decision := recordings.compare(shadow, change))]
    assert [decision.verdict for decision in decisions] == [verdict]


def with_spec(change: recordings.Change, **spec: object) -> recordings.Change:
    value = msgspec.json.decode(change.manifest, type=dict[str, Any])
    return recordings.change(change.type, {**value, "spec": {**value["spec"], **spec}})


def test_bindings_of_the_own_scheduler_belong_to_groups() -> None:
    plane, shadow = synthetic.ControlPlane(), Shadow(own_scheduler="own")
    for name in ("east", "west"):
        plane.join(name)
    groups = {"antiAffinityGroup": "app=web"}
    first = plane.bind("ResourceBinding", "first", groups=groups)
    plane.evict(first, "east")
    began = len(plane.changes)
    plane.bind("ResourceBinding", "second", groups=groups)
    own = (
        with_spec(change, schedulerName="own") if change.head.kind == "ResourceBinding" else change
        for change in plane.changes[:began]
    )
    decisions = [
        decision
        for change in (*own, *plane.changes[began:])
        if (decision := recordings.compare(shadow, change))
    ]
    assert [(decision.verdict, set(decision.computed.clusters)) for decision in decisions] == [
        (SAME, {"east"})
    ]


def test_decision_on_a_binding_without_a_scheduler_name_is_compared() -> None:
    plane, shadow = synthetic.ControlPlane(), Shadow()
    plane.join("east")
    plane.bind("ResourceBinding", "web")
    decisions = [
        decision
        for change in (
            plane.changes[0],
            *(with_spec(change, schedulerName="") for change in plane.changes[1:]),
        )
        if (decision := recordings.compare(shadow, change))
    ]
    assert [decision.verdict for decision in decisions] == [SAME]


def test_decision_that_ignores_a_taint_is_unexplained() -> None:
    plane, shadow = synthetic.ControlPlane(), Shadow()
    for name in ("east", "west"):
        plane.join(name)
    plane.bind("ResourceBinding", "web")
    decisions: list[DecisionCompared] = []
    for change in plane.changes:
        manifest = msgspec.json.decode(change.manifest, type=dict[str, Any])
        if change.head.metadata.name == "east":
            manifest["spec"]["taints"] = [{"key": "maintenance", "effect": "NoSchedule"}]
        tainted = msgspec.structs.replace(change, manifest=msgspec.Raw(msgspec.json.encode(manifest)))
        decisions += [decision] if (decision := recordings.compare(shadow, tainted)) else []
    assert [decision.verdict for decision in decisions] == [UNEXPLAINED]


@pytest.mark.parametrize(("available", "verdict"), [("0/2", RACE), ("0/3", UNEXPLAINED)])
def test_failure_on_the_binding_before_its_last_change_is_a_race(available: str, verdict: str) -> None:
    plane, shadow = synthetic.ControlPlane(), Shadow()
    for name in ("east", "west"):
        plane.join(name)
    plane.bind("ResourceBinding", "web")
    east, west, created = plane.changes[:3]
    spec = msgspec.json.decode(created.manifest, type=dict[str, Any])["spec"]
    placement = {**spec["placement"], "clusterAffinity": {"clusterNames": ["north"]}}
    fitting = at_version(created, 5)
    value = msgspec.json.decode(fitting.manifest, type=dict[str, Any])
    message = f"{available} clusters are available: 2 cluster(s) did not match"
    condition = {"type": "Scheduled", "status": "False", "reason": NO_CLUSTER_FIT, "message": message}
    failed = recordings.change("MODIFIED", {**value, "status": {"conditions": [condition]}})
    decisions = [
        decision
        for change in (east, west, with_spec(created, placement=placement), fitting, at_version(failed, 6))
        if (decision := recordings.compare(shadow, change))
    ]
    assert [(decision.verdict, decision.basis) for decision in decisions] == [(verdict, 5)]
    if verdict == RACE:
        assert decisions[0].why == "decided on the binding of 4 with the clusters of 3"


@pytest.mark.parametrize(("is_restored", "verdict"), [(False, SAME), (True, UNEXPLAINED)])
def test_decision_before_the_change_that_it_follows_from_is_explained_later_unless_etcd_is_restored(
    is_restored: bool, verdict: str
) -> None:
    plane = synthetic.ControlPlane()
    for name in ("east", "west"):
        plane.join(name)
    key = plane.bind("ClusterResourceBinding", "reader")
    began = len(plane.changes)
    plane.begin_leaving("east")
    late, *decision = plane.changes[began:]
    shadow = Shadow()
    for change in plane.changes[:began]:
        recordings.compare(shadow, change)
    decisions = [
        compared_decision for change in decision if (compared_decision := recordings.compare(shadow, change))
    ]
    assert [decision.verdict for decision in decisions] == [UNEXPLAINED]
    if is_restored:
        shadow.restored()
    recordings.compare(shadow, late)
    (doubtful,) = shadow.pending_comparisons
    assert doubtful == (key[0], "", key[1], decisions[0].version)
    again = shadow.compare_again(doubtful)
    assert again is not None
    assert (again.verdict, again.version) == (verdict, decisions[0].version)
    assert shadow.compare_again(doubtful) is None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2 * ROUNDS))
async def test_compaction_in_the_middle_loses_no_state_and_invents_no_difference(seed: int) -> None:
    plane = synthetic.played(seed, MOVES)
    playback, log = Playback(plane.changes), local.MemoryLog()
    count = len(plane.changes)
    playback.shown = count // 4
    async with playing(playback) as access:
        async with observing(access, log):
            await level(playback, log)
            playback.shown = count // 2
            await level(playback, log)
        # While the observer is down, the API forgets the versions from which it would continue.
        gap = playback.changes[playback.shown - 1].version
        playback.shown = count * 3 // 4
        playback.compact()
        async with observing(access, log):
            await level(playback, log)
            end = playback.version
            playback.shown = count
            await level(playback, log)
    assert await newest_versions(log) == shown(playback)
    seen = await versions(log)
    assert len(seen) == len(set(seen))
    watched = {
        (change.object_key, change.version) for change in plane.changes if not gap < change.version <= end
    } - {(change.object_key, change.version) for change in plane.changes[: count // 4]}
    assert watched <= set(seen)
    decisions = [data for data in await observed(log) if isinstance(data, observations.DecisionCompared)]
    assert decisions
    assert {decision.version for decision in decisions} <= set(plane.decided)
    assert not [decision for decision in decisions if decision.verdict == UNEXPLAINED]
