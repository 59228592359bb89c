"""CronJobs of a member: they start a Job at each time of their schedule, one after the other.

The Jobs are computed from the schedule and the time, so they are not stored: a restart computes them again. They
take no capacity and have no pods. Each runs for the time in the CronJob's annotation (``templates.RUN_SECONDS``).
"""

import heapq
from collections.abc import Iterator
from typing import TypedDict

from engine.simulation.state import MemberState, Workload
from engine.works.templates import CronJob
from events import times
from events.json_values import Json


def follow(state: MemberState, workload: Workload, at_ms: int) -> None:
    """Start the Job that is due, end the running Job if its time is over, and set the time of the next change.

    Call it when the CronJob is applied, and at each time set by an earlier call.
    """
    cron = workload.template.cron
    if cron is None:
        return
    last = None if cron.is_suspended else cron.schedule.last(at_ms)
    if last is not None and last > max(workload.scheduled_ms, workload.created_ms):
        workload.scheduled_ms = last
    end_ms = workload.scheduled_ms + cron.run_ms
    following = None if cron.is_suspended else cron.schedule.next(at_ms)
    dues = [] if following is None else [following]
    if workload.scheduled_ms and end_ms <= at_ms:
        workload.ended_ms = end_ms
    elif workload.scheduled_ms:
        dues.append(end_ms)
    # Add no timer for a time that has one: otherwise each call would add another.
    if dues and workload.change_ms != min(dues):
        workload.change_ms = min(dues)
        heapq.heappush(state.starts, (workload.change_ms, workload.key))


class _Status(TypedDict, total=False):
    active: list[Json]
    lastScheduleTime: str
    lastSuccessfulTime: str


def status(workload: Workload) -> _Status:
    result: _Status = {}
    if workload.scheduled_ms > workload.ended_ms:
        result["active"] = [
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "name": job_name(workload, workload.scheduled_ms),
                "namespace": workload.ref.namespace,
            }
        ]
    if workload.scheduled_ms:
        result["lastScheduleTime"] = times.to_seconds_text(workload.scheduled_ms)
    if workload.ended_ms:
        result["lastSuccessfulTime"] = times.to_seconds_text(workload.ended_ms)
    return result


def job_name(workload: Workload, scheduled_ms: int) -> str:
    """Return the name of the Job for a scheduled time, as Kubernetes names it."""
    return f"{workload.ref.name}-{scheduled_ms // times.MINUTE_MS}"


def runs(workload: Workload, cron: CronJob) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each kept Job, newest first; the end of a running Job is 0."""
    start: int | None = workload.scheduled_ms
    running = int(workload.scheduled_ms > workload.ended_ms)
    for index in range(cron.kept + running):
        if not start or start <= workload.created_ms:
            return
        yield start, 0 if running and not index else start + cron.run_ms
        start = cron.schedule.last(start - 1)
