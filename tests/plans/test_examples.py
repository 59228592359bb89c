"""Predictions of single changes, as a user asks for them."""

from typing import Final

from engine.plans import drills, questions, summaries
from engine.plans.predictions import Prediction
from engine.plans.questions import Failure, Input
from events import clusters, codec, health, keys, records, shapes, specs, times, topics
from events.json_values import Json
from tests.builders import inputs, manifests
from tests.plans import worlds
from tests.simulation import storms, world
from tests.simulation.moves import policies

WEB: Final = "default/web-deployment"
WEIGHTED: Final = policies.divided("Weighted", {"dynamicWeight": "AvailableReplicas"})


def record(data: shapes.Event, key: str, at_ms: int = world.START_MS) -> Input:
    """Return a hypothetical input with a time."""
    topic = data.event_type.topic
    head = records.Envelope(id=f"planned-{key}", source="/plan", type="", time=times.to_text(at_ms))
    partition = keys.partition_of(key, topics.TOPICS[topic].partitions)
    return Input(record=codec.encode(data, head, partition=partition, key=key))


def web(replicas: int, cpu: str = "100m") -> shapes.Event:
    return inputs.applied(manifests.deployment("web", replicas, "default", requests={"cpu": cpu}))


async def running(replicas: int, cpu: str = "100m") -> world.World:
    """Return a stable world in which a Deployment runs in all four members."""
    played = world.World(1)
    await played.start()
    await played.settle()
    spec: dict[str, object] = {
        "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
        "placement": {
            "replicaScheduling": WEIGHTED,
            "clusterTolerations": [
                {"key": "gone", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}
            ],
        },
    }
    await policies.submit_policy(played, "p1", spec)
    await played.submit(web(replicas, cpu), WEB, keys.shard_of(WEB))
    await played.settle()
    return played


async def planned(
    played: world.World, *changes: Input | Failure, faults: tuple[Failure, ...] = ()
) -> Prediction:
    question = questions.Question(
        began_ms=played.now_ms,
        inputs=tuple(change for change in changes if isinstance(change, Input)),
        failures=tuple(change for change in changes if isinstance(change, Failure)),
        faults=faults,
        simulated=tuple(played.specs),
    )
    return await worlds.predict(played.log, question)


async def test_nothing_changes_without_a_change() -> None:
    prediction = await planned(await running(6))
    assert (prediction.changed, prediction.clusters, prediction.events) == ([], [], [])
    assert (prediction.workloads, prediction.settled_ms, prediction.is_settled) == (1, 0, True)


async def test_scaling_starts_replicas() -> None:
    prediction = await planned(await running(6), record(web(10), WEB))
    (change,) = prediction.changed
    assert (sum(change.before.values()), sum(change.after.values())) == (6, 10)
    assert (change.stopped, change.started, change.ready_min, change.ready_after) == (0, 4, 6, 10)
    assert all(int(cluster.after["pods"]) >= int(cluster.before["pods"]) for cluster in prediction.clusters)
    assert 0 < prediction.settled_ms < 1_000


async def test_runs_of_a_cron_job_delay_no_end_of_a_plan() -> None:
    played = await running(6)
    selector = {"apiVersion": "batch/v1", "kind": "CronJob"}
    await policies.submit_policy(played, "p2", {"resourceSelectors": [selector], "placement": {}})
    template = {"spec": {"containers": [{"name": "tick", "image": "tick"}]}}
    cron_job: Json = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "tick", "namespace": "default"},
        "spec": {"schedule": "*/10 * * * *", "jobTemplate": {"spec": {"template": template}}},
    }
    key = keys.binding_key("CronJob", "default", "tick")
    await played.submit(inputs.applied(cron_job), key, keys.shard_of(key))
    await played.settle()
    prediction = await planned(played, record(web(10), WEB))
    assert any(event.subject == key and event.after_ms > 1_000 for event in prediction.events)
    assert 0 < prediction.settled_ms < 1_000


async def test_deleted_workload_counts_as_one_of_the_workloads() -> None:
    template = shapes.WorkloadRef(api_version="apps/v1", kind="Deployment", name="web", namespace="default")
    prediction = await planned(await running(6), record(specs.TemplateDeleted(template=template), WEB))
    assert prediction.workloads == 1
    assert summaries.summary(prediction).startswith("1 of 1 workload to move, 6 replicas to stop, 0 to start")


