"""Objects that clients write in a member: unmanaged ones, conflicts, take-over, and corrected drift."""

from typing import Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from engine.domain import marks
from engine.simulation import lists, specs, statuses, unmanaged
from engine.simulation.state import PODS_MAX, MemberState, Workload
from events import clusters, health, shapes
from events.json_values import Json
from events.kube_objects import KubeObject
from tests.builders import manifests
from tests.members import examples

NGINX: Final = examples.key_of("nginx")


def _deployment(replicas: int, *, image: str = "nginx", labels: dict[str, str] | None = None) -> bytes:
    value = manifests.deployment("nginx", replicas, "default", image=image)
    metadata = {"name": "nginx", "namespace": "default", "labels": labels or {}}
    return msgspec.json.encode({**value, "metadata": metadata})


async def _write(stage: examples.Stage, manifest: bytes) -> None:
    await stage.members.write(
        "member1", clusters.MemberObjectApplied(name="member1", manifest=msgspec.Raw(manifest))
    )


async def _delete(stage: examples.Stage, *, orphans: bool = False) -> None:
    deleted = clusters.MemberObjectDeleted(name="member1", object=examples.ref("nginx"), orphans=orphans)
    await stage.members.write("member1", deleted)


async def _delete_pod(stage: examples.Stage, slot: int) -> None:
    deleted = clusters.MemberPodDeleted(name="member1", owner=examples.ref("nginx"), slot=slot)
    await stage.members.write("member1", deleted)


async def _joined() -> tuple[examples.Stage, int]:
    """Return a member that has joined, and the offset of the template nginx."""
    stage = examples.Stage()
    await stage.turn()
    return stage, await stage.template("nginx", 2)


def _state(stage: examples.Stage) -> MemberState:
    return stage.members.state_of("member1")


async def test_unmanaged_deployment_runs_and_takes_capacity_but_is_not_reported() -> None:
    stage, _ = await _joined()
    await _write(stage, _deployment(3))
    events = await stage.turn(after_ms=examples.STARTUP_MS)
    events += await stage.turn(after_ms=1_000)
    assert [type(event) for event in events] == [clusters.CapacityReported]
    workload = unmanaged.running(_state(stage), NGINX)
    assert workload is not None
    assert (workload.ready, workload.admitted) == (3, 3)


async def test_work_for_an_unmanaged_object_is_a_conflict_until_the_object_is_deleted() -> None:
    stage, offset = await _joined()
    await _write(stage, _deployment(3))
    number = stage.log.last_number()
    await stage.work(examples.applied("nginx", 2, offset=offset))
    await stage.turn()
    (report,) = examples.reports(await stage.events_since(number))
    assert isinstance(report, health.WorkloadReported)
    assert report.fault == (
        "resource(kind=Deployment, default/nginx) already exists in the cluster member1 and the"
        " work.karmada.io/conflict-resolution strategy value is empty, Karmada will not manage this resource"
    )
    await _delete(stage)
    await stage.settle()
    assert examples.shown(stage) == {("member1", NGINX): (2, 2)}


async def test_overwriting_work_takes_the_object_over_without_a_restart() -> None:
    stage, offset = await _joined()
    await _write(stage, _deployment(2, labels={"team": "blue"}))
    await stage.turn(after_ms=examples.STARTUP_MS)
    before = unmanaged.running(_state(stage), NGINX)
    assert before is not None
    await stage.work(structs.replace(examples.applied("nginx", 2, offset=offset), overwrites=True))
    await stage.turn(after_ms=1_000)
    after = _state(stage).workloads[NGINX]
    assert (after.uid, after.created_ms, after.ready) == (before.uid, before.created_ms, 2)
    assert after.kept.labels == (("team", "blue"),)
    assert _state(stage).unmanaged == {}


async def test_edit_of_a_managed_object_keeps_labels_and_puts_the_spec_right() -> None:
    stage, offset = await _joined()
    await stage.work(examples.applied("nginx", 2, offset=offset))
    await stage.settle()
    await _write(
        stage,
        b'{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"nginx",'
        b'"namespace":"default","labels":{"team":"blue"}}}',
    )
    workload = _state(stage).workloads[NGINX]
    assert (workload.ready, workload.replicas, workload.kept.labels) == (2, 2, (("team", "blue"),))


