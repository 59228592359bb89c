"""Members with override policies: the overridden workload runs, and a failed override changes nothing."""

import asyncio
import tracemalloc

import msgspec
import pytest

from engine import loop_share
from engine.log.local import MemoryLog
from engine.simulation import api_objects
from engine.works import manifests
from events import health, keys, shapes, works
from events.json_values import Json
from events.kube_objects import KubeObject
from events.records import StoredRecord
from tests.builders import inputs
from tests.builders.manifests import manifest, raw
from tests.members.examples import Stage, applied, key_of, ready, removed, reports

WEB = key_of("web")


async def policy(stage: Stage, *overriders: Json, name: str = "o") -> shapes.OverrideRef:
    """Write an OverridePolicy, and return a reference to all of its rules."""
    applied_policy = inputs.override(name, *({"overriders": overrider} for overrider in overriders))
    offset = stage.log.ends().get(("policies", 0), 0)
    await stage.submit(applied_policy, keys.object_key("OverridePolicy", "default", name))
    return shapes.OverrideRef(
        kind="OverridePolicy",
        name=name,
        namespace="default",
        offset=offset,
        digest=str(offset),
        rules=tuple(range(len(overriders))),
    )


def plain(path: str, value: object, operator: str = "replace") -> Json:
    return {"plaintext": [{"path": path, "operator": operator, "value": value}]}


async def shown(stage: Stage, name: str = "web") -> KubeObject:
    """Return the workload as the member's own API shows it."""
    state = stage.members.state_of("member1")
    workload = state.workloads[key_of(name)]
    made = await manifests.Renderer(stage.log).render(
        manifests.input_of(
            applied(
                name,
                workload.replicas or 0,
                offset=workload.source.offset,
                overrides=workload.source.overrides,
            )
        )
    )
    return api_objects.workload_object(state, workload, KubeObject.from_json(made.manifest))


def faults(events: list[shapes.Event]) -> list[str]:
    return [report.fault for report in reports(events) if isinstance(report, health.WorkloadReported)]


BROKEN = plain("/spec/nowhere", 1)


async def test_overridden_template_runs() -> None:
    stage = Stage()
    offset = await stage.template("web", 3, cpu="100m")
    resources: Json = {"requests": {"cpu": "500m"}}
    rules: list[Json] = [
        {"imageOverrider": [{"component": "Tag", "operator": "replace", "value": "2"}]},
        {"labelsOverrider": [{"operator": "add", "value": {"site": "edge"}}]},
        plain("/spec/template/spec/containers/0/resources", resources),
    ]
    ref = await policy(stage, *rules)
    await stage.work(applied("web", 2, offset=offset, overrides=(ref,)))
    events = await stage.turn()
    assert faults(events) == [""]
    workload_object = await shown(stage)
    assert workload_object.labels["site"] == "edge"
    spec = workload_object.object_at("spec")
    assert spec["replicas"] == 2
    assert msgspec.json.encode(spec["template"]).count(b'"nginx:2"') == 1
    workload = stage.members.state_of("member1").workloads[WEB]
    assert dict(workload.template.amounts)["cpu"] == 500_000_000


async def test_policies_are_applied_in_the_order_of_the_work() -> None:
    stage = Stage()
    offset = await stage.template("web", 1)
    first = await policy(stage, plain("/metadata/labels", {"a": "1", "b": "1"}, "add"), name="z")
    second = await policy(stage, plain("/metadata/labels/a", "2"), name="a")
    await stage.work(applied("web", 1, offset=offset, overrides=(first, second)))
    await stage.turn()
    labels = (await shown(stage)).labels
    assert (labels["a"], labels["b"]) == ("2", "1")


async def test_override_may_change_the_assigned_replicas() -> None:
    stage = Stage()
    offset = await stage.template("web", 9)
    ref = await policy(stage, plain("/spec/replicas", 5))
    await stage.work(applied("web", 2, offset=offset, overrides=(ref,)))
    await stage.turn()
    events = await stage.turn(after_ms=60_000)
    assert ready(events) == {("member1", WEB): (5, 5)}


MISTYPED = plain("/spec/template/spec/containers/0/env", {"A": "b"}, "add")


