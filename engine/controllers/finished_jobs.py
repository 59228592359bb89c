"""Deletes Jobs that have finished, after their ``ttlSecondsAfterFinished``.

As in Karmada, the control plane deletes the template and, with it, the Jobs in the clusters; these have no such field.
Every server deletes: the first deletion wins, and the others find no such Job.
"""

from functools import partial
from typing import Final

from engine import diagnostics
from engine.controllers.controller import Access, Controller
from engine.kubeapi.schema.resources import Resource
from engine.writing.edits.objects import Writer
from engine.writing.mutations import Target
from engine.writing.object_changes import Preconditions, Removal
from events import job_statuses, times, vocabulary
from events.json_values import as_text
from events.kube_objects import KubeObject
from projections import changes, object_tables
from projections.port import Rows

MANAGER: Final = "ttl-after-finished-controller"
_JOB: Final = object_tables.Kind(*vocabulary.JOB)
_TTL: Final = "ttlSecondsAfterFinished"
_Name = tuple[str, str]
"""Namespace and name of a Job."""

_log = diagnostics.logger(__name__)


class FinishedJobs(Controller):
    """Follows the views and deletes Jobs; call ``run`` once."""

    SOURCE = "/reballast/finished-jobs"
    ACTIVITY = "deletion of finished jobs"

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        self._dues: dict[_Name, int] = {}
        """When finished Jobs have to be deleted, in milliseconds since 1970."""

    def due_ms(self) -> int | None:
        """Return when the next Job has to be deleted."""
        return min(self._dues.values(), default=None)

    async def turn(self, after: int) -> int:
        """Check the Jobs that changed after a sequence number (negative: all Jobs), then delete those that are due.

        Return the sequence number up to which changes are processed. Raises LogError and ProjectionError.
        """
        number, names = await self._reads.peek(partial(_read, after=after))
        resource = (await self._objects.catalogue()).of_kind(*_JOB)
        if resource is None:
            return number
        now_ms = self._clock_ms()
        due = [name for name, due_ms in self._dues.items() if due_ms <= now_ms]
        for name in dict.fromkeys([*names, *due]):
            await self._look_at(resource, name, now_ms)
        return number

    async def _look_at(self, resource: Resource, name: _Name, now_ms: int) -> None:
        """Delete a Job if it is due; otherwise remember when it will be."""
        job = await self._objects.current(resource, *name)
        due_ms = None if job is None else _due_ms(job, self._dues.get(name), now_ms)
        if job is None or due_ms is None:
            self._dues.pop(name, None)
        elif due_ms > now_ms:
            self._dues[name] = due_ms
        else:
            await self._delete(resource, job, now_ms)
            self._dues.pop(name, None)

    async def _delete(self, resource: Resource, job: KubeObject, now_ms: int) -> None:
        target = Target(api_version=_JOB.api_version, kind=_JOB.kind, namespace=job.namespace, name=job.name)

        def removal(writer: Writer) -> Removal:
            same = Preconditions(resource=resource, uid=job.uid, newest=writer.newest)
            return Removal(target=target, now_ms=now_ms, preconditions=same)

        if reason := await self.carry_out(resource, target, MANAGER, removal):
            _log.info("finished job not deleted", namespace=job.namespace, job=job.name, reason=reason)


def _read(rows: Rows, after: int) -> tuple[int, list[_Name]]:
    """Return the last sequence number in the views, and the Jobs with a time to live that changed after ``after``."""
    number = changes.checkpoint(rows)
    is_kept = after >= 0 and changes.is_kept(after, number)
    return number, object_tables.containing(rows, _JOB, _TTL, (after, number) if is_kept else None)


def _due_ms(job: KubeObject, known_ms: int | None, now_ms: int) -> int | None:
    """Return when a Job has to be deleted; None if it has not finished or has no time to live.

    The time to live begins at the ``lastTransitionTime`` of the condition that ended the Job. If that has none,
    as that of a failed Job, it begins when the controller first sees the Job.
    """
    ttl_s = job.at("spec", _TTL)
    ends = [end for end in job.objects_at("status", "conditions") if end.get("type") in job_statuses.ENDS]
    ended = next((end for end in ends if end.get("status") == job_statuses.TRUE), None)
    if ended is None or not isinstance(ttl_s, int) or ttl_s < 0:
        return None
    try:
        return times.from_text(as_text(ended.get("lastTransitionTime"))) + ttl_s * times.SECOND_MS
    except ValueError:
        return known_ms or now_ms + ttl_s * times.SECOND_MS
