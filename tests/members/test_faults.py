"""Injected faults: a member that is down, slow, or loses reports."""

import pytest
from msgspec import structs

from engine.simulation import faults
from events import clusters, health
from tests.builders import log_records
from tests.members import examples

NGINX = examples.key_of("nginx")


async def _stage(*members: str) -> examples.Stage:
    """Return a stage with members that have joined."""
    stage = examples.Stage(*(examples.member(name) for name in members or ("member1",)))
    await stage.turn()
    return stage


async def _said_by(stage: examples.Stage, before: int) -> list[str]:
    return [type(event).__name__ for event in await stage.events_since(before)]


async def test_member_that_goes_down_is_reported_unready_and_stays_silent() -> None:
    stage = await _stage()
    before = stage.log.last_number()
    await stage.members.fault("member1", "down")
    (report,) = await stage.events_since(before)
    assert report == clusters.ClusterHealthChanged(
        name="member1", ready=False, reason="ClusterNotReachable", message="cluster is not reachable"
    )
    await stage.work(examples.applied("nginx", 2))
    assert await stage.turn() == []
    assert await stage.turn(after_ms=10_000) == []
    assert stage.members.next_timer_ms() is None


async def test_member_repeats_a_report_that_another_reporter_has_overwritten() -> None:
    stage = await _stage()
    foreign = clusters.ClusterHealthChanged(name="member1", ready=False, reason="Foreign")
    await stage.submit(foreign, "member1")
    (report,) = await stage.turn()
    assert isinstance(report, clusters.ClusterHealthChanged)
    assert (report.ready, report.reason) == (True, "ClusterReady")
    assert await stage.turn() == []

    await stage.members.fault("member1", "down")
    await stage.submit(clusters.ClusterHealthChanged(name="member1", ready=True), "member1")
    (report,) = await stage.turn()
    assert isinstance(report, clusters.ClusterHealthChanged)
    assert report.reason == "ClusterNotReachable"


async def test_member_repeats_a_report_that_was_overwritten_in_structured_content_mode() -> None:
    stage = await _stage()
    foreign = clusters.ClusterHealthChanged(name="member1", ready=False, reason="Foreign")
    await stage.log.append([log_records.structured(log_records.record(foreign))])
    (report,) = await stage.turn()
    assert isinstance(report, clusters.ClusterHealthChanged)
    assert (report.ready, report.reason) == (True, "ClusterReady")


async def test_member_is_not_down_after_a_restart_because_another_reporter_wrote_so() -> None:
    stage = await _stage()
    await stage.submit(clusters.ClusterHealthChanged(name="member1", ready=False), "member1")
    stage = stage.restarted()
    await stage.work(examples.applied("nginx", 1))
    events = await stage.turn()
    assert isinstance(events[0], clusters.ClusterHealthChanged)
    assert events[0].ready
    assert examples.ready(events) == {("member1", NGINX): (0, 1)}


async def test_healed_member_catches_up_with_missed_works() -> None:
    stage = await _stage()
    await stage.work(examples.applied("nginx", 1))
    await stage.turn()
    await stage.members.fault("member1", "down")
    await stage.work(examples.applied("nginx", 3, step=2))
    await stage.work(examples.applied("other", 1, step=2))
    await stage.work(examples.removed("other", step=3))
    await stage.turn(after_ms=1000)

    before = stage.log.last_number()
    await stage.members.heal("member1")
    assert await _said_by(stage, before) == [
        "ClusterHealthChanged",
        "WorkloadReported",
        "WorkloadGone",
        "CapacityReported",
    ]
    # The replica of the first work started during the outage; the two that the missed work adds start now.
    assert examples.ready(await stage.events_since(before)) == {("member1", NGINX): (1, 3)}
    assert examples.ready(await stage.turn(after_ms=200)) == {("member1", NGINX): (3, 3)}


