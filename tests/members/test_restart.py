"""Members after a crash: workloads keep running, and nothing in the log is reported again."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from engine.domain import marks
from engine.log.local import MemoryLog
from engine.log.port import LogError, OutcomeUnknownError
from engine.simulation import reports, unmanaged
from events import clusters, health, records, shapes
from tests.builders import manifests
from tests.members import examples

NGINX = examples.key_of("nginx")


@pytest.mark.parametrize("is_limited", [True, False])
async def test_last_pod_of_a_job_runs_its_time_also_across_a_restart(is_limited: bool) -> None:
    stage = examples.Stage()
    await stage.turn()
    if is_limited:
        quota = manifests.manifest("v1", "ResourceQuota", "all", "default", spec={"hard": {"pods": "9"}})
        write = clusters.MemberObjectApplied(name="member1", manifest=manifests.raw(quota))
        await stage.members.write("member1", write)
    spec = {"parallelism": 2, "completions": 3, "template": manifests.pod_template("nginx")}
    manifest = manifests.manifest("batch/v1", "Job", "nginx", "default", spec=spec)
    job = examples.applied("nginx", 2, kind="Job")
    offset = await stage.submit_template(manifest, job.key)
    await stage.work(structs.replace(job, offset=offset, reading=shapes.Reading(values=(".succeeded",))))
    await stage.turn()
    for after_ms in (examples.STARTUP_MS, 5_000, examples.STARTUP_MS):
        await stage.turn(after_ms=after_ms)
    stage = stage.restarted()
    for after_ms, succeeded in ((4_900, 2), (100, 3)):
        await stage.turn(after_ms=after_ms)
        workload = stage.members.state_of("member1").workloads[job.key]
        assert workload.succeeded == succeeded


async def test_restarted_members_repeat_no_report() -> None:
    stage = examples.Stage(examples.member("member1"), examples.member("member2"))
    offset = await stage.template("nginx", 2, cpu="100m")
    await stage.work(
        *(examples.applied("nginx", 2, cluster=cluster, offset=offset) for cluster in ("member1", "member2"))
    )
    await stage.work(examples.applied("settings", None, kind="ConfigMap"))
    await stage.work(examples.applied("old", 1), examples.removed("old"))
    await stage.settle()
    stage = stage.restarted()
    assert await stage.turn() == []
    assert await stage.turn(after_ms=60_000) == []
    assert examples.shown(stage) == {
        ("member1", NGINX): (2, 2),
        ("member2", NGINX): (2, 2),
        ("member1", examples.key_of("settings", "ConfigMap")): (0, 0),
    }


async def test_generation_of_an_object_survives_a_restart() -> None:
    stage = examples.Stage(examples.member())
    for step in (1, 2):
        await stage.work(examples.applied("nginx", step, step=step))
        await stage.settle()
    stage = stage.restarted()
    assert await stage.turn() == []
    await stage.work(examples.applied("nginx", 3, step=3))
    (report,) = (event for event in await stage.turn() if isinstance(event, health.WorkloadReported))
    assert (report.generation, report.observed_generation) == (3, 3)


async def test_works_written_during_downtime_are_read_first() -> None:
    stage = examples.Stage(examples.member())
    await stage.work(examples.applied("nginx", 1))
    await stage.settle()
    stage = stage.restarted()
    await stage.work(examples.applied("nginx", 3, step=2))
    stage = stage.restarted()
    events = await stage.turn()
    assert examples.ready(events) == {("member1", NGINX): (1, 3)}
    events = await stage.turn(after_ms=200)
    assert examples.ready(events) == {("member1", NGINX): (3, 3)}


async def test_unreported_removal_is_reported_once_after_a_restart() -> None:
    stage = examples.Stage(examples.member())
    await stage.work(examples.applied("nginx", 1))
    await stage.settle()
    await stage.work(examples.removed("nginx"))
    stage = stage.restarted()
    assert health.WorkloadGone(cluster="member1", key=NGINX, term=1, step=2) in await stage.turn()
    stage = stage.restarted()
    assert await stage.turn() == []


async def test_pods_keep_their_names_and_ages() -> None:
    stage = examples.Stage(examples.member())
    offset = await stage.template("nginx", 1)
    await stage.work(examples.applied("nginx", 1, offset=offset))
    await stage.settle()
    stage.now_ms += 60_000
    await stage.work(examples.applied("nginx", 2, step=2, offset=offset))
    await stage.settle()
    before = [(pod.name, pod.created_ms) for pod in stage.members.pods()]
    stage = stage.restarted()
    await stage.turn(after_ms=1000)
    assert [(pod.name, pod.created_ms) for pod in stage.members.pods()] == before
    assert before[1][1] - before[0][1] == 60_200 + reports.SHIFT_MS


@pytest.mark.parametrize("retains", [True, False])
async def test_pods_whose_number_the_member_decided_keep_their_ages(retains: bool) -> None:
    stage = examples.Stage(examples.member())
    value = manifests.deployment("nginx", 2, "default")
    metadata = {"name": "nginx", "namespace": "default"}
    value["metadata"] = {**metadata, "labels": {marks.RETAIN_REPLICAS: "true"}}
    offset = await stage.submit_template(value, NGINX)
    await stage.work(examples.applied("nginx", 2, offset=offset))
    scaled = {**value, "metadata": metadata, "spec": {"replicas": 4}}
    write = clusters.MemberObjectApplied(name="member1", manifest=manifests.raw(scaled))
    for step, replicas in ((2, 3), (3, 7)):
        await stage.settle()
        await stage.members.write("member1", write)
        stage.now_ms += 60_000
        if step == 3 and not retains:
            offset = await stage.template("nginx", replicas)
        await stage.work(examples.applied("nginx", replicas, step=step, offset=offset))
    await stage.settle()
    before = [(pod.name, pod.created_ms) for pod in stage.members.pods()]
    assert len(before) == (4 if retains else 7)
    stage = stage.restarted()
    await stage.settle()
    assert [(pod.name, pod.created_ms) for pod in stage.members.pods()] == before


async def test_preserved_workload_keeps_its_capacity_and_suspended_one_stays_suspended() -> None:
    stage = examples.Stage(examples.member())
    offset = await stage.template("nginx", 2, cpu="100m")
    await stage.work(examples.applied("nginx", 2, offset=offset), examples.applied("held", 1))
    await stage.settle()
    await stage.work(examples.removed("nginx", preserved=True), examples.suspended("held"))
    await stage.turn()
    stage = stage.restarted()
    assert await stage.turn() == []
    suspended, kept = stage.members.workloads()
    assert (suspended.suspended, kept.preserved, kept.ready) == (True, True, 2)
    await stage.work(examples.removed("held", step=3))
    assert examples.capacity(await stage.turn()).allocated == {"cpu": "200m", "memory": "0", "pods": "2"}


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_deleted_namespace_takes_preserved_workloads_along(*, is_restarted: bool) -> None:
    stage = examples.Stage(examples.member())
    offset = await stage.template("nginx", 2, cpu="100m")
    await stage.work(examples.applied("nginx", 2, offset=offset), examples.applied("managed", 1))
    await stage.settle()
    await stage.work(examples.removed("nginx", preserved=True))
    await stage.turn()
    namespace = shapes.WorkloadRef(api_version="v1", kind="Namespace", name="default")
    assert unmanaged.keeps_namespace(stage.members.state_of("member1"), namespace)
    await stage.members.write("member1", clusters.MemberObjectDeleted(name="member1", object=namespace))
    if is_restarted:
        stage = stage.restarted()
    await stage.settle()
    assert [workload.key for workload in stage.members.workloads()] == [examples.key_of("managed")]
    assert not unmanaged.keeps_namespace(stage.members.state_of("member1"), namespace)


async def test_member_that_was_down_stays_down_and_catches_up_when_healed() -> None:
    stage = examples.Stage(examples.member("member1"))
    await stage.work(examples.applied("nginx", 1))
    await stage.settle()
    await stage.members.fault("member1", "down")
    await stage.work(examples.applied("nginx", 2, step=2))
    stage = stage.restarted()
    assert await stage.turn(after_ms=1000) == []
    assert examples.shown(stage) == {("member1", NGINX): (1, 1)}
    before = stage.log.last_number()
    await stage.members.heal("member1")
    assert examples.ready(await stage.events_since(before)) == {("member1", NGINX): (1, 2)}


async def test_removed_member_does_not_rejoin_after_a_restart() -> None:
    stage = examples.Stage(examples.member())
    await stage.turn()
    await stage.submit(clusters.ClusterLeft(name="member1"), "member1")
    stage = stage.restarted()
    assert await stage.turn() == []


class _FailingLog(MemoryLog):
    """A log whose appends have an unknown outcome ``failures`` times."""

    failures = 0
    lands = False

    async def append(self, batch: Sequence[records.Record]) -> list[records.StoredRecord]:
        if self.failures and batch:
            self.failures -= 1
            if self.lands:
                await super().append(batch)
            raise OutcomeUnknownError("the answer was lost")
        return await super().append(batch)


class _Unreadable(MemoryLog):
    """A log whose next read of a topic fails."""

    topic = ""

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[records.StoredRecord]:
        if topic == self.topic:
            self.topic = ""
            raise LogError("not readable for a moment")
        return await super().read(topic, partition, start, limit)


@pytest.mark.parametrize("topic", ["clusters", "decisions", "specs", "works"])
async def test_work_is_applied_although_a_read_failed(topic: str) -> None:
    names = ("member1", "member2", "member3")
    log = _Unreadable()
    stage = examples.Stage(*map(examples.member, names), log=log)
    offset = await stage.template("nginx", 2)
    await stage.turn()
    await stage.work(*(examples.applied("nginx", 2, cluster=name, offset=offset) for name in names))
    log.topic = topic
    with pytest.raises(LogError):
        await stage.turn()
    await stage.turn()
    await stage.turn(after_ms=60_000)
    assert examples.shown(stage) == {(name, NGINX): (2, 2) for name in names}


async def test_members_start_although_the_first_read_failed() -> None:
    log = _Unreadable()
    stage = examples.Stage(examples.member(), log=log)
    await stage.work(examples.applied("nginx", 2))
    await stage.settle()
    stage = stage.restarted()
    log.topic = "works"
    running = asyncio.create_task(stage.members.run())
    await stage.members.wait_joined()
    running.cancel()
    assert not log.topic
    assert examples.shown(stage) == {("member1", NGINX): (2, 2)}


@pytest.mark.parametrize("lands", [True, False])
async def test_append_of_unknown_outcome_is_neither_lost_nor_repeated(lands: bool) -> None:
    log = _FailingLog()
    stage = examples.Stage(examples.member(startup_ms=0), log=log)
    await stage.turn()
    await stage.work(examples.applied("nginx", 2))
    before = log.last_number()
    log.failures, log.lands = 1, lands
    with pytest.raises(OutcomeUnknownError):
        await stage.members.turn()
    await stage.turn()
    assert examples.ready(await stage.events_since(before)) == {("member1", NGINX): (2, 2)}
    assert len(await stage.events_since(before)) == 2


class _LateLog(MemoryLog):
    """A log on which a batch of unknown outcome lands only before the next batch."""

    fails = False
    late: Sequence[records.Record] = ()

    async def append(self, batch: Sequence[records.Record]) -> list[records.StoredRecord]:
        if self.fails and batch:
            self.fails, self.late = False, batch
            raise OutcomeUnknownError("the answer was lost")
        late, self.late = self.late, ()
        await super().append(late)
        return await super().append(batch)


async def test_reports_after_an_unknown_outcome_have_new_ids() -> None:
    log = _LateLog()
    stage = examples.Stage(examples.member(), log=log)
    await stage.turn()
    await stage.work(examples.applied("nginx", 2))
    stage.members = stage.restarted().members
    log.fails = True
    with pytest.raises(OutcomeUnknownError):
        await stage.members.turn()
    await stage.turn(after_ms=examples.STARTUP_MS)
    ids = [
        (record.headers["ce_source"], record.headers["ce_id"])
        for record in await log.read_all(0, 100)
        if record.headers["ce_source"].startswith(reports.SOURCE)
    ]
    assert len(ids) == len(set(ids))


MOVES = st.lists(
    st.tuples(
        st.sampled_from(("apply", "remove", "suspend", "pass", "crash")),
        st.sampled_from(("a", "b", "c")),
        st.integers(0, 6),
        st.integers(0, 400),
    ),
    max_size=25,
)


@settings(max_examples=60)
@given(moves=MOVES)
async def test_crash_at_any_time_gives_the_same_result_as_none(
    moves: list[tuple[str, str, int, int]],
) -> None:
    crashing, steady = (examples.Stage(examples.member(cpu="700m")) for _ in range(2))
    for stage in (crashing, steady):
        for name in ("a", "b", "c"):
            await stage.template(name, 1, cpu="100m")
    for step, (move, name, replicas, passed_ms) in enumerate(moves, start=1):
        for stage in (crashing, steady):
            stage.now_ms += passed_ms
            await _move(stage, move, name, replicas, step)
        if move == "crash":
            crashing = crashing.restarted()
    for stage in (crashing, steady):
        await stage.settle()
        await stage.settle()
    assert _totals(crashing) == _totals(steady)
    assert _ready(crashing) == _ready(steady)
    _says_each_thing_once(await crashing.events_since(0))


async def _move(stage: examples.Stage, move: str, name: str, replicas: int, step: int) -> None:
    match move:
        case "apply":
            await stage.work(examples.applied(name, replicas, step=step))
        case "remove":
            await stage.work(examples.removed(name, step=step))
        case "suspend":
            await stage.work(examples.suspended(name, step=step))
        case _:
            await stage.turn()


def _totals(stage: examples.Stage) -> dict[str, int]:
    """Return the requested replicas by workload; which of them run may differ if capacity is missing."""
    return {workload.key: workload.replicas for workload in stage.members.workloads()}


def _ready(stage: examples.Stage) -> int:
    return sum(workload.ready for workload in stage.members.workloads())


def _says_each_thing_once(events: list[shapes.Event]) -> None:
    last: dict[tuple[type, str], shapes.Event] = {}
    for event in events:
        match event:
            case health.WorkloadReported(key=key) | health.WorkloadGone(key=key):
                assert last.get((health.WorkloadReported, key)) != event
                last[health.WorkloadReported, key] = event
            case clusters.CapacityReported(name=name):
                assert last.get((clusters.CapacityReported, name)) != event
                last[clusters.CapacityReported, name] = event
            case _:
                pass


async def test_replicas_of_an_image_that_no_registry_has_never_start_before_and_after_a_restart() -> None:
    stage = examples.Stage(examples.member(startup_ms=0))
    offset = await stage.template("nginx", 2, image="fake/nginx:1.19.0")
    await stage.work(examples.applied("nginx", 2, offset=offset))
    await stage.settle()
    assert examples.shown(stage) == {("member1", NGINX): (0, 2)}
    assert [pod.waiting for pod in stage.members.pods("member1", "default")] == ["ImagePullBackOff"] * 2
    assert stage.members.next_timer_ms() is None
    stage = stage.restarted()
    assert await stage.turn(after_ms=60_000) == []
    assert examples.shown(stage) == {("member1", NGINX): (0, 2)}
    offset = await stage.template("nginx", 2, image="nginx:1.19.0")
    await stage.work(examples.applied("nginx", 2, step=2, offset=offset))
    await stage.settle()
    assert examples.shown(stage) == {("member1", NGINX): (2, 2)}