async def test_taint_moves_replicas_after_the_time_that_a_policy_tolerates() -> None:
    played = await running(6)
    taint = clusters.ClusterTainted(name="member4", taint=clusters.Taint(key="gone", effect="NoExecute"))
    prediction = await planned(played, record(taint, "member4", played.now_ms))
    (change,) = prediction.changed
    assert "member4" in change.before
    assert "member4" not in change.after
    assert sum(change.after.values()) == 6
    assert change.stopped == change.started == change.before["member4"]
    assert prediction.settled_ms >= 30_000
    started = [event for event in prediction.events if event.type.startswith("io.reballast.eviction-started")]
    assert [event.after_ms for event in started] == [30_000]


async def test_replicas_that_run_on_as_the_last_copy_do_not_stop() -> None:
    played = await running(6)
    taint = clusters.Taint(key="bad", effect="NoExecute")
    taints = [clusters.ClusterTainted(name=spec.name, taint=taint) for spec in played.specs]
    prediction = await planned(played, *(record(event, event.name, played.now_ms) for event in taints))
    (change,) = prediction.changed
    assert (change.after, change.running, change.stopped) == ({}, change.before, 0)
    assert change.ready_min == change.ready_after == 6
    assert summaries.summary(prediction).startswith(
        "1 of 1 workload to change, 0 replicas to stop, 0 to start, 1 workload cannot be placed; stable after "
    )
    assert summaries.details(change)[0] == change.message
    assert summaries.details(change)[1].startswith("still running until they are replaced: member1:")


async def test_loss_of_ready_replicas_that_lasts_is_not_called_temporary() -> None:
    played = await running(6)
    prediction = await planned(played, Failure(member="member4"))
    assert summaries.summary(prediction).endswith(
        ", 1 workload with fewer ready replicas at the end; stable after 30 s."
    )
    deleted = await planned(played, record(web(2), WEB))
    assert "meanwhile" not in summaries.summary(deleted)


async def test_too_many_replicas_are_reported_as_unplaced() -> None:
    prediction = await planned(await running(6), record(web(1_000), WEB))
    assert prediction.unplaced == [WEB]
    (change,) = prediction.changed
    assert "not enough" in change.message
    assert change.before == change.after
    assert (change.missing, change.missing_requests) == (994, {"cpu": "99400m"})
    assert change.needed_in == ["member1", "member2", "member3", "member4"]


async def test_workload_that_was_unplaced_before_is_not_reported_as_unplaced() -> None:
    prediction = await planned(await running(1_000), record(web(1_001), WEB))
    assert prediction.unplaced == []


async def test_changes_are_sorted_by_workload() -> None:
    names = [f"web-{number}" for number in range(8)]
    applied = [inputs.applied(manifests.deployment(name, 1, "default")) for name in names]
    planned_keys = [keys.binding_key("Deployment", "default", name) for name in names]
    prediction = await planned(await running(1), *map(record, reversed(applied), reversed(planned_keys)))
    assert [change.key for change in prediction.changed] == planned_keys


async def test_replicas_that_nothing_evicts_from_a_failed_cluster_need_no_capacity() -> None:
    prediction = await planned(await running(6), Failure(member="member2"))
    (change,) = prediction.changed
    assert change.missing == change.after["member2"]
    assert change.missing_requests == {}
    assert drills.result(drills.Outage("cluster", "member2", ("member2",)), prediction).needed == {}


async def test_replicas_in_a_failed_cluster_count_as_lost_at_once() -> None:
    played = await running(6)
    await storms.submit_taint_policy(played, "failing")
    await played.settle()
    prediction = await planned(played, Failure(member="member2"))
    (change,) = prediction.changed
    assert change.ready_min <= 6 - change.before["member2"]
    assert "member2" not in change.after
    assert change.ready_after == 6


async def test_replicas_in_a_cluster_that_is_down_already_are_not_ready() -> None:
    played = await running(6)
    await played.members.fault("member1", "down")
    await played.settle()
    prediction = await planned(played, Failure(member="member2"), faults=(Failure(member="member1"),))
    (change,) = prediction.changed
    others = change.before["member3"] + change.before["member4"]
    assert change.ready_before == others + change.before["member2"]
    assert change.ready_after == change.ready_min == others
    assert change.missing == 6 - others
    assert change.unassigned == 0, "nothing evicts replicas from either cluster"


