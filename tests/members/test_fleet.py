"""Members on a log: their events, how many appends they take, and which records they read."""

import asyncio
from pathlib import Path

import pytest

from engine.kubeapi.values import selectors
from engine.log.local import MemoryLog
from engine.process import installation
from engine.simulation import defaults, member_fleet, reports, unmanaged
from events import clusters, codec, health, ids, keys, records, topics
from projections import query, store
from tests.builders import log_records, manifests
from tests.members import examples
from tests.projections.logs import RecordBuilder

NGINX = examples.key_of("nginx")


async def test_new_member_joins_and_reports_health_and_capacity() -> None:
    stage = examples.Stage(examples.member("member1"))
    assert stage.members.is_behind()
    events = await stage.turn()
    assert not stage.members.is_behind()
    assert [type(event) for event in events] == [
        clusters.ClusterJoined,
        clusters.ClusterHealthChanged,
        clusters.CapacityReported,
    ]
    assert await stage.turn() == []


async def test_turns_that_begin_together_report_once() -> None:
    stage = examples.Stage(examples.member("member1"))
    await asyncio.gather(*(stage.members.turn() for _ in range(3)))
    assert len(await stage.log.read(topics.CLUSTERS, 0, 0, 10)) == 3  # joined, health, capacity


async def test_work_runs_its_template_with_its_requests() -> None:
    stage = examples.Stage(examples.member("member1"), examples.member("member2"))
    await stage.turn()
    offset = await stage.template("nginx", 3, cpu="10m", memory="10Mi")
    await stage.work(
        examples.applied("nginx", 2, cluster="member1", offset=offset),
        examples.applied("nginx", 1, cluster="member2", offset=offset),
    )
    await stage.turn()
    events = await stage.turn(after_ms=200)
    assert examples.ready(events) == {("member1", NGINX): (2, 2), ("member2", NGINX): (1, 1)}
    events = await stage.turn(after_ms=reports.SHIFT_MS)
    allocated = {
        event.name: event.allocated["cpu"] for event in events if isinstance(event, clusters.CapacityReported)
    }
    assert allocated == {"member1": "20m", "member2": "10m"}


async def test_object_written_in_structured_content_mode_runs() -> None:
    stage = examples.Stage(examples.member())
    manifest = manifests.raw(manifests.deployment("nginx", 3, "default"))
    written = clusters.MemberObjectApplied(name="member1", manifest=manifest)
    await stage.log.append([log_records.structured(log_records.record(written))])
    await stage.turn()
    assert unmanaged.running(stage.members.state_of("member1"), NGINX) is not None


async def test_turn_is_one_append_with_one_capacity_report_per_member() -> None:
    stage = examples.Stage(examples.member("member1", startup_ms=0), examples.member("member2", startup_ms=0))
    await stage.turn()
    await stage.work(
        *(
            examples.applied(f"web-{index}", 1, cluster=cluster)
            for index in range(4)
            for cluster in ("member1", "member2")
        )
    )
    events = await stage.turn()
    assert len(examples.reports(events)) == 8
    assert sorted(event.name for event in events if isinstance(event, clusters.CapacityReported)) == [
        "member1",
        "member2",
    ]


async def test_report_names_its_work_and_has_the_key_of_its_workload() -> None:
    stage = examples.Stage(examples.member())
    await stage.work(examples.applied("nginx", 1))
    await stage.turn()
    shard = examples.applied("nginx", 1).shard
    (record,) = await stage.log.read(topics.HEALTH, shard, 0, 10)
    decoded = codec.decode(record)
    assert isinstance(decoded, codec.Decoded)
    assert record.key == NGINX
    assert decoded.envelope.source == "/reballast/members/member1"
    assert decoded.envelope.causationid.startswith("works/")


async def test_event_ids_are_unique_over_restarts() -> None:
    stage = examples.Stage(examples.member())
    for step in range(1, 4):
        await stage.work(examples.applied("nginx", step, step=step))
        await stage.settle()
        stage = stage.restarted()
    headers = [record.headers for record in await stage.log.read_all(0, 1000)]
    event_ids = [(record_headers["ce_source"], record_headers["ce_id"]) for record_headers in headers]
    assert len(event_ids) == len(set(event_ids))


async def test_work_with_an_unreadable_template_still_runs() -> None:
    stage = examples.Stage(examples.member(startup_ms=0))
    await stage.work(examples.applied("nginx", 2, offset=77))
    events = await stage.turn()
    assert examples.ready(events) == {("member1", NGINX): (2, 2)}
    assert examples.capacity(events).allocated == {"cpu": "0", "memory": "0", "pods": "2"}


async def test_invalid_works_are_skipped() -> None:
    stage = examples.Stage(examples.member(startup_ms=0))
    strange = health.WorkloadGone(cluster="member1", key=NGINX, term=1, step=1)
    partition = keys.shard_of("member1")
    stray = codec.encode(
        strange, codec.Envelope(id="1", source="/tests", type=""), partition=partition, key="x"
    )
    broken = records.record(topics.WORKS, partition, "member1", {}, b"{")
    await stage.log.append(
        [records.record(topics.WORKS, partition, "member1", stray.headers, stray.value), broken]
    )
    await stage.work(examples.applied("nginx", 1))
    assert examples.ready(await stage.turn()) == {("member1", NGINX): (1, 1)}