@pytest.mark.parametrize("is_managed", [True, False])
async def test_negative_replicas_count_as_none(is_managed: bool) -> None:
    stage, offset = await _joined()
    if is_managed:
        await stage.work(examples.applied("nginx", 2, offset=offset))
    else:
        await _write(stage, _deployment(2))
    await stage.turn(after_ms=examples.STARTUP_MS)
    await _write(stage, _deployment(-3))
    for checked in (stage, stage.restarted()):
        await checked.turn(after_ms=60_000)
        (workload,) = _state(checked).workloads.values()
        assert (workload.admitted, workload.pending) == ((2, 0) if is_managed else (0, 0))


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
async def test_workload_of_billions_of_replicas_has_as_many_pods_as_a_cluster_may_have(kind: str) -> None:
    count = 2**31 - 1
    stage = await _run_by_client(kind, {"replicas": count})
    changed: Json = {"spec": {"containers": [{"name": "other", "image": "other"}]}}
    value = manifests.manifest("apps/v1", kind, "nginx", "default")
    await _write(stage, msgspec.json.encode(value | {"spec": {"replicas": count, "template": changed}}))
    await stage.turn(after_ms=60_000)
    await stage.members.write(
        "member1", clusters.MemberPodDeleted(name="member1", owner=examples.ref("nginx", kind), slot=3)
    )
    for checked in (stage, stage.restarted()):
        await checked.turn(after_ms=60_000)
        (workload,) = _state(checked).workloads.values()
        assert (workload.replicas, workload.admitted) == (count, 10)
        assert workload.admitted + workload.pending == PODS_MAX
        assert lists.find_pod(_state(checked), "default", "nginx-none") is None


async def test_deleted_managed_object_is_created_again() -> None:
    stage, offset = await _joined()
    await stage.work(examples.applied("nginx", 2, offset=offset))
    await stage.settle()
    before = _state(stage).workloads[NGINX].created_ms
    stage.now_ms += 5_000
    await _delete(stage)
    workload = _state(stage).workloads[NGINX]
    assert workload.created_ms > before
    assert workload.ready == 0
    await stage.settle()
    assert examples.shown(stage) == {("member1", NGINX): (2, 2)}


async def _retaining(stage: examples.Stage, replicas: int) -> int:
    """Apply the template nginx such that its members decide on the replicas, and return its offset."""
    value = manifests.deployment("nginx", replicas, "default")
    labels = {marks.RETAIN_REPLICAS: "true"}
    value["metadata"] = {"name": "nginx", "namespace": "default", "labels": labels}
    return await stage.submit_template(value, NGINX)


async def test_replicas_that_the_member_decides_stay_when_the_template_changes_and_after_a_restart() -> None:
    stage, offset = await _joined()
    await stage.work(examples.applied("nginx", 2, offset=offset))
    await stage.settle()
    offset = await _retaining(stage, 4)
    await stage.work(examples.applied("nginx", 4, step=2, offset=offset))
    await stage.settle()
    assert examples.shown(stage) == {("member1", NGINX): (2, 2)}
    await _write(stage, _deployment(3))
    await stage.work(examples.applied("nginx", 5, step=3, offset=offset))
    await stage.settle()
    assert examples.shown(stage) == {("member1", NGINX): (3, 3)}
    rebuilt = stage.restarted()
    await rebuilt.settle()
    assert examples.shown(rebuilt) == {("member1", NGINX): (3, 3)}
    offset = await stage.template("nginx", 5)
    await stage.work(examples.applied("nginx", 5, step=4, offset=offset))
    await stage.settle()
    assert examples.shown(stage) == {("member1", NGINX): (5, 5)}


async def test_deleted_pod_is_replaced_by_a_new_one_that_starts_and_the_others_stay() -> None:
    stage, offset = await _joined()
    await stage.work(examples.applied("nginx", 3, offset=offset))
    await stage.settle()
    before = [pod.name for pod in stage.members.pods()]
    await _delete_pod(stage, 1)
    workload = _state(stage).workloads[NGINX]
    assert (workload.ready, workload.admitted) == (2, 3)
    after = [(pod.name, pod.phase) for pod in stage.members.pods()]
    assert after[:2] == [(before[0], "Running"), (before[2], "Running")]
    assert after[2][1] == "Pending"
    assert after[2][0] not in before
    await stage.settle()
    assert examples.shown(stage) == {("member1", NGINX): (3, 3)}