@pytest.mark.parametrize(
    "rule", [BROKEN, MISTYPED, plain("/spec/replicas", -1), plain("/spec/replicas", "many")]
)
async def test_failed_override_of_a_new_workload_runs_nothing_and_is_reported(rule: Json) -> None:
    stage = Stage()
    offset = await stage.template("web", 1)
    ref = await policy(stage, rule)
    await stage.work(applied("web", 1, offset=offset, overrides=(ref,)))
    (fault,) = faults(await stage.turn())
    assert fault
    assert stage.members.workloads() == []
    await stage.work(applied("web", 1, offset=offset, step=2))
    assert faults(await stage.turn()) == [""]
    assert ready(await stage.turn(after_ms=60_000)) == {("member1", WEB): (1, 1)}


@pytest.mark.parametrize("patches", [2, 30])
async def test_overrides_that_nest_an_object_too_deeply_are_a_fault(patches: int) -> None:
    stage = Stage()
    offset = await stage.template("web", 1)
    value: Json = {}
    for _ in range(40):
        value = {"x": value}
    nested = [
        {"path": "/spec/deep" + "/x" * 40 * depth, "operator": "add", "value": value}
        for depth in range(patches)
    ]
    ref = await policy(stage, {"plaintext": nested})
    await stage.work(applied("web", 1, offset=offset, overrides=(ref,)))
    (fault,) = faults(await stage.turn())
    assert fault == "overrides nest the object deeper than 66 levels"


async def test_failed_override_keeps_the_running_workload() -> None:
    stage = Stage()
    offset = await stage.template("web", 1)
    await stage.work(applied("web", 2, offset=offset))
    await stage.settle()
    ref = await policy(stage, BROKEN)
    await stage.work(applied("web", 7, offset=offset, step=2, overrides=(ref,)))
    (report,) = reports(await stage.turn())
    assert isinstance(report, health.WorkloadReported)
    assert report.fault.startswith("OverridePolicy default/o: plaintext: ")
    assert (report.step, report.replicas, report.ready) == (2, 2, 2)


async def test_missing_policy_or_rule_is_a_fault() -> None:
    stage = Stage()
    offset = await stage.template("web", 1)
    ref = await policy(stage, plain("/spec/replicas", 4))
    missing = msgspec.structs.replace(ref, offset=ref.offset + 7)
    await stage.work(applied("web", 1, offset=offset, overrides=(missing,)))
    strange = msgspec.structs.replace(ref, rules=(7,))
    await stage.work(applied("db", 1, offset=offset + 7, overrides=(ref,)))
    await stage.work(applied("api", 1, offset=offset, overrides=(strange,)))
    assert ["not in the log" in fault for fault in faults(await stage.turn())] == [True] * 3


async def test_failed_workload_is_reported_gone_after_its_removal() -> None:
    stage = Stage()
    offset = await stage.template("web", 1)
    ref = await policy(stage, BROKEN)
    await stage.work(applied("web", 1, offset=offset, overrides=(ref,)))
    await stage.turn()
    await stage.work(removed("web"))
    (report,) = reports(await stage.turn())
    assert isinstance(report, health.WorkloadGone)


async def test_restarted_members_run_and_report_the_same() -> None:
    stage = Stage()
    offset = await stage.template("web", 1, cpu="100m")
    good = await policy(stage, plain("/spec/replicas", 4))
    bad = await policy(stage, BROKEN, name="bad")
    steps: list[tuple[works.WorkApplied, tuple[int, int]]] = [
        (applied("web", 2, offset=offset, step=1), (2, 2)),
        (applied("web", 2, offset=offset, step=2, overrides=(good,)), (4, 4)),
        (applied("web", 2, offset=offset, step=3, overrides=(good, bad)), (4, 4)),
        (applied("web", 3, offset=offset, step=4, overrides=(bad,)), (4, 4)),
        (applied("web", 3, offset=offset, step=5), (3, 3)),
    ]
    new = await stage.template("new", 1)
    for work, expected in steps:
        await stage.work(work, applied("new", 1, offset=new, step=work.step, overrides=(bad,)))
        await stage.turn()
        await stage.turn(after_ms=60_000)
        before = stage.members.state_of("member1").workloads[WEB]
        stage = stage.restarted()
        assert reports(await stage.turn()) == []
        after = stage.members.state_of("member1").workloads[WEB]
        assert (after.ready, after.admitted) == expected
        assert (after.version, after.fault, after.source.overrides) == (
            before.version,
            before.fault,
            before.source.overrides,
        )
        assert [workload.key for workload in stage.members.workloads()] == [WEB]