async def test_removed_member_reports_capacity_again_after_rejoining() -> None:
    stage = examples.Stage(examples.member(startup_ms=0))
    await stage.turn()
    await stage.submit(clusters.ClusterLeft(name="member1"), "member1")
    await stage.work(examples.applied("nginx", 1))
    events = await stage.turn()
    assert [type(event) for event in events] == [health.WorkloadReported]
    await stage.submit(clusters.ClusterJoined(name="member1"), "member1")
    events = await stage.turn()
    assert examples.capacity(events).allocated["pods"] == "1"
    assert [type(event) for event in events] == [clusters.ClusterHealthChanged, clusters.CapacityReported]


async def test_pods_are_listed_by_member_namespace_and_label_oldest_first() -> None:
    stage = examples.Stage(examples.member("member1"), examples.member("member2"))
    offset = await stage.template("nginx", 1)
    await stage.work(examples.applied("nginx", 1, cluster="member2", offset=offset))
    await stage.settle()
    first = stage.members.pods()
    await stage.work(examples.applied("nginx", 2, cluster="member2", step=2, offset=offset))
    await stage.settle()
    both = stage.members.pods(
        "member2", "default", selectors.LabelSelector(match_labels={"app": "nginx"}).matches
    )
    assert both[0].name == first[0].name
    assert [pod.phase for pod in both] == ["Running", "Running"]
    assert both[0].created_ms < both[1].created_ms
    assert stage.members.pods("member1") == []
    assert stage.members.pods(namespace="other") == []
    assert stage.members.pods(labels=selectors.LabelSelector(match_labels={"app": "foo"}).matches) == []
    assert len(stage.members.pods(limit=1)) == 1


async def test_unknown_member_is_reported_with_the_known_ones() -> None:
    stage = examples.Stage(examples.member("member1"))
    await stage.turn()
    with pytest.raises(member_fleet.UnknownMemberError, match="'member9'; existing members: member1"):
        stage.members.workloads("member9")


async def test_members_run_by_works_and_timers() -> None:
    log = MemoryLog()
    loop = asyncio.get_running_loop()
    members = member_fleet.Members(log, lambda: int(loop.time() * 1000), [examples.member(startup_ms=20)])
    stage = examples.Stage(log=log)
    running = asyncio.create_task(members.run())
    try:
        await stage.work(examples.applied("nginx", 2))
        async with asyncio.timeout(5):
            while not any(workload.ready == 2 for workload in members.workloads()):
                await log.wait(log.last_number())
    finally:
        running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_clusters_are_shown_as_soon_as_a_new_control_plane_is_ready(tmp_path: Path) -> None:
    members = defaults.three_members()
    async with installation.opened(tmp_path, members, synchronous="OFF") as running:
        assert running.log.ends().get((topics.CLUSTERS, 0))
        shown = await asyncio.to_thread(_clusters, running.views.store)
    assert shown == len(members)


def _clusters(views: store.Reader) -> int:
    with views.reading() as rows:
        return len(query.list_clusters(rows).items)


async def test_large_fleet_has_several_sizes_and_regions() -> None:
    members = defaults.many_members(50)
    assert len({member.name for member in members}) == 50
    assert len({member.region for member in members}) == 5
    assert len({member.nodes[0].count for member in members}) == 7


async def test_excess_reports_are_sent_in_the_next_turns() -> None:
    stage = examples.Stage(examples.member(startup_ms=0, pods="5000"))
    await stage.turn()
    await stage.work(*(examples.applied(f"web-{index}", 1) for index in range(1500)))
    counts: list[int] = []
    while stage.members.is_behind():
        counts.append(len(examples.reports(await stage.turn())))
    assert sum(counts) == 1500
    assert max(counts) == 1000
    assert stage.members.next_timer_ms() is None


async def test_work_without_a_declaring_step_is_not_run_even_after_a_restart() -> None:
    stage = examples.Stage(examples.member(startup_ms=0))
    await stage.work(examples.applied("nginx", 1))
    await stage.turn()
    (real,) = [record for record in await stage.log.read_all(0, 1000) if record.topic == topics.WORKS]
    for index, step in ((1, 1), (2, 1), (1, 9)):
        data = examples.applied("forged", 3, step=step)
        headers = {**real.headers, "ce_id": ids.output_id(0, 1, step, index)}
        record = records.record(real.topic, real.partition, real.key, headers, codec.encode_data(data))
        await stage.log.append([record])
    await stage.turn()
    assert len(stage.members.pods()) == 1

    stage = stage.restarted()
    await stage.turn()
    assert len(stage.members.pods()) == 1


async def test_work_before_its_step_runs_once_the_step_is_there() -> None:
    stage = examples.Stage(examples.member(startup_ms=0))
    step, work = RecordBuilder().step(0, [examples.applied("nginx", 2)])
    await stage.log.append([work])
    await stage.turn()
    assert not stage.members.pods()

    await stage.log.append([step])
    await stage.turn()
    assert len(stage.members.pods()) == 2
