"""The observer of an API in memory: order of changes, doubtful decisions, and kinds that are served late."""

from collections import Counter
from collections.abc import Iterator

import msgspec
import pytest
import structlog
import structlog.testing
from structlog.typing import EventDict

from engine.agent.api_errors import RefusedError, UnreachableError
from engine.agent.discovery import Resource
from engine.agent.kubeconfigs import KubeconfigError
from engine.log import local
from engine.observer import observer as observer_module
from engine.observer.report import Report
from engine.observer.shadow import SAME, UNEXPLAINED
from events import observations
from events.json_values import Json
from events.kube_objects import KubeObject
from tests import recordings
from tests.observer.memory_api import (
    BINDINGS,
    CLUSTERS,
    DECIDED_ON,
    DOUBT_S,
    NAMESPACES,
    ROLE_BINDINGS,
    MemoryApi,
    doubtful,
    kind,
    namespace,
    observing,
    plane_with_clusters,
    repeated_ids,
    settle,
    shown,
)
from tests.observer.observing import observed
from tests.waiting import until_async

pytestmark = pytest.mark.virtual_time


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[EventDict]]:
    everything = structlog.make_filtering_bound_logger(0)  # the loggers of the tests drop messages
    monkeypatch.setattr(observer_module, "_log", structlog.wrap_logger(None, wrapper_class=everything))
    with structlog.testing.capture_logs() as lines:
        yield lines


async def test_changes_of_several_kinds_are_appended_in_the_order_of_their_versions() -> None:
    plane, api, log = plane_with_clusters(), MemoryApi(*DECIDED_ON), local.MemoryLog()
    async with observing(api, log) as observer:
        await settle()
        plane.bind("ResourceBinding", "web")
        for change in reversed(plane.changes):
            if change.head.kind == "Cluster":
                observer.changed(KubeObject.from_json(change.manifest), is_gone=False)
        await settle(0)
        for change in plane.changes[2:]:
            observer.changed(KubeObject.from_json(change.manifest), is_gone=False)
        await settle()
    bindings = [("ResourceBinding", version) for version in range(4, 8)]
    assert await shown(log) == [("Cluster", 2), ("Cluster", 3), *bindings, (SAME, 7)]


async def test_object_that_a_list_misses_is_gone_after_the_known_changes_of_its_kind() -> None:
    plane, api, log = plane_with_clusters(), MemoryApi(*DECIDED_ON), local.MemoryLog()
    api.play(plane.changes)
    async with observing(api, log) as observer:
        await settle()
        plane.taint("east", "maintenance")
        (tainted,) = plane.changes[2:]
        observer.changed(KubeObject.from_json(tainted.manifest), is_gone=False)
        observer.listed("cluster.karmada.io", "Cluster", [])
        await settle()
    assert await shown(log) == [
        *(("Cluster", version) for version in (2, 3, 4)),
        *(("Cluster", 0),) * 2,
    ]
    vanished = [data for data in await observed(log) if isinstance(data, observations.ObjectVanished)]
    assert [data.name for data in vanished] == ["east", "west"]


@pytest.mark.parametrize(("is_late", "verdict"), [(True, SAME), (False, UNEXPLAINED)])
async def test_unexplained_decision_is_compared_again_once_other_changes_may_have_come(
    is_late: bool, verdict: str
) -> None:
    before, late, decision = doubtful()
    api, log, report = MemoryApi(*DECIDED_ON), local.MemoryLog(), Report()
    async with observing(api, log, report) as observer:
        await settle()
        api.play(before)
        await settle()
        api.play(decision)
        await settle(DOUBT_S / 2)
        end = decision[-1].version
        assert (await shown(log))[-1] == ("ClusterResourceBinding", end)
        if is_late:
            observer.changed(KubeObject.from_json(late.manifest), is_gone=False)
        await settle(DOUBT_S)
        assert (await shown(log))[-1] == (verdict, end)
        assert report.verdicts[verdict] == 1 + (verdict == SAME)
        count = log.last_number()
        assert observer.appended == count
        await settle(10 * DOUBT_S)
        assert log.last_number() == count


