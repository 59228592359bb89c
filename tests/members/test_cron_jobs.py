"""CronJobs of a member: Jobs at each moment of the schedule, whose state follows from the time."""

import msgspec
import pytest

from engine.simulation import cluster, cron_jobs, statuses
from engine.simulation.state import MemberState, Workload
from engine.works import templates
from events import shapes, status_values, times
from events.json_values import Json
from tests.members import examples

HOUR_MS = times.from_text("2026-03-04T12:00:00Z")
MINUTE_MS = 60_000
KEY = examples.key_of("tick", "CronJob")


def cron_job(**spec: object) -> templates.Template:
    """Return the template of a CronJob that starts a Job each minute."""
    manifest: Json = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"annotations": {templates.RUN_SECONDS: "10"}},
        "spec": {"schedule": "* * * * *", "jobTemplate": {}, **spec},
    }
    return templates.read(msgspec.json.encode(manifest))


def applied(state: MemberState, template: templates.Template, at_ms: int, *, step: int = 1) -> Workload:
    work = examples.applied("tick", None, kind="CronJob", step=step)
    cluster.apply_work(state, work, at_ms, template=template)
    return state.workloads[KEY]


def run_until(state: MemberState, at_ms: int) -> None:
    """Advance a member to each time at which something is due."""
    while (due := cluster.due_ms(state)) is not None and due <= at_ms:
        cluster.advance(state, due)


def test_job_starts_each_minute_and_ends() -> None:
    state = examples.new_state()
    workload = applied(state, cron_job(), HOUR_MS + 30_000)
    assert statuses.status(state, workload) == {}
    run_until(state, HOUR_MS + MINUTE_MS)
    name = f"tick-{(HOUR_MS + MINUTE_MS) // MINUTE_MS}"
    (active,) = statuses.status(state, workload)["active"]  # type: ignore[misc]
    assert active["name"] == name
    run_until(state, HOUR_MS + MINUTE_MS + 10_000)
    assert statuses.status(state, workload) == {
        "lastScheduleTime": "2026-03-04T12:01:00Z",
        "lastSuccessfulTime": "2026-03-04T12:01:10Z",
    }
    run_until(state, HOUR_MS + 2 * MINUTE_MS)
    assert statuses.status(state, workload)["lastScheduleTime"] == "2026-03-04T12:02:00Z"


def test_each_change_sets_one_timer() -> None:
    state = examples.new_state()
    workload = applied(state, cron_job(), HOUR_MS)
    run_until(state, HOUR_MS + 60 * MINUTE_MS)
    applied(state, cron_job(), HOUR_MS + 60 * MINUTE_MS, step=2)
    assert len(state.starts) <= 2
    assert workload.scheduled_ms == HOUR_MS + 60 * MINUTE_MS


def test_ended_jobs_are_kept_up_to_the_limit() -> None:
    state = examples.new_state()
    template = cron_job(successfulJobsHistoryLimit=2)
    workload = applied(state, template, HOUR_MS)
    assert template.cron is not None
    run_until(state, HOUR_MS + 5 * MINUTE_MS)
    starts = [start for start, _ in cron_jobs.runs(workload, template.cron)]
    assert starts == [HOUR_MS + number * MINUTE_MS for number in (5, 4, 3)]
    run_until(state, HOUR_MS + 5 * MINUTE_MS + 10_000)
    ends = [end for _, end in cron_jobs.runs(workload, template.cron)]
    assert ends == [HOUR_MS + number * MINUTE_MS + 10_000 for number in (5, 4)]


def test_suspended_cron_job_starts_nothing_and_shows_its_last_times() -> None:
    state = examples.new_state()
    applied(state, cron_job(), HOUR_MS)
    run_until(state, HOUR_MS + MINUTE_MS)
    workload = applied(state, cron_job(suspend=True), HOUR_MS + MINUTE_MS + 5_000, step=2)
    assert "active" in statuses.status(state, workload)
    run_until(state, HOUR_MS + 5 * MINUTE_MS)
    assert statuses.status(state, workload) == {
        "lastScheduleTime": "2026-03-04T12:01:00Z",
        "lastSuccessfulTime": "2026-03-04T12:01:10Z",
    }


def test_schedule_that_cannot_be_followed_starts_nothing() -> None:
    state = examples.new_state()
    workload = applied(state, cron_job(schedule="@every 1m"), HOUR_MS)
    assert cluster.due_ms(state) is None or cluster.due_ms(state) == HOUR_MS
    assert statuses.status(state, workload) == {}


@pytest.mark.parametrize("is_suspended", [True, False])
async def test_restart_computes_the_same_jobs(is_suspended: bool) -> None:
    stage = examples.Stage()
    await stage.turn()
    await apply_by_work(stage, step=1)
    await stage.turn(after_ms=3 * MINUTE_MS)
    if is_suspended:
        await apply_by_work(stage, step=2, suspend=True)
    # 09:53:51 to 09:54:02: the Job of 09:54 runs.
    await stage.turn(after_ms=11_000)
    shown: list[Json] = []
    for checked in (stage, stage.restarted()):
        await checked.turn()
        state = checked.members.state_of("member1")
        shown.append(statuses.status(state, state.workloads[KEY]))
    assert shown[0] == shown[1]
    assert ("active" in shown[0], "lastSuccessfulTime" in shown[0]) == (not is_suspended, True)


async def apply_by_work(stage: examples.Stage, *, step: int, **spec: object) -> None:
    """Let a member run a CronJob that starts a Job each minute, and report its times."""
    manifest: Json = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "tick", "namespace": "default"},
        "spec": {"schedule": "* * * * *", "jobTemplate": {}, **spec},
    }
    offset = await stage.submit_template(manifest, KEY)
    work = examples.applied("tick", None, kind="CronJob", offset=offset, step=step)
    reading = shapes.Reading(values=(status_values.LAST_SCHEDULED, status_values.LAST_SUCCESSFUL))
    await stage.work(msgspec.structs.replace(work, reading=reading))
    await stage.turn()