async def _run_by_client(kind: str, spec: dict[str, object], nodes: int = 1) -> examples.Stage:
    """A member in which a client has created an object named nginx."""
    group = specs.NodeGroup(count=nodes, allocatable={"cpu": "1", "memory": "1Gi", "pods": "10"})
    stage = examples.Stage(structs.replace(examples.member(), nodes=(group,)))
    await stage.turn()
    pod = {
        "metadata": {"labels": {"app": "nginx"}},
        "spec": {"containers": [{"name": "a", "image": "nginx"}]},
    }
    await _write(
        stage,
        msgspec.json.encode(
            {
                "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
                "kind": kind,
                "metadata": {"name": "nginx", "namespace": "default"},
                "spec": {**spec, "template": pod},
            }
        ),
    )
    return stage


def _status(stage: examples.Stage, kind: str) -> Json:
    workload = unmanaged.running(_state(stage), examples.key_of("nginx", kind))
    assert workload is not None
    return statuses.status(_state(stage), workload)


async def test_job_ends_after_its_completions() -> None:
    stage = await _run_by_client("Job", {"parallelism": 2, "completions": 3})
    await stage.turn(after_ms=examples.STARTUP_MS)
    assert (_status(stage, "Job")["active"], _status(stage, "Job")["ready"]) == (2, 2)
    await stage.turn(after_ms=5_000)
    assert (_status(stage, "Job")["active"], _status(stage, "Job")["succeeded"]) == (1, 2)
    await stage.turn(after_ms=examples.STARTUP_MS)
    await stage.turn(after_ms=5_000)
    ended = _status(stage, "Job")
    assert (ended["succeeded"], "active" in ended) == (3, False)
    assert KubeObject({"status": ended}).condition("Complete")["status"] == "True"
    assert _state(stage).capacity.running.get("pods", 0) == 0
    assert [pod.phase for pod in stage.members.pods()] == ["Succeeded"] * 3
    assert await stage.turn(after_ms=60_000) == []


async def test_job_that_ended_stays_ended_after_a_restart() -> None:
    stage, _ = await _joined()
    job = examples.applied("nginx", 1, kind="Job")
    job_reading = shapes.Reading(values=(".succeeded", ".completionTime"))
    manifest = manifests.manifest(
        "batch/v1", "Job", "nginx", "default", spec={"template": manifests.pod_template("nginx")}
    )
    offset = await stage.submit_template(manifest, job.key)
    await stage.work(structs.replace(job, offset=offset, reading=job_reading))
    await stage.settle()
    await stage.turn(after_ms=5_000)
    before = _state(stage).workloads[job.key]
    assert (before.succeeded, before.admitted) == (1, 0)
    rebuilt = stage.restarted()
    assert await rebuilt.turn(after_ms=60_000) == []
    after = _state(rebuilt).workloads[job.key]
    assert (after.succeeded, after.admitted, after.pending) == (1, 0, 0)


async def test_daemon_set_runs_one_pod_on_each_node() -> None:
    stage = await _run_by_client("DaemonSet", {}, nodes=4)
    await stage.turn(after_ms=examples.STARTUP_MS)
    status = _status(stage, "DaemonSet")
    assert (status["desiredNumberScheduled"], status["numberReady"]) == (4, 4)


async def test_replica_set_runs_the_replicas_of_its_manifest() -> None:
    stage = await _run_by_client("ReplicaSet", {"replicas": 3})
    await stage.turn(after_ms=examples.STARTUP_MS)
    assert _status(stage, "ReplicaSet")["readyReplicas"] == 3


def _described(state: MemberState) -> object:
    """The state that a restart keeps: without causes of reports, in the order of keys."""
    return {
        "workloads": {key: _workload(state, workload) for key, workload in sorted(state.workloads.items())},
        "unmanaged": dict(sorted(state.unmanaged.items())),
        "conflicts": {key: conflict.work for key, conflict in sorted(state.conflicts.items())},
        "refused": {key: refused.fault for key, refused in sorted(state.refused.items())},
    }


