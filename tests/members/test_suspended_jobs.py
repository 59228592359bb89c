"""A suspended Job runs no pods, as in Kubernetes."""

from typing import Final

from msgspec import structs

from engine.simulation import statuses
from events import shapes
from events.json_values import Json
from events.kube_objects import KubeObject
from tests.builders import manifests
from tests.members import examples

_READING: Final = shapes.Reading(values=(".succeeded", ".completionTime"))


async def _write(stage: examples.Stage, step: int, *, suspend: bool) -> None:
    """Let the member run a Job of three pods, two at a time."""
    job = examples.applied("nginx", 2, kind="Job", step=step)
    spec: Json = {"suspend": suspend, "parallelism": 2, "completions": 3}
    spec["template"] = manifests.pod_template("nginx")
    manifest = manifests.manifest("batch/v1", "Job", "nginx", "default", spec=spec)
    offset = await stage.submit_template(manifest, job.key)
    await stage.work(structs.replace(job, offset=offset, reading=_READING))
    await stage.settle()


def _status(stage: examples.Stage) -> Json:
    state = stage.members.state_of("member1")
    return statuses.status(state, state.workloads[examples.key_of("nginx", "Job")])


async def test_suspended_job_runs_nothing_until_it_is_resumed() -> None:
    stage = examples.Stage(examples.member())
    await _write(stage, 1, suspend=True)
    assert stage.members.pods() == []
    shown = _status(stage)
    assert KubeObject({"status": shown}).condition("Suspended")["status"] == "True"
    assert not shown.keys() & {"active", "startTime", "completionTime"}
    rebuilt = stage.restarted()
    await rebuilt.turn(after_ms=60_000)
    assert rebuilt.members.pods() == []
    await _write(rebuilt, 2, suspend=False)
    assert (_status(rebuilt)["active"], "conditions" in _status(rebuilt)) == (2, False)


async def test_job_that_is_suspended_while_it_runs_loses_its_pods() -> None:
    stage = examples.Stage(examples.member())
    await _write(stage, 1, suspend=False)
    await stage.turn(after_ms=5_000)
    assert _status(stage)["succeeded"] == 2
    await _write(stage, 2, suspend=True)
    assert (_status(stage)["succeeded"], "active" in _status(stage)) == (2, False)