def test_throttled_and_failing_apis_refuse_each_nth_request() -> None:
    state = examples.new_state()
    faults.inflict(state, "throttled", 3)
    assert [faults.refusal(state.faults, number) for number in range(1, 7)] == [0, 0, 429, 0, 0, 429]
    faults.heal(state)
    faults.inflict(state, "failing", None)
    assert [faults.refusal(state.faults, number) for number in range(1, 4)] == [0, 503, 0]
    faults.heal(state)
    assert [faults.refusal(state.faults, number) for number in range(1, 4)] == [0, 0, 0]


@pytest.mark.parametrize("restart", ["never", "while it is not reachable", "before it follows"])
async def test_member_whose_cluster_has_another_address_is_not_reachable(restart: str) -> None:
    stage = await _stage()
    own = clusters.ClusterJoined(name="member1", api_endpoint="https://localhost/clusters/member1/proxy")
    await stage.submit(structs.replace(own, api_endpoint="https://172.19.1.3:6443"), "member1")
    (report,) = await stage.turn()
    assert isinstance(report, clusters.ClusterHealthChanged)
    assert (report.ready, report.reason) == (False, "ClusterNotReachable")
    await stage.work(examples.applied("nginx", 2))
    if restart == "while it is not reachable":
        stage = stage.restarted()
    assert await stage.turn(after_ms=1000) == []
    await stage.submit(own, "member1")
    if restart == "before it follows":
        stage = stage.restarted()
    report = (await stage.turn())[0]
    assert isinstance(report, clusters.ClusterHealthChanged)
    assert report.ready
    await stage.settle()
    assert examples.shown(stage) == {("member1", NGINX): (2, 2)}


async def test_member_that_is_down_does_not_delay_others() -> None:
    stage = await _stage("member1", "member2", "member3")
    await stage.members.fault("member2", "down")
    await stage.work(*(examples.applied("nginx", 1, cluster=f"member{number}") for number in (1, 2, 3)))
    await stage.turn()
    events = await stage.turn(after_ms=200)
    assert sorted(cluster for cluster, _ in examples.ready(events)) == ["member1", "member3"]


async def test_slow_member_takes_longer_to_start_replicas() -> None:
    stage = await _stage()
    await stage.members.fault("member1", "slow", 5)
    await stage.work(examples.applied("nginx", 1))
    await stage.turn()
    assert await stage.turn(after_ms=999) == []
    assert examples.ready(await stage.turn(after_ms=1)) == {("member1", NGINX): (1, 1)}


async def test_lost_report_is_repeated_after_a_second() -> None:
    stage = await _stage()
    # Every second report is lost. The capacity report of the start was the first, so the next one is lost.
    await stage.members.fault("member1", "losing", 2)
    await stage.work(examples.applied("web", None, kind="ConfigMap"))
    assert await stage.turn() == []
    assert stage.members.next_timer_ms() == examples.START_MS + 1000
    assert [type(event) for event in await stage.turn(after_ms=1000)] == [health.WorkloadReported]


async def test_lost_report_is_repeated_when_the_member_is_healed() -> None:
    stage = await _stage()
    await stage.members.fault("member1", "losing", 1)
    await stage.work(examples.applied("nginx", 1))
    assert await stage.turn() == []
    assert await stage.turn(after_ms=5000) == []
    before = stage.log.last_number()
    await stage.members.heal("member1")
    events = await stage.events_since(before)
    assert examples.ready(events) == {("member1", NGINX): (1, 1)}
    assert examples.capacity(events).allocated["pods"] == "1"
    assert await stage.turn(after_ms=5000) == []


async def test_faults_are_combined_and_shown() -> None:
    stage = await _stage()
    await stage.members.fault("member1", "slow")
    await stage.members.fault("member1", "losing", 3)
    (status,) = stage.members.statuses()
    assert (status.down, status.slowness, status.lose_every) == (False, 10, 3)
    await stage.members.heal("member1")
    (status,) = stage.members.statuses()
    assert (status.down, status.slowness, status.lose_every) == (False, 1, 0)


@pytest.mark.parametrize("amount", [0, -1, 1_000_001])
async def test_invalid_fault_amount_is_refused(amount: int) -> None:
    stage = await _stage()
    with pytest.raises(ValueError, match=f"amount: {amount} is not between 1 and 1000000"):
        await stage.members.fault("member1", "slow", amount)
