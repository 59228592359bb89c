"""HorizontalPodAutoscalers in members: targets follow their load between the limits."""

from typing import Final

import msgspec
import pytest
from msgspec import structs

from engine.domain import marks
from engine.simulation import statuses, unmanaged
from engine.simulation.state import Workload
from engine.works import autoscalers
from events import clusters, health, shapes
from events.json_values import Json
from events.kube_objects import KubeObject
from tests.builders import manifests
from tests.members import examples

NGINX: Final = examples.key_of("nginx")
SCALER: Final = examples.key_of("nginx", "HorizontalPodAutoscaler")


def _scaler(least: int = 1, most: int = 6, **spec: object) -> Json:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "nginx"}
    limits = {"scaleTargetRef": target, "minReplicas": least, "maxReplicas": most}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "nginx", "namespace": "default"},
        "spec": {**limits, **spec},
    }


def _deployment(replicas: int, *, load: str = "", retains: bool = False) -> Json:
    value = manifests.deployment("nginx", replicas, "default", requests={"cpu": "50m"})
    annotations = {autoscalers.LOAD: load} if load else {}
    labels = {marks.RETAIN_REPLICAS: "true"} if retains else {}
    metadata = {"name": "nginx", "namespace": "default", "annotations": annotations, "labels": labels}
    return {**value, "metadata": metadata}


async def _write(stage: examples.Stage, value: Json) -> None:
    manifest = msgspec.Raw(msgspec.json.encode(value))
    await stage.members.write("member1", clusters.MemberObjectApplied(name="member1", manifest=manifest))


def _target(stage: examples.Stage) -> Workload:
    state = stage.members.state_of("member1")
    return unmanaged.running(state, NGINX) or state.workloads[NGINX]


def _status(stage: examples.Stage) -> Json:
    state = stage.members.state_of("member1")
    item = state.unmanaged[SCALER]
    _, scaler = state.scalers[SCALER]
    workload = unmanaged.workload_of(SCALER, item)
    workload.template = structs.replace(workload.template, scaler=scaler)
    return {**statuses.status(state, workload), "written": msgspec.json.decode(item.manifest).get("status")}


async def _started() -> examples.Stage:
    stage = examples.Stage()
    await stage.turn()
    return stage


async def test_target_of_a_kind_with_replicas_in_another_field_is_scaled_once() -> None:
    stage = await _started()
    metadata = {"name": "game", "namespace": "default", "labels": {marks.RETAIN_REPLICAS: "true"}}
    game: Json = {
        "apiVersion": "example.com/v1",
        "kind": "Game",
        "metadata": metadata,
        "spec": {"size": 1},
    }
    key = examples.key_of("game", "Game")
    work = examples.applied("game", 1, kind="Game", offset=await stage.submit_template(game, key))
    ref = structs.replace(work.template, api_version="example.com/v1")
    await stage.work(structs.replace(work, template=ref, reading=shapes.Reading(replicas=".spec.size")))
    await stage.settle()
    target = {"apiVersion": "example.com/v1", "kind": "Game", "name": "game"}
    await _write(stage, _scaler(3, 4, scaleTargetRef=target))
    await stage.settle()
    assert stage.members.state_of("member1").workloads[key].replicas == 3
    events = await stage.turn() + await stage.turn()
    assert not [event for event in events if isinstance(event, clusters.MemberObjectApplied)]


async def test_target_is_brought_between_the_limits() -> None:
    stage = await _started()
    await _write(stage, _deployment(1))
    await _write(stage, _scaler(2, 4))
    await stage.settle()
    assert _target(stage).replicas == 2
    await _write(stage, _deployment(9))
    await stage.settle()
    assert _target(stage).replicas == 4


async def test_target_of_a_deleted_autoscaler_keeps_its_replicas() -> None:
    stage = await _started()
    await _write(stage, _deployment(1))
    await _write(stage, _scaler(2, 4))
    await stage.settle()
    ref = shapes.WorkloadRef(
        api_version="autoscaling/v2", kind="HorizontalPodAutoscaler", name="nginx", namespace="default"
    )
    await stage.members.write("member1", clusters.MemberObjectDeleted(name="member1", object=ref))
    await stage.settle()
    assert _target(stage).replicas == 2
    await _write(stage, _deployment(1))
    await stage.settle()
    assert _target(stage).replicas == 1


async def test_target_follows_its_load_and_keeps_replicas_within_the_tolerance() -> None:
    stage = await _started()
    await _write(stage, _scaler())
    for load, before, count in (("120m", 1, 3), ("125m", 3, 3), ("cpu=140m", 3, 4), ("1", 4, 6), ("0", 6, 1)):
        await _write(stage, _deployment(before, load=load))
        await stage.settle()
        assert (load, _target(stage).replicas) == (load, count)


async def test_restarted_member_has_the_same_replicas_and_writes_nothing() -> None:
    stage = await _started()
    await _write(stage, _scaler())
    await _write(stage, _deployment(1, load="120m"))
    await stage.settle()
    before = _status(stage)
    stage = stage.restarted()
    number = stage.log.last_number()
    await stage.settle()
    assert _target(stage).replicas == 3
    assert _status(stage) == before
    assert not [
        event for event in await stage.events_since(number) if isinstance(event, clusters.MemberObjectApplied)
    ]


