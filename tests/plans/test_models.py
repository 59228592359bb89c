"""Models of clusters that nothing simulates: built from the shards, they run what the log says."""

import msgspec
import pytest

from engine.domain.clusters import UNKNOWN
from engine.plans import fork_log, member_models
from engine.plans.fork import Fork
from engine.plans.questions import Failure, Input, Question
from engine.simulation import member_fleet
from events import clusters, health, records
from events.records import StoredRecord
from tests.builders.inputs import capacity, deployment, joined, key, policy, template
from tests.builders.manifests import DYNAMIC, on
from tests.deciders.story import Story
from tests.plans.worlds import PLANNED, placements, predict, rested
from tests.rounds import ROUNDS
from tests.simulation import world

Running = dict[str, tuple[object, ...]]


def running(members: member_fleet.Members, name: str) -> Running:
    """Return what a member runs, with the versions of its works and what is ready."""
    return {
        key: (
            workload.version,
            workload.known,
            workload.replicas,
            workload.ready,
            workload.suspended,
            workload.digest,
            workload.template,
        )
        for key, workload in members.state_of(name).workloads.items()
        if not workload.preserved
    }


@pytest.mark.parametrize("seed", [*range(30), 174])
async def test_models_built_from_shards_equal_those_built_from_the_log(seed: int) -> None:
    played = await rested(seed)
    forked = await fork_log.fork(played.log)
    planned = Fork(forked, (), played.now_ms)
    await planned.start()
    await planned.members.restore_all()
    facts = await planned.shards.newest_facts(forked)
    models = member_models.read(facts, ())
    assert [spec.name for spec in models.specs] == sorted(facts.fleet.names())
    read = member_fleet.Members(forked, lambda: played.now_ms, models.specs)
    await read.recover()
    # A cluster that is down may still run what it was to remove; it reports nothing, so no plan sees it.
    up = [name for name in read.names() if not read.state_of(name).faults.down]
    assert up == [name for name in up if not planned.members.state_of(name).faults.down]
    for name in up:
        assert running(planned.members, name) == running(read, name)
        assert planned.members.state_of(name).gone.keys() == read.state_of(name).gone.keys()


@pytest.mark.slow
async def test_a_plan_restores_only_the_workloads_of_its_works_and_is_the_same() -> None:
    unrestored = 0
    for seed in range(24 * ROUNDS):
        played = await rested(seed)
        number = played.log.last_number()
        for _ in range(4):
            await played.chance.choice(PLANNED)(played)
        made = await played.log.read_all(number, 1_000)
        usual, added = await run_on_fork(played, number, made, restores=False)
        restored, all_added = await run_on_fork(played, number, made, restores=True)
        assert added == all_added, seed
        unrestored += restored - usual
    assert unrestored > 0


@pytest.mark.parametrize(("name", "count"), [("", 1), ("high", 3)])
async def test_an_object_that_acts_on_others_restores_all_workloads_of_its_cluster(
    name: str, count: int
) -> None:
    story = Story()
    await story.submit(joined("member1"), capacity("member1"), policy("p", on("member1")))
    await story.submit(deployment("web"), deployment("api"))
    for workload_name in ("web", "api"):
        await story.submit(await as_agents_report(story, key(workload_name)))
    planned = Fork(await fork_log.fork(story.log), (), story.now_ms)
    await planned.start()
    running = planned.members.state_of("member1").workloads
    assert not running
    new = story.record(deployment("new", priorityClassName=name))
    await planned.run([Input(record=new)], [], 900_000)
    assert len(running) == count


@pytest.mark.parametrize(
    ("reported", "count"),
    [
        ({}, 0),
        ({"replicas": 2}, 1),
        ({"updated": 0}, 1),
        ({"ready": 0}, 1),
        ({"available": 0}, 1),
        ({"healthy": False}, 1),
        ({"fault": "a webhook refused it"}, 1),
        ({"values": {".readyReplicas": "1"}}, 1),
        ({"generation": 2}, 1),
        ({"step": 0}, 1),
    ],
)
async def test_workload_on_which_its_model_would_report_something_else_is_restored_at_once(
    reported: dict[str, object], count: int
) -> None:
    story = Story()
    await story.submit(joined("member1"), capacity("member1"), policy("p", on("member1")), deployment("web"))
    await story.submit(msgspec.structs.replace(await as_agents_report(story, key("web")), **reported))
    planned = Fork(await fork_log.fork(story.log), (), story.now_ms)
    await planned.start()
    assert len(planned.members.state_of("member1").workloads) == count


@pytest.mark.parametrize("seed", [1, 2, 50, 61, 67])
async def test_pods_that_wait_for_capacity_take_the_reported_capacity_once(seed: int) -> None:
    played = await rested(seed)
    forked = await fork_log.fork(played.log)
    planned = Fork(forked, (), played.now_ms)
    await planned.start()
    number = played.log.last_number()
    for _ in range(3):
        await played.chance.choice(PLANNED)(played)
    inputs = [
        Input(record=records.record(record.topic, record.partition, record.key, record.headers, record.value))
        for record in await played.log.read_all(number, 1_000)
    ]
    await planned.run(inputs, [], 900_000)
    await played.settle(900_000)
    assert placements(planned.worker) == placements(played.worker)


