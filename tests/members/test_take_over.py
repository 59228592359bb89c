"""Objects that pass from a member's clients to the control plane, or back, keep running."""

import msgspec
import pytest
from msgspec import structs

from engine.simulation import statuses
from events import clusters, works
from events.json_values import Json
from events.kube_objects import KubeObject
from tests.builders import manifests
from tests.members import examples


async def _write(stage: examples.Stage, value: Json) -> None:
    manifest = msgspec.Raw(msgspec.json.encode(value))
    await stage.members.write("member1", clusters.MemberObjectApplied(name="member1", manifest=manifest))


async def _take_over(stage: examples.Stage, value: Json, work: works.WorkApplied) -> None:
    offset = await stage.submit_template(value, work.key)
    await stage.work(structs.replace(work, offset=offset, overwrites=True))
    await stage.turn()


def _condition(stage: examples.Stage, kind: str) -> Json:
    state = stage.members.state_of("member1")
    (workload,) = state.workloads.values()
    return KubeObject({"status": statuses.status(state, workload)}).condition(kind)


@pytest.mark.parametrize("is_taken_over", [True, False])
async def test_running_job_ends_under_its_new_owner(is_taken_over: bool) -> None:
    stage = examples.Stage()
    await stage.turn()
    spec = {"template": manifests.pod_template("nginx")}
    job = manifests.manifest("batch/v1", "Job", "nginx", "default", spec=spec)
    work = examples.applied("nginx", 1, kind="Job")
    if is_taken_over:
        await _write(stage, job)
        await stage.turn(after_ms=examples.STARTUP_MS)
        await _take_over(stage, job, work)
    else:
        await _take_over(stage, job, work)
        await stage.turn(after_ms=examples.STARTUP_MS)
        await stage.work(structs.replace(examples.removed("nginx", preserved=True), key=work.key))
        await stage.turn()
        await _write(stage, job)
    await stage.turn(after_ms=5_000)
    assert _condition(stage, "Complete")["status"] == "True"


async def test_rollout_of_a_released_deployment_fails_after_its_deadline() -> None:
    stage = examples.Stage()
    await stage.turn()
    await _take_over(stage, manifests.deployment("nginx", 1, "default"), examples.applied("nginx", 1))
    await stage.settle()
    broken = manifests.deployment("nginx", 1, "default", image="fake/nginx")
    await _take_over(stage, broken, examples.applied("nginx", 1, step=2))
    await stage.work(examples.removed("nginx", step=3, preserved=True))
    await stage.settle()
    await _write(stage, broken)
    await stage.turn(after_ms=600_000)
    assert _condition(stage, "Progressing")["reason"] == "ProgressDeadlineExceeded"