@pytest.mark.parametrize(
    ("api_version", "kind", "declared", "spec"),
    [
        ("apps/v1", "Deployment", "", {"replicas": 3}),
        ("batch/v1", "Job", "", {"parallelism": 3}),
        ("batch.example.io/v1", "Job", "", {"replicas": 3}),
        ("flink.example.io/v1", "FlinkJob", ".spec.job.size", {"job": {"size": 3, "state": "on"}}),
        ("flink.example.io/v1", "FlinkJob", "spec.none", {"none": 3}),
    ],
)
def test_replicas_are_set_at_the_path_of_the_kind(
    api_version: str, kind: str, declared: str, spec: Json
) -> None:
    template_spec = {"job": {"size": 9, "state": "on"}} if "job" in spec else {}
    render_input = manifests.RenderInput(0, 0, 3, (), (), declared, None)
    made = manifests.render(raw(manifest(api_version, kind, "a", spec=template_spec)), render_input, [])
    assert (made.fault, made.replicas) == ("", 3)
    assert msgspec.json.decode(made.manifest)["spec"] == spec


async def test_cached_results_take_bounded_memory() -> None:
    stage = Stage()
    offset = await stage.template("web", 1)
    large = [{"operator": "add", "value": {f"note{index}": "x" * 250_000 for index in range(4)}}]
    ref = await policy(stage, {"annotationsOverrider": large})
    renderer = manifests.Renderer(stage.log)
    tracemalloc.start()
    for replicas in range(150):
        work = applied("web", replicas, offset=offset, overrides=(ref,))
        made = await renderer.render(manifests.input_of(work))
        assert len(made.manifest) > 1_000_000
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken < 120 * 1024 * 1024


class CopyingLog(MemoryLog):
    """A log in memory that returns copies of the stored values, as logs in files do."""

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        return [
            msgspec.structs.replace(record, value=bytes(bytearray(record.value)))
            for record in await super().read(topic, partition, start, limit)
        ]


async def test_cached_policies_are_bounded_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests, "_CACHED_BYTES_MAX", 2_000_000)
    stage = Stage(log=CopyingLog())
    offset = await stage.template("web", 1)
    refs = [
        await policy(stage, plain("/spec/note", "x" * 500_000, operator="add"), name=f"o{n}")
        for n in range(30)
    ]
    renderer = manifests.Renderer(stage.log)
    tracemalloc.start()
    for ref in refs:
        made = await renderer.render(
            manifests.RenderInput(keys.shard_of(WEB), offset, 1, (ref,), (), "", None)
        )
        assert made.fault == ""
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken < 8_000_000


async def test_large_policies_of_many_works_are_all_read() -> None:
    stage = Stage()
    offset = await stage.template("web", 1)
    # More bytes than one read of the log returns.
    refs = [
        await policy(stage, plain("/spec/note", "x" * 1_000_000, operator="add"), name=f"o{n}")
        for n in range(20)
    ]
    works_of = [applied("web", 1, offset=offset, overrides=(ref,)) for ref in refs]
    made = await manifests.Renderer(stage.log).render_all(map(manifests.input_of, works_of))
    assert {rendered.fault for rendered in made.values()} == {""}


async def test_concurrent_calls_keep_the_rules_that_each_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifests, "_CACHED_MAX", 1)
    stage = Stage()
    # Large templates are rendered in a thread, so that each call pauses between its results.
    offset = await stage.template("web", 1, image="x" * loop_share.LARGE_BYTES)
    refs = [
        await policy(stage, plain("/spec/paused", value=True, operator="add"), name=f"o{n}") for n in range(3)
    ]
    renderer = manifests.Renderer(stage.log)

    def inputs_of(ref: shapes.OverrideRef, count: int) -> list[manifests.RenderInput]:
        return [manifests.input_of(applied("web", n, offset=offset, overrides=(ref,))) for n in range(count)]

    made = await asyncio.gather(
        renderer.render_all(inputs_of(refs[0], 20)),
        renderer.render_all(inputs_of(refs[1], 1)),
        renderer.render_all(inputs_of(refs[2], 1)),
    )
    assert {rendered.fault for results in made for rendered in results.values()} == {""}