def _workload(state: MemberState, workload: Workload) -> object:
    return (
        workload.ref,
        workload.replicas,
        workload.admitted + workload.pending,
        workload.ready,
        workload.template.digest,
        workload.uid,
        workload.created_ms,
        workload.kept,
        workload.fault,
        workload.preserved,
        workload.is_unmanaged,
        [pod.name for pod in lists.pods_of(state.spec.name, workload)],
    )


_STEPS: Final = st.lists(
    st.sampled_from(
        [
            "write",
            "edit",
            "label",
            "delete",
            "work",
            "retain",
            "overwrite",
            "remove",
            "preserve",
            "pod",
            "orphan",
        ]
    ),
    min_size=1,
    max_size=12,
)


def _edited(stage: examples.Stage, replicas: int, labels: dict[str, str] | None = None) -> bytes:
    """An edit as the member's API records it: of a managed object with its replicas only if the member decides them."""
    workload = _state(stage).managed(NGINX)
    value: Json = msgspec.json.decode(_deployment(replicas, image="busybox", labels=labels))
    if workload is not None and not workload.template.retains:
        del value["spec"]
    return msgspec.json.encode(value)


@settings(max_examples=150, deadline=None)
@given(steps=_STEPS)
async def test_rebuilt_member_equals_the_live_one(steps: list[str]) -> None:
    stage, offset = await _joined()
    for number, step in enumerate(steps, 1):
        match step:
            case "write":
                await _write(stage, _deployment(2))
            case "edit":
                await _write(stage, _edited(stage, number % 3))
            case "label":
                await _write(stage, _edited(stage, 2, {"step": str(number)}))
            case "delete" | "orphan":
                await _delete(stage, orphans=step == "orphan")
            case "work" | "overwrite":
                work = examples.applied("nginx", 2, step=number, offset=offset)
                await stage.work(structs.replace(work, overwrites=step == "overwrite"))
            case "pod":
                owner = unmanaged.running(_state(stage), NGINX) or _state(stage).workloads.get(NGINX)
                if owner is not None and owner.admitted:
                    await _delete_pod(stage, number % owner.admitted)
            case "retain":
                retaining = await _retaining(stage, 2)
                await stage.work(examples.applied("nginx", number % 4, step=number, offset=retaining))
            case _:
                await stage.work(examples.removed("nginx", step=number, preserved=step == "preserve"))
        await stage.settle()
    rebuilt = stage.restarted()
    await rebuilt.settle()
    assert _described(_state(rebuilt)) == _described(_state(stage))


async def test_orphaned_pods_and_their_adoption_survive_restarts() -> None:
    stage = await _run_by_client("StatefulSet", {"replicas": 3})
    await stage.settle()
    manifest = next(iter(_state(stage).unmanaged.values())).manifest
    ref = examples.ref("nginx", "StatefulSet")
    await stage.members.write(
        "member1", clusters.MemberObjectDeleted(name="member1", object=ref, orphans=True)
    )
    pod = clusters.MemberObjectDeleted(name="member1", object=examples.ref("nginx-0", "Pod"))
    await stage.members.write("member1", pod)
    await stage.settle()
    assert [item.ref.name for item in _state(stage).unmanaged.values()] == ["nginx-1", "nginx-2"]
    assert _state(stage).capacity.running.get("pods", 0) == 0
    rebuilt = stage.restarted()
    await rebuilt.settle()
    assert _described(_state(rebuilt)) == _described(_state(stage))
    await _write(rebuilt, manifest)
    workload = unmanaged.running(_state(rebuilt), examples.key_of("nginx", "StatefulSet"))
    assert workload is not None
    assert (workload.ready, workload.pending + workload.admitted) == (2, 3)
    await rebuilt.settle()
    last = rebuilt.restarted()
    await last.settle()
    assert _described(_state(last)) == _described(_state(rebuilt))


def test_reference_of_an_object_gives_the_key_of_its_binding() -> None:
    ref = shapes.WorkloadRef(api_version="v1", kind="ConfigMap", name="a", namespace="b")
    assert ref.binding_key == "b/a-configmap"