async def test_decision_that_was_in_doubt_when_the_observer_ended_is_compared_after_its_restart() -> None:
    before, _, decision = doubtful()
    api, log = MemoryApi(*DECIDED_ON), local.MemoryLog()
    async with observing(api, log):
        await settle()
        api.play([*before, *decision])
        await settle(DOUBT_S / 2)
    reports = [Report(), Report()]
    for report in reports:
        async with observing(api, log, report):
            await settle(2 * DOUBT_S)
    assert Counter(verdict for verdict, _ in await shown(log))[UNEXPLAINED] == 1
    assert [report.verdicts[UNEXPLAINED] for report in reports] == [1, 1]
    async with observing(api, log, reports[0]):
        await settle()
    assert reports[0].verdicts == reports[1].verdicts


async def test_restarted_observer_compares_with_the_clusters_in_the_log() -> None:
    plane, api, log = plane_with_clusters(), MemoryApi(*DECIDED_ON), local.MemoryLog()
    plane.bind("ResourceBinding", "web")
    plane.taint("east", "maintenance")
    api.play(plane.changes)
    async with observing(api, log):
        await settle()
    lists = list(api.lists)
    async with observing(api, log) as observer:
        await settle(1)
        assert observer.complete.is_set()
        key = plane.bind("ResourceBinding", "api")
        api.play(plane.changes[len(plane.changes) - 4 :])
        await settle()
    assert api.lists == [*lists, "ClusterResourceBinding"]
    (compared,) = [data for data in await observed(log) if isinstance(data, observations.DecisionCompared)]
    assert (compared.name, compared.verdict) == (key[1], SAME)
    assert await repeated_ids(log) == []
    assert set(compared.computed.clusters) == {"west"}


async def test_kind_that_is_served_late_is_found_by_a_discovery_each_half_minute(
    logged: list[EventDict],
) -> None:
    api, log = MemoryApi(NAMESPACES, BINDINGS, ROLE_BINDINGS), local.MemoryLog()
    async with observing(api, log) as observer:
        for number in range(10):
            await settle(2)
            change = recordings.change("ADDED", namespace(f"space{number}", 10 + number))
            observer.changed(KubeObject.from_json(change.manifest), is_gone=False)
        assert api.discoveries == 1
        assert not observer.complete.is_set()
        api.served.append(CLUSTERS)
        await settle(11)
        assert api.discoveries == 2
        await until_async(observer.complete.is_set)
        await settle(300)
        assert 10 <= api.discoveries <= 13
    # Before and after the kind is served.
    assert [line["event"] for line in logged].count("kinds not served") == 2


@pytest.mark.parametrize(
    ("served", "is_warned"),
    [((NAMESPACES,), True), ((), False), ((NAMESPACES, ROLE_BINDINGS), False)],
)
async def test_api_without_any_kind_of_karmada_is_named_in_a_warning(
    served: tuple[Resource, ...], is_warned: bool, logged: list[EventDict]
) -> None:
    api = MemoryApi(*served)
    async with observing(api, local.MemoryLog()):
        await settle()
    assert any("API serves no Karmada kinds" in line["event"] for line in logged) == is_warned


async def test_kind_that_cannot_be_watched_is_not_observed() -> None:
    api = MemoryApi(*DECIDED_ON, kind("v1", "Namespace", watched=False))
    async with observing(api, local.MemoryLog()):
        await settle()
    assert sorted(api.lists) == ["Cluster", "ClusterResourceBinding", "ResourceBinding"]


@pytest.mark.parametrize("error", [UnreachableError("down"), KubeconfigError("no certificate")])
async def test_observation_begins_once_the_api_answers(error: Exception) -> None:
    api = MemoryApi(*DECIDED_ON)
    api.faults = [error, error]
    async with observing(api, local.MemoryLog()) as observer:
        await until_async(observer.complete.is_set)
    assert api.discoveries == 3


@pytest.mark.parametrize("code", [403, 404])
async def test_observer_without_the_right_to_read_the_system_namespace_continues(code: int) -> None:
    api, log = MemoryApi(*DECIDED_ON, NAMESPACES), local.MemoryLog()
    api.play([recordings.change("ADDED", namespace("kube-system", 5))])
    async with observing(api, log):
        await settle()
    api.get_fault = RefusedError(code, "Fault", "fault")
    async with observing(api, log) as observer:
        await until_async(observer.complete.is_set)


