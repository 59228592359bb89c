"""Restores of the observed control plane from backups, and lists after missed changes: records and comparisons."""

import pytest

from engine.agent.api_errors import RefusedError
from engine.log import local, port
from engine.observer.shadow import RACE, SAME, UNEXPLAINED
from events import observations
from events.kube_objects import KubeObject
from tests import recordings
from tests.observer.memory_api import (
    DECIDED_ON,
    DOUBT_S,
    NAMESPACES,
    MemoryApi,
    cluster,
    doubtful,
    namespace,
    observing,
    plane_with_clusters,
    repeated_ids,
    settle,
    shown,
)
from tests.observer.observing import observed

pytestmark = pytest.mark.virtual_time


@pytest.mark.parametrize("is_running", [True, False])
async def test_restored_control_plane_is_recorded_before_its_changes_whose_versions_occur_again(
    is_running: bool,
) -> None:
    plane, api, log = plane_with_clusters(), MemoryApi(*DECIDED_ON), local.MemoryLog()
    plane.taint("east", "maintenance")
    plane.taint("west", "maintenance")
    api.play(plane.changes)
    async with observing(api, log):
        await settle()
        if is_running:
            api.restore(2)
            await settle(5)
    if not is_running:
        api.restore(2)
    async with observing(api, log):
        await settle(5)
        api.play([cluster("east", 4)])
        await settle()
    lists = len(api.lists)
    async with observing(api, log):
        await settle(5)
        api.play([cluster("west", 5)])
        await settle()
    assert await shown(log) == [
        ("Cluster", 4),
        ("Cluster", 5),
        ("ControlPlaneRestored", 0),
        *(("Cluster", version) for version in (2, 3, 4, 5)),
    ]
    # The kinds without objects are listed at each start.
    assert api.lists[lists:] == ["ResourceBinding", "ClusterResourceBinding"]
    assert await repeated_ids(log) == []


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_decision_in_doubt_is_not_explained_by_the_clusters_of_a_restored_control_plane(
    is_restarted: bool,
) -> None:
    before, late, decision = doubtful()
    api, log = MemoryApi(*DECIDED_ON), local.MemoryLog()
    async with observing(api, log):
        await settle()
        api.play([*before, *decision])
        await settle(DOUBT_S / 2)
        api.restore(len(before))
        await settle(DOUBT_S / 4)
        assert ("ControlPlaneRestored", 0) in await shown(log)
        api.play([late])
        await settle(0.1 if is_restarted else DOUBT_S)
    async with observing(api, log):
        await settle(2 * DOUBT_S)
    verdicts = [
        data.verdict for data in await observed(log) if isinstance(data, observations.DecisionCompared)
    ]
    assert verdicts == [SAME, UNEXPLAINED]


async def test_list_that_shows_an_earlier_version_again_gets_a_record_of_its_own() -> None:
    """As of a control plane whose restore is not noticed yet."""
    api, log = MemoryApi(*DECIDED_ON), local.MemoryLog()
    async with observing(api, log) as observer:
        await settle()
        for version in (2, 3):
            observer.changed(KubeObject.from_json(cluster("east", version).manifest), is_gone=False)
        observer.listed("cluster.karmada.io", "Cluster", [KubeObject.from_json(cluster("east", 2).manifest)])
        await settle()
    assert sorted(await shown(log)) == [("Cluster", 2), ("Cluster", 2), ("Cluster", 3)]
    assert await repeated_ids(log) == []


async def test_object_that_lists_miss_twice_is_gone_twice() -> None:
    api, log = MemoryApi(*DECIDED_ON), local.MemoryLog()
    async with observing(api, log) as observer:
        await settle()
        for version in (2, 3):
            observer.changed(KubeObject.from_json(cluster("east", version).manifest), is_gone=False)
            observer.listed("cluster.karmada.io", "Cluster", [])
            await settle()
    assert await shown(log) == [("Cluster", 2), ("Cluster", 0), ("Cluster", 3), ("Cluster", 0)]
    assert await repeated_ids(log) == []


async def test_decision_whose_basis_a_list_may_have_skipped_is_not_compared() -> None:
    plane, api, log = plane_with_clusters(), MemoryApi(*DECIDED_ON), local.MemoryLog()
    key = plane.bind("ResourceBinding", "web")
    plane.evict(key, "west")
    async with observing(api, log) as observer:
        await settle()
        api.play(plane.changes)
        await settle()
        plane.evict(key, "east")
        *_, last = plane.changes
        observer.listed("work.karmada.io", "ResourceBinding", [KubeObject.from_json(last.manifest)])
        await settle()
        assert (await shown(log))[-1] == ("ResourceBinding", last.version)
        await settle(2 * DOUBT_S)
    verdicts = [name for name, _ in await shown(log) if name in {SAME, RACE, UNEXPLAINED}]
    assert verdicts == [SAME, SAME]


@pytest.mark.parametrize("is_listed", [True, False])
async def test_cluster_that_left_is_no_candidate_of_later_decisions(is_listed: bool) -> None:
    plane, api, log = plane_with_clusters(), MemoryApi(*DECIDED_ON), local.MemoryLog()
    api.play(plane.changes)
    async with observing(api, log) as observer:
        await settle()
        plane.leave("west")
        if is_listed:
            observer.listed("cluster.karmada.io", "Cluster", [KubeObject(plane.clusters["east"])])
        else:
            api.play(plane.changes[2:])
        await settle()
        began = len(plane.changes)
        plane.bind("ResourceBinding", "web")
        api.play(plane.changes[began:])
        await settle()
    (compared,) = [data for data in await observed(log) if isinstance(data, observations.DecisionCompared)]
    assert (compared.verdict, set(compared.computed.clusters)) == (SAME, {"east"})


async def test_deleted_binding_that_is_created_again_is_compared_from_its_creation() -> None:
    plane, api, log = plane_with_clusters(), MemoryApi(*DECIDED_ON), local.MemoryLog()
    async with observing(api, log):
        await settle()
        key = plane.bind("ResourceBinding", "web")
        api.play(plane.changes)
        await settle()
        began = len(plane.changes)
        plane.unbind(key)
        plane.bind("ResourceBinding", "web")
        api.play(plane.changes[began:])
        await settle()
    compared = [data for data in await observed(log) if isinstance(data, observations.DecisionCompared)]
    assert [(data.verdict, data.version) for data in compared] == [(SAME, end) for end in plane.decided]


async def test_list_with_another_system_namespace_is_refused_if_the_namespace_itself_cannot_be_read() -> None:
    api, log = MemoryApi(*DECIDED_ON, NAMESPACES), local.MemoryLog()
    api.play([recordings.change("ADDED", namespace("kube-system", 5, "u"))])
    async with observing(api, log):
        await settle()
    count = log.last_number()
    another = MemoryApi(*DECIDED_ON, NAMESPACES)
    another.get_fault = RefusedError(403, "Forbidden", "forbidden")
    another.play([recordings.change("ADDED", namespace("kube-system", 3, "v"))])
    with pytest.raises(ExceptionGroup) as raised:
        async with observing(another, log):
            await settle(5)
    assert isinstance(raised.value.exceptions[0], port.LogMixedError)
    assert log.last_number() == count