async def test_status_names_replicas_metrics_limits_and_the_time_of_the_last_change() -> None:
    stage = await _started()
    await _write(stage, _deployment(1, load="300m"))
    await _write(stage, _scaler())
    await stage.settle()
    shown = _status(stage)
    assert (shown["currentReplicas"], shown["desiredReplicas"]) == (6, 6)
    assert shown["written"] == {"lastScaleTime": "2024-05-25T09:49:51Z"}
    used = {"averageValue": "50m", "averageUtilization": 100}
    assert shown["currentMetrics"] == [{"type": "Resource", "resource": {"name": "cpu", "current": used}}]
    assert KubeObject({"status": shown}).condition("ScalingLimited")["reason"] == "TooManyReplicas"
    await _write(stage, _deployment(0))
    assert KubeObject({"status": _status(stage)}).condition("ScalingActive")["reason"] == "ScalingDisabled"
    await _write(stage, _deployment(2, load="much"))
    assert "is malformed" in str(KubeObject({"status": _status(stage)}).condition("ScalingActive")["message"])


async def test_managed_target_is_scaled_only_if_its_template_retains_replicas() -> None:
    stage = await _started()
    await _write(stage, _scaler(3))
    offset = await stage.template("nginx", 2)
    await stage.work(examples.applied("nginx", 2, offset=offset))
    await stage.settle()
    assert _target(stage).replicas == 2
    able = KubeObject({"status": _status(stage)}).condition("AbleToScale")
    assert able["status"] == "False"
    assert marks.RETAIN_REPLICAS in str(able["message"])
    offset = await stage.submit_template(_deployment(2, retains=True), NGINX)
    await stage.work(examples.applied("nginx", 2, step=2, offset=offset))
    await stage.settle()
    await stage.settle()
    assert examples.shown(stage) == {("member1", NGINX): (3, 3)}


async def _propagate_scaler(stage: examples.Stage) -> None:
    offset = await stage.submit_template(_scaler(2, 4), SCALER)
    work = examples.applied("nginx", None, kind="HorizontalPodAutoscaler", offset=offset)
    ref = shapes.WorkloadRef(
        api_version="autoscaling/v2", kind="HorizontalPodAutoscaler", name="nginx", namespace="default"
    )
    values = (".currentReplicas", ".desiredReplicas")
    await stage.work(structs.replace(work, template=ref, reading=shapes.Reading(values=values)))
    await stage.settle()


async def test_propagated_autoscaler_scales_until_it_is_removed() -> None:
    stage = await _started()
    await _write(stage, _deployment(1))
    await _propagate_scaler(stage)
    assert _target(stage).replicas == 2
    await stage.work(structs.replace(examples.removed("nginx"), key=SCALER))
    await stage.turn()
    await _write(stage, _deployment(1))
    await stage.settle()
    assert _target(stage).replicas == 1


async def test_reported_status_follows_the_rollout_and_the_deletion_of_the_target() -> None:
    stage = await _started()
    await _write(stage, _deployment(3))
    await _propagate_scaler(stage)
    other: Json = {"containers": [{"name": "nginx", "image": "other"}]}
    await _write(stage, _deployment(3) | {"spec": {"replicas": 3, "template": {"spec": other}}})
    assert await _reported_values(stage) == {".currentReplicas": "3", ".desiredReplicas": "3"}
    deleted = clusters.MemberObjectDeleted(name="member1", object=examples.ref("nginx"))
    await stage.members.write("member1", deleted)
    assert await _reported_values(stage) == {}


async def _reported_values(stage: examples.Stage) -> dict[str, str]:
    """Return the values in the last report about the autoscaler, after all changes have ended."""
    for _ in range(20):
        await stage.turn(after_ms=examples.STARTUP_MS)
    reports = [
        report
        for report in examples.reports(await stage.events_since(0))
        if isinstance(report, health.WorkloadReported) and report.key == SCALER
    ]
    return reports[-1].values


@pytest.mark.parametrize(
    ("source", "load", "count"),
    [
        (
            {"type": "Pods", "pods": {"metric": {"name": "hits"}, "target": {"averageValue": "10"}}},
            "hits=25",
            3,
        ),
        (
            {"type": "External", "external": {"metric": {"name": "queue"}, "target": {"averageValue": "5"}}},
            "queue=20",
            4,
        ),
        (
            {"type": "Pods", "pods": {"metric": {"name": "hits"}, "target": {"averageValue": "10"}}},
            "other=25",
            1,
        ),
    ],
)
def test_metrics_of_all_types_are_followed_by_name(source: Json, load: str, count: int) -> None:
    scaler = autoscalers.read(msgspec.json.encode(_scaler(metrics=[source])))
    assert scaler is not None
    assert scaler.desired_replicas(1, autoscalers.load_in(load) or {}, {}) == count
