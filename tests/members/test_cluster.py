"""A member's reaction to works over time."""

from msgspec import structs

from engine.simulation import cluster, reports, state
from events import clusters, health, shapes
from tests.members import examples

NGINX = examples.key_of("nginx")


def _workloads(member_reports: list[reports.Report]) -> list[shapes.Event]:
    return [
        report.data for report in member_reports if not isinstance(report.data, clusters.CapacityReported)
    ]


def _counts(member: state.MemberState) -> dict[str, tuple[int, int]]:
    return {
        key: (workload.ready, workload.admitted + workload.pending)
        for key, workload in member.workloads.items()
    }


def _quiet(**room: str) -> state.MemberState:
    """Return the state of a member that has reported everything."""
    member = examples.new_state(startup_ms=examples.STARTUP_MS, **room)
    cluster.advance(member, 0)
    return member


def test_replicas_are_ready_after_the_start_up_time() -> None:
    starting = health.WorkloadReported(
        cluster="member1",
        key=NGINX,
        term=1,
        step=1,
        replicas=2,
        updated=2,
        healthy=False,
        generation=1,
        observed_generation=1,
    )
    member = _quiet()
    cluster.apply_work(member, examples.applied("nginx", 2), 1000)

    assert _workloads(cluster.advance(member, 1000)) == [starting]
    assert cluster.due_ms(member) == 1200
    assert cluster.advance(member, 1199) == []
    assert _workloads(cluster.advance(member, 1200)) == [
        structs.replace(starting, ready=2, available=2, healthy=True)
    ]
    cluster.advance(member, 1200 + reports.SHIFT_MS)
    assert cluster.due_ms(member) is None


def test_workload_without_start_up_time_is_reported_once() -> None:
    member = examples.new_state(startup_ms=0)
    cluster.advance(member, 0)
    cluster.apply_work(member, examples.applied("nginx", 2), 0)
    (report,) = _workloads(cluster.advance(member, 0))
    assert isinstance(report, health.WorkloadReported)
    assert (report.ready, report.healthy) == (2, True)


def test_kind_without_replicas_is_healthy_once_applied() -> None:
    member = _quiet()
    cluster.apply_work(member, examples.applied("settings", None, kind="ConfigMap"), 0)
    assert _workloads(cluster.advance(member, 0)) == [
        health.WorkloadReported(
            cluster="member1", key=examples.key_of("settings", "ConfigMap"), term=1, step=1
        )
    ]


def test_scale_down_removes_the_youngest_replicas() -> None:
    member = _quiet()
    for step, (replicas, at_ms) in enumerate([(1, 0), (3, 1000), (2, 2000)], start=1):
        cluster.apply_work(member, examples.applied("nginx", replicas, step=step), at_ms)
        cluster.advance(member, at_ms)
    workload = member.workloads[NGINX]
    assert [(cohort.count, cohort.created_ms) for cohort in workload.cohorts] == [(1, 0), (1, 1000)]


def test_changed_image_replaces_replicas_step_by_step_and_scaling_none() -> None:
    member = _quiet()
    old, new = examples.template(image="nginx:1"), examples.template(image="nginx:2")
    cluster.apply_work(member, examples.applied("nginx", 2), 0, template=old)
    cluster.advance(member, 0)
    cluster.advance(member, 200)
    cluster.apply_work(member, examples.applied("nginx", 3, step=2), 300, template=old)
    cluster.advance(member, 300)
    assert _counts(member) == {NGINX: (2, 3)}
    cluster.apply_work(member, examples.applied("nginx", 3, step=3), 400, template=new)
    cluster.advance(member, 400)
    assert _counts(member) == {NGINX: (2, 4)}
    for at_ms in (600, 800, 1000):
        cluster.advance(member, at_ms)
    assert _counts(member) == {NGINX: (3, 3)}
    cohorts = member.workloads[NGINX].cohorts
    assert [(cohort.count, cohort.created_ms) for cohort in cohorts] == [(2, 400), (1, 600)]


def test_removed_workload_is_deleted_at_once() -> None:
    member = _quiet()
    cluster.apply_work(member, examples.applied("nginx", 2), 0)
    cluster.advance(member, 0)
    cluster.apply_work(member, examples.removed("nginx", step=2), 50)
    assert _workloads(cluster.advance(member, 50)) == [
        health.WorkloadGone(cluster="member1", key=NGINX, term=1, step=2)
    ]
    assert _counts(member) == {}
    assert _workloads(cluster.advance(member, 500)) == []


def test_preserved_workload_keeps_running_and_is_reported_gone() -> None:
    member = _quiet()
    cluster.apply_work(member, examples.applied("nginx", 2), 0)
    cluster.advance(member, 0)
    cluster.apply_work(member, examples.removed("nginx", step=2, preserved=True), 50)
    assert _workloads(cluster.advance(member, 50)) == [
        health.WorkloadGone(cluster="member1", key=NGINX, term=1, step=2)
    ]
    assert _workloads(cluster.advance(member, 200)) == []
    assert _counts(member) == {NGINX: (2, 2)}

    cluster.apply_work(member, examples.applied("nginx", 2, step=3), 300)
    (adopted,) = _workloads(cluster.advance(member, 300))
    assert isinstance(adopted, health.WorkloadReported)
    assert (adopted.step, adopted.ready) == (3, 2)


def test_suspended_workload_is_unchanged_until_the_next_work() -> None:
    member = _quiet()
    cluster.apply_work(member, examples.applied("nginx", 2), 0)
    cluster.advance(member, 0)
    cluster.apply_work(member, examples.suspended("nginx", step=2), 50)
    assert _workloads(cluster.advance(member, 50)) == []
    (report,) = _workloads(cluster.advance(member, 200))
    assert isinstance(report, health.WorkloadReported)
    # The report names the running work, not the suspension.
    assert (report.ready, report.step) == (2, 1)


def test_suspension_of_a_missing_workload_reports_nothing() -> None:
    member = _quiet()
    cluster.apply_work(member, examples.suspended("nginx"), 0)
    assert cluster.advance(member, 0) == []


def test_older_work_changes_nothing() -> None:
    member = _quiet()
    assert cluster.apply_work(member, examples.applied("nginx", 2, step=5), 0)
    assert not cluster.apply_work(member, examples.applied("nginx", 9, step=4), 0)
    assert not cluster.apply_work(member, examples.removed("nginx", step=4), 0)
    cluster.apply_work(member, examples.removed("nginx", step=6), 0)
    assert not cluster.apply_work(member, examples.applied("nginx", 2, step=5), 0)
    assert _counts(member) == {}


def test_repeated_work_is_reported_once() -> None:
    member = _quiet()
    cluster.apply_work(member, examples.applied("nginx", 2), 0)
    cluster.advance(member, 0)
    cluster.apply_work(member, examples.applied("nginx", 2), 10)
    assert cluster.advance(member, 10) == []


def test_many_scale_ups_keep_few_cohorts_and_every_replica() -> None:
    member = _quiet(pods="1000")
    for step in range(1, 301):
        cluster.apply_work(member, examples.applied("nginx", step, step=step), step * 1000)
        cluster.advance(member, step * 1000)
    workload = member.workloads[NGINX]
    assert workload.admitted == 300
    assert len(workload.cohorts) < 100
    assert workload.cohorts[0].created_ms == 1000