async def test_clusters_with_heartbeats_do_not_become_silent_in_a_plan() -> None:
    story = Story()
    for name in ("member1", "member2"):
        heartbeat = clusters.ClusterHealthChanged(name=name, ready=True, grace_seconds=40)
        await story.submit(joined(name), capacity(name), heartbeat)
    await story.submit(policy("p", on("member1")), deployment("web"))
    await story.submit(await as_agents_report(story, key("web")))
    question = Question(began_ms=story.now_ms + 5_000)
    prediction = await predict(story.log, question)
    assert prediction.settled_ms == 0
    assert not [event for event in prediction.events if "silenced" in event.type or "health" in event.type]
    failed = await predict(
        story.log, msgspec.structs.replace(question, failures=(Failure(member="member1"),))
    )
    (last, silent) = [event for event in failed.events if "health" in event.type]
    assert (last.after_ms, last.subject, silent.after_ms, silent.data["silent"]) == (
        0,
        "member1",
        40_000,
        True,
    )
    assert "the failure of member1 is noticed after 40 s without heartbeats" in failed.assumptions
    (change,) = failed.changed
    assert change.ready_min == 0, "its replicas are lost at once"


async def test_silent_cluster_stays_silent_in_a_plan() -> None:
    story = Story()
    heartbeat = clusters.ClusterHealthChanged(name="member1", ready=True, grace_seconds=40)
    await story.submit(joined("member1"), capacity("member1"), heartbeat)
    await story.pass_s(60)
    planned = Fork(await fork_log.fork(story.log), (), story.now_ms)
    await planned.start()
    await planned.run([], [], 900_000)
    known = planned.worker.facts.members["member1"].health
    assert known is not None
    assert known.status == UNKNOWN


async def test_failures_happen_at_their_times_in_whatever_order_they_are_named() -> None:
    story = Story()
    for name in ("member1", "member2"):
        await story.submit(
            joined(name), clusters.ClusterHealthChanged(name=name, ready=True, grace_seconds=40)
        )
    failures = (Failure(member="member2", after_ms=2_000), Failure(member="member1", after_ms=1_000))
    question = Question(began_ms=story.now_ms + 5_000, failures=failures)
    prediction = await predict(story.log, question)
    last = [(event.after_ms, event.subject) for event in prediction.events if "health" in event.type][:2]
    assert last == [(1_000, "member1"), (2_000, "member2")]


async def test_a_model_reports_the_free_nodes_of_its_cluster_on() -> None:
    minimum = clusters.Quantities(name="cpu", min="1", max="2")
    graded = msgspec.structs.replace(
        joined("member1"), resource_models=(clusters.ResourceGrade(grade=0, ranges=(minimum,)),)
    )
    free = (clusters.GradeCount(grade=0, count=2),)
    report = msgspec.structs.replace(capacity("member1"), modelings=free, nodes=2, nodes_ready=2)
    story = Story()
    await story.submit(graded, report, policy("p", on("member1", scheduling=DYNAMIC)))
    await story.submit(deployment("web", cpu="1"))
    await story.submit(await as_agents_report(story, key("web")))
    planned = Fork(await fork_log.fork(story.log), (), story.now_ms)
    await planned.start()
    change = deployment("web", 6, cpu="1")
    await planned.run([Input(record=story.record(change))], [], 900_000)
    await story.submit(change)
    assert placements(planned.worker) == placements(story.worker)


@pytest.mark.parametrize(("reported", "running"), [(None, 3), (2, 2)])
async def test_daemon_set_runs_on_the_reported_nodes_of_a_model(reported: int | None, running: int) -> None:
    daemon_set = ("apps/v1", "DaemonSet")
    served = (clusters.ApiKind(group_version=daemon_set[0], kinds=(daemon_set[1],)),)
    report = msgspec.structs.replace(capacity("member1"), nodes=3, nodes_ready=3)
    created = template("proxy", daemon_set, fields={"spec": {"template": {"spec": {"containers": []}}}})
    story = Story()
    await story.submit(msgspec.structs.replace(joined("member1"), apis=served), report)
    await story.submit(policy("p", on("member1"), {"apiVersion": daemon_set[0], "kind": daemon_set[1]}))
    inputs = (Input(record=story.record(created)),)
    if reported is not None:
        await story.submit(created)
        known = await as_agents_report(story, key("proxy", daemon_set))
        counts = dict.fromkeys(("replicas", "updated", "ready", "available"), reported)
        await story.submit(msgspec.structs.replace(known, **counts))
        inputs = ()
    prediction = await predict(story.log, Question(began_ms=story.now_ms, inputs=inputs))
    reports = [event.data["replicas"] for event in prediction.events if "workload-reported" in event.type]
    assert (reports or [reported])[-1] == running


async def as_agents_report(story: Story, binding_key: str) -> health.WorkloadReported:
    """Return the report of an agent that the only replica of a binding in member1 is ready."""
    work = (await story.running(binding_key))["member1"]
    return health.WorkloadReported(
        cluster="member1",
        key=binding_key,
        term=work.term,
        step=work.step,
        replicas=1,
        updated=1,
        ready=1,
        available=1,
        generation=1,
        observed_generation=1,
        healthy=True,
    )


async def run_on_fork(
    played: world.World, number: int, made: list[StoredRecord], *, restores: bool
) -> tuple[int, list[StoredRecord]]:
    """Make changes on a fork in which all members are models; return the workloads in the end, and the new records."""
    forked = await fork_log.fork(played.log, number)
    planned = Fork(forked, (), played.now_ms)
    await planned.start()
    if restores:
        await planned.members.restore_all()
    before = len(forked.added)
    inputs = [
        Input(record=records.record(record.topic, record.partition, record.key, record.headers, record.value))
        for record in made
    ]
    await planned.run(inputs, [], 900_000)
    members = planned.members
    return sum(len(members.state_of(name).workloads) for name in members.names()), forked.added[before:]