@pytest.mark.parametrize(
    ("kind_name", "fault"),
    [
        ("Cluster", {"status": {"resourceSummary": {"allocatable": {"cpu": "1e1.5"}}}}),
        ("Cluster", {"spec": "text"}),
        ("ResourceBinding", {"spec": "text"}),
    ],
)
async def test_unreadable_object_is_recorded_and_stops_no_comparison(kind_name: str, fault: Json) -> None:
    plane, api, log = plane_with_clusters(), MemoryApi(*DECIDED_ON), local.MemoryLog()
    plane.bind("ResourceBinding", "web")
    model = next(change for change in plane.changes if change.head.kind == kind_name)
    value = {**msgspec.json.decode(model.manifest), **fault}
    identity = {"name": "unreadable", "uid": "unreadable", "resourceVersion": "1"}
    value = {**value, "metadata": {**KubeObject(value).metadata, **identity}}
    async with observing(api, log):
        await settle()
        api.play([recordings.change("ADDED", value), *plane.changes])
        await settle()
    events = await shown(log)
    assert events[0] == (kind_name, 1)
    assert events[-1] == (SAME, plane.decided[-1])


async def test_kind_of_another_group_with_the_name_of_a_kind_of_karmada_is_no_part_of_comparisons() -> None:
    plane, log = plane_with_clusters(), local.MemoryLog()
    other = kind("cluster.x-k8s.io/v1beta1", "Cluster")
    api = MemoryApi(*DECIDED_ON, kind("policy.karmada.io/v1alpha1", "PropagationPolicy"), other)
    selecting = {"resourceSelectors": [{"apiVersion": other.api_version, "kind": other.kind}]}
    metadata = {"name": "all", "namespace": "shop", "uid": "p", "resourceVersion": "1"}
    policy = {"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy", "spec": selecting}
    foreign: Json = {"apiVersion": other.api_version, "kind": other.kind}
    foreign["metadata"] = {"name": "east", "namespace": "shop", "uid": "f", "resourceVersion": "4"}
    async with observing(api, log):
        await settle()
        api.play([recordings.change("ADDED", {**policy, "metadata": metadata}), *plane.changes])
        await settle()
        api.play(
            [
                recordings.change("ADDED", foreign),
                recordings.change("DELETED", foreign | versioned(foreign, 5)),
            ]
        )
        plane.bind("ResourceBinding", "web")
        await settle()
        api.play(plane.changes[2:])
        await settle()
    assert ("Cluster", 4) in await shown(log)
    (compared,) = [data for data in await observed(log) if isinstance(data, observations.DecisionCompared)]
    assert (compared.verdict, set(compared.computed.clusters)) == (SAME, {"east", "west"})


def versioned(value: Json, version: int) -> Json:
    return {"metadata": {**KubeObject(value).metadata, "resourceVersion": str(version)}}


async def test_thousands_of_changes_are_appended_in_several_batches() -> None:
    api, log = MemoryApi(*DECIDED_ON, NAMESPACES), local.MemoryLog()
    api.play(recordings.change("ADDED", namespace(f"space{number}", number)) for number in range(1, 2_001))
    async with observing(api, log) as observer:
        await settle()
        assert observer.appended == 2_000
    assert await shown(log) == [("Namespace", version) for version in range(1, 2_001)]


async def test_objects_of_a_deleted_policy_stay_observed() -> None:
    policies, deployments = (
        kind("policy.karmada.io/v1alpha1", "PropagationPolicy"),
        kind("apps/v1", "Deployment"),
    )
    api, log = MemoryApi(policies, deployments), local.MemoryLog()
    metadata = {"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "1"}
    selecting = {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}]}
    policy: Json = {"apiVersion": policies.api_version, "kind": policies.kind, "metadata": metadata}
    policy["spec"] = selecting
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment"}
    async with observing(api, log):
        await settle()
        api.play([recordings.change("ADDED", policy)])
        await settle()
        api.play([recordings.change("DELETED", policy | versioned(policy, 2))])
        await settle()
        api.play(
            [recordings.change("ADDED", {**deployment, "metadata": {**metadata, "resourceVersion": "3"}})]
        )
        await settle()
    assert await shown(log) == [("PropagationPolicy", 1), ("PropagationPolicy", 2), ("Deployment", 3)]