async def test_changes_that_happen_anyway_are_no_effects_of_a_plan() -> None:
    played = await running(6)
    taint = clusters.ClusterTainted(name="member2", taint=clusters.Taint(key="gone", effect="NoExecute"))
    await played.submit(taint, "member2", 0)
    label = clusters.ClusterLabelled(name="member1", labels={"color": "blue"})
    prediction = await planned(played, record(label, "member1"))
    assert (prediction.changed, prediction.clusters, prediction.unrelated) == ([], [], [WEB])
    assert summaries.summary(prediction) == "No effect: 1 workload would be placed the same without this."
    (note,) = summaries.notes(prediction, ())
    assert note == f"changes not listed, which would also happen without this: {WEB}"
    scaled = await planned(played, record(web(10), WEB))
    assert ([change.key for change in scaled.changed], scaled.unrelated) == ([WEB], [])
    unchanged = await planned(played)
    assert (unchanged.changed, unchanged.unrelated) == ([], [WEB])


async def test_change_that_comes_earlier_by_a_plan_is_an_effect_of_it() -> None:
    played = await running(6)
    taint = clusters.ClusterTainted(name="member2", taint=clusters.Taint(key="gone", effect="NoExecute"))
    await played.submit(taint, "member2", 0)
    sooner = clusters.ClusterTainted(name="member2", taint=clusters.Taint(key="now", effect="NoExecute"))
    prediction = await planned(played, record(sooner, "member2"))
    (change,) = prediction.changed
    assert (change.decided_ms, "member2" in change.after, prediction.unrelated) == (0, False, [])


async def test_cluster_without_a_simulation_is_modelled_by_its_reports() -> None:
    played = await running(6)
    joined = clusters.ClusterJoined(name="real", apis=world.MEMBERS[0].apis)
    await played.submit(joined, "real", 0)
    used = {"cpu": "1", "memory": "1Gi", "pods": "10"}
    report = clusters.CapacityReported(
        name="real", allocatable={"cpu": "100", "memory": "100Gi", "pods": "110"}, allocated=used, nodes=3
    )
    await played.submit(report, "real", 0)
    await played.submit(clusters.ClusterHealthChanged(name="real", ready=True), "real", 0)
    await played.settle()
    prediction = await planned(played, record(web(60), WEB))
    (change,) = prediction.changed
    assert change.after["real"] > 0
    assert change.ready_after == 60
    (load,) = [load_change for load_change in prediction.clusters if load_change.name == "real"]
    assert (load.before["pods"], load.after["pods"]) == ("10", str(10 + change.after["real"]))
    assert any(assumption.startswith("real is not simulated") for assumption in prediction.assumptions)


async def test_refused_input_is_named() -> None:
    played = await running(6)
    taint = clusters.ClusterTainted(name="nowhere", taint=clusters.Taint(key="gone", effect="NoExecute"))
    prediction = await planned(played, record(taint, "nowhere"))
    assert len(prediction.refused) == 1
    assert prediction.refused[0].startswith("nowhere: ")


async def test_plan_of_the_past_starts_from_that_time() -> None:
    played = await running(6)
    number, at_ms = played.log.last_number(), played.now_ms
    await played.submit(web(2), WEB, keys.shard_of(WEB))
    await played.settle()
    question = questions.Question(
        began_ms=at_ms, inputs=(record(web(10), WEB),), simulated=tuple(played.specs), number=number
    )
    prediction = await worlds.predict(played.log, question)
    (change,) = prediction.changed
    assert (sum(change.before.values()), sum(change.after.values())) == (6, 10)
    assert prediction.number == number


async def test_lost_readiness_counts_also_if_the_placement_stays() -> None:
    played = await running(6)
    report = health.WorkloadReported(cluster="member4", key=WEB, term=9, step=9, replicas=1, ready=0)
    prediction = await planned(played, record(report, WEB))
    (change,) = prediction.changed
    assert change.before == change.after
    assert change.ready_min < change.ready_before
