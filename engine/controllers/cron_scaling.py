"""Controller of CronFederatedHPAs: it scales their targets at the times of their rules.

A rule sets the limits of a FederatedHPA, and the replicas of any other target; it does so by writes like a client's.
The first server that executes a rule records this in the status, with the next time of the rule. Other servers then
skip the execution, or at most repeat the same writes. Times that pass while no server runs are skipped.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

import anyio.to_thread
import msgspec
from msgspec import Struct

from engine import diagnostics
from engine.controllers.controller import Access, Controller
from engine.kubeapi.schema.resources import Resource
from engine.kubeapi.values import schedules
from engine.writing.edits.objects import RequestedEdit, Writer
from engine.writing.edits.patching import MERGE_PATCH, Patch
from engine.writing.edits.scale import ScalePatch
from engine.writing.edits.status import StatusPatch
from engine.writing.mutations import Edited, Target
from engine.writing.object_changes import Change, StatusChange
from events import times
from events.json_values import Json, objects_at
from events.kube_objects import KubeObject
from events.validation.known_kinds import AUTOSCALING_GROUP
from projections import changes, objects
from projections.port import Rows

MANAGER: Final = "cronfederatedhpa-controller"
_KIND: Final = "CronFederatedHPA"
_CHANGED: Final = (changes.kind_of(AUTOSCALING_GROUP, _KIND),)
_NEVER_MS: Final = 2**62
"""Due time of a rule that is suspended or has no next time."""

_HISTORIES: Final = "executionHistories"
_HISTORY: Final = 3
"""Number of executions per rule that the status keeps if the rule sets no limit."""

_log = diagnostics.logger(__name__)


class Reference(Struct, frozen=True, rename="camel"):
    """The target of a CronFederatedHPA."""

    api_version: str = ""
    kind: str = ""
    name: str = ""


class Rule(Struct, frozen=True, rename="camel"):
    """A rule of a CronFederatedHPA: when it scales the target, and to which replicas or limits."""

    name: str = ""
    schedule: str = ""
    time_zone: str | None = None
    target_replicas: int | None = None
    target_min_replicas: int | None = None
    target_max_replicas: int | None = None
    suspend: bool | None = None
    successful_history_limit: int | None = None
    failed_history_limit: int | None = None


class _Spec(Struct, frozen=True, rename="camel"):
    scale_target_ref: Reference = Reference()
    rules: tuple[Rule, ...] = ()


class _Metadata(Struct, frozen=True, rename="camel"):
    deletion_timestamp: object = None


class _Scaler(Struct, frozen=True):
    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()


class Job(Struct, frozen=True):
    """A rule with the namespace, name and target of its CronFederatedHPA."""

    namespace: str
    name: str
    target: Reference
    rule: Rule

    @property
    def timing(self) -> tuple[str, str, str, str, str | None, bool]:
        """The fields that determine the times of the job; changes of other fields keep its due time."""
        rule = self.rule
        return self.namespace, self.name, rule.name, rule.schedule, rule.time_zone, bool(rule.suspend)

    def next_run_ms(self, now_ms: int) -> int:
        """Return the first time of the rule after ``now_ms``; ``_NEVER_MS`` also if the schedule is invalid."""
        schedule = schedules.parse(self.rule.schedule, self.rule.time_zone or "")
        following = None if self.rule.suspend or schedule is None else schedule.next(now_ms)
        return _NEVER_MS if following is None else following

    def limits(self) -> Json:
        """Return the fields of a FederatedHPA's spec that the rule sets."""
        rule = self.rule
        named = {"minReplicas": rule.target_min_replicas, "maxReplicas": rule.target_max_replicas}
        return {name: count for name, count in named.items() if count is not None}


class _Execution(Struct, frozen=True):
    """A job that was due at ``due_ms`` and is executed at ``now_ms``; ``next_run_ms`` is the next time of its rule."""

    job: Job
    due_ms: int
    now_ms: int
    next_run_ms: int


_DECODER: Final = msgspec.json.Decoder(_Scaler)
_Histories = Callable[[KubeObject], list[Json]]
"""Returns the new ``executionHistories`` of a scaler."""


class _Recording(RequestedEdit, frozen=True):
    """An edit that computes ``executionHistories`` from the current ones, because several servers write them."""

    histories: _Histories

    def apply(self, live: KubeObject | None) -> Edited:
        """Return the scaler with its new status."""
        patch: Json = {"status": {_HISTORIES: self.histories(self.existing(live))}}
        return StatusPatch(self.writer, MERGE_PATCH, patch).apply(live)


class CronScaling(Controller):
    """Follows the views and scales targets at the times of their rules; call ``run`` once."""

    SOURCE = "/reballast/cron-scaling"
    ACTIVITY = "cron scaling"

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        self._jobs: list[tuple[int, Job]] = []
        self._now_ms = 0
        """Time of the last turn, in milliseconds since 1970."""

        self._unshown: set[tuple[str, str]] = set()
        """Namespaces and names of scalers whose status may lack the next times of their rules."""

    def due_ms(self) -> int | None:
        """Return when the next rule is due."""
        return min((due_ms for due_ms, _ in self._jobs if due_ms < _NEVER_MS), default=None)

    async def turn(self, after: int) -> int:
        """Process the changes after a sequence number (negative: everything), then carry out the rules that are due.

        Return the sequence number up to which changes are processed.

        Raises LogError and ProjectionError.
        """
        number, jobs = await self._reads.peek(lambda rows: _read(rows, after))
        now_ms = self._clock_ms()
        if now_ms < self._now_ms:
            # The clock was set back. Compute the next times again, since they start from a time that is now in the
            # future. If an execution becomes due a second time, the status shows that it was carried out.
            waiting = [job for due_ms, job in self._jobs if due_ms > now_ms]
            self._jobs = [(due_ms, job) for due_ms, job in self._jobs if due_ms <= now_ms]
            self._jobs += await _scheduled(waiting, now_ms)
        self._now_ms = now_ms
        if jobs is not None:
            known = {job.timing: (due_ms, job) for due_ms, job in self._jobs}
            kept = [(known[job.timing][0], job) for job in jobs if job.timing in known]
            new = [job for job in jobs if job.timing not in known]
            self._jobs = kept + await _scheduled(new, now_ms)
            changed = known.keys() ^ {job.timing for job in jobs}
            self._unshown.update((namespace, name) for namespace, name, *_ in changed)
        await self._show_next_times()
        due = [(due_ms, job) for due_ms, job in self._jobs if due_ms <= now_ms]
        scheduled = await _scheduled([job for _, job in due], now_ms) if due else []
        following = {job.timing: due_ms for due_ms, job in scheduled}
        for due_ms, job in due:
            await self._execute(_Execution(job, due_ms, now_ms, following[job.timing]))
        # Remove due jobs only after their writes: if one fails, the next turn must carry them out again.
        self._jobs = [(due_ms, job) for due_ms, job in self._jobs if due_ms > now_ms] + scheduled
        return number

    async def _show_next_times(self) -> None:
        """Write the next times of changed rules to the status of their scalers."""
        dues: dict[tuple[str, str], dict[str, int]] = {}
        for due_ms, job in self._jobs:
            if due_ms < _NEVER_MS:
                dues.setdefault((job.namespace, job.name), {})[job.rule.name] = due_ms
        for namespace, name in sorted(self._unshown):
            resource, scaler = await self._scaler(namespace, name)
            if resource and scaler:
                await self._record(resource, scaler, partial(_upcoming, dues.get((namespace, name), {})))
            # After the write: if it fails, the next turn must repeat it.
            self._unshown.discard((namespace, name))

    async def _scaler(self, namespace: str, name: str) -> tuple[Resource | None, KubeObject | None]:
        """Return the kind of scalers, and a scaler; None for what does not exist."""
        resource = (await self._objects.catalogue()).of_kind(AUTOSCALING_GROUP, _KIND)
        return resource, None if resource is None else await self._objects.current(resource, namespace, name)

    async def _record(self, resource: Resource, scaler: KubeObject, histories: _Histories) -> None:
        """Write the ``executionHistories`` of a scaler, unless they are the same already."""
        if histories(scaler) == scaler.objects_at("status", _HISTORIES):
            return
        target = _target(AUTOSCALING_GROUP, _KIND, scaler.namespace, scaler.name)

        def recorded(writer: Writer) -> StatusChange:
            return StatusChange(target=target, edit=_Recording(writer, histories))

        if reason := await self.carry_out(resource, target, MANAGER, recorded):
            _log.info("history of a scaler not recorded", scaler=scaler.name, reason=reason)

    async def _execute(self, execution: _Execution) -> None:
        job = execution.job
        resource, scaler = await self._scaler(job.namespace, job.name)
        if resource is None or scaler is None or _is_recorded(scaler, job.rule.name, execution.due_ms):
            return
        fault = await self._scale(job)
        if fault:
            _log.warning("target not scaled", scaler=job.name, rule=job.rule.name, reason=fault)
        await self._record(resource, scaler, partial(_histories, execution, fault))

    async def _scale(self, job: Job) -> str:
        """Scale the target of a rule; return why that failed, or an empty text."""
        reference = job.target
        resource = (await self._objects.catalogue()).of_kind(reference.api_version, reference.kind)
        if resource is None:
            return f"there is no kind {reference.kind} of {reference.api_version}"
        target = _target(reference.api_version, reference.kind, job.namespace, reference.name)
        return await self._scaled(resource, target, job)

    async def _scaled(self, resource: Resource, target: Target, job: Job) -> str:
        is_limited = (target.api_version, target.kind) == (AUTOSCALING_GROUP, "FederatedHPA")
        if not is_limited and resource.subresource("scale") is None:
            return f"objects of the kind {target.kind} have no scale"
        if not is_limited and job.rule.target_replicas is None:
            return "the rule has no targetReplicas"
        scale: Json = {"spec": {"replicas": job.rule.target_replicas}}

        def scaled(writer: Writer) -> Change:
            edit = (
                Patch(writer, MERGE_PATCH, {"spec": job.limits()})
                if is_limited
                else ScalePatch(writer, MERGE_PATCH, scale)
            )
            return Change(target=target, edit=edit, resource=resource)

        return await self.carry_out(resource, target, MANAGER, scaled)


async def _scheduled(jobs: list[Job], now_ms: int) -> list[tuple[int, Job]]:
    """Return each job with its next time; uses a thread, since time zones are read from files."""

    def scheduled() -> list[tuple[int, Job]]:
        jobs_with_dues = [(job.next_run_ms(now_ms), job) for job in jobs]
        for job in (job for due_ms, job in jobs_with_dues if due_ms == _NEVER_MS and not job.rule.suspend):
            _log.warning("rule is never due", scaler=job.name, rule=job.rule.name, zone=job.rule.time_zone)
        return jobs_with_dues

    return await anyio.to_thread.run_sync(scheduled)


def _target(api_version: str, kind: str, namespace: str, name: str) -> Target:
    return Target(api_version=api_version, kind=kind, namespace=namespace, name=name)


def _read(rows: Rows, after: int) -> tuple[int, list[Job] | None]:
    """Return the last sequence number in the views, and all jobs (None if no scaler changed after ``after``)."""
    number = changes.checkpoint(rows)
    is_changed = changes.may_have_changed(rows, _CHANGED, after, number)
    return number, list(_jobs(rows)) if is_changed else None


def _jobs(rows: Rows) -> Iterator[Job]:
    for namespace, name, manifest in objects.manifests(rows, AUTOSCALING_GROUP, _KIND):
        try:
            scaler = _DECODER.decode(manifest)
        except msgspec.MsgspecError as error:
            # Producers on Kafka can write fields of any type, and one scaler must not stop the others.
            _log.warning("scaler not readable", scaler=name, namespace=namespace, error=str(error))
            continue
        # As in Karmada, a scaler that waits for its finalizers scales nothing.
        if scaler.metadata.deletion_timestamp is not None:
            continue
        for rule in scaler.spec.rules:
            yield Job(namespace, name, scaler.spec.scale_target_ref, rule)


def _is_recorded(scaler: KubeObject, rule: str, due_ms: int) -> bool:
    """Whether the status contains the execution of a rule at ``due_ms``, perhaps by another server."""
    history = _history(scaler, rule)
    scheduled = times.to_seconds_text(due_ms)
    return any(
        entry.get("scheduleTime") == scheduled
        for field in ("successfulExecutions", "failedExecutions")
        for entry in objects_at(history, field)
    )


def _history(scaler: KubeObject, rule: str) -> Json:
    histories = scaler.objects_at("status", _HISTORIES)
    return next((history for history in histories if history.get("ruleName") == rule), {"ruleName": rule})


def _upcoming(dues: Mapping[str, int], scaler: KubeObject) -> list[Json]:
    """Return the ``executionHistories`` of a scaler's rules with their next times; ``dues`` has them by rule name.

    As in Karmada, suspended rules have no next time, and removed rules have no history.
    """
    recorded = {history.get("ruleName"): history for history in scaler.objects_at("status", _HISTORIES)}
    histories: list[Json] = []
    for name in (str(rule.get("name", "")) for rule in scaler.objects_at("spec", "rules")):
        history = {
            field: item for field, item in recorded.get(name, {}).items() if field != "nextExecutionTime"
        }
        if name in dues:
            history |= {"ruleName": name, "nextExecutionTime": times.to_seconds_text(dues[name])}
        if history:
            histories.append(history)
    return histories


def _histories(done: _Execution, fault: str, scaler: KubeObject) -> list[Json]:
    """Return the ``executionHistories`` of a scaler's rules with a new execution; a rule's newest one is first."""
    rule, histories = done.job.rule, scaler.objects_at("status", _HISTORIES)
    if _is_recorded(scaler, rule.name, done.due_ms):
        return histories
    history = _history(scaler, rule.name)
    execution: Json = {
        "scheduleTime": times.to_seconds_text(done.due_ms),
        "executionTime": times.to_seconds_text(done.now_ms),
    }
    if fault:
        field, limit = "failedExecutions", rule.failed_history_limit
        execution["message"] = fault
    else:
        field, limit = "successfulExecutions", rule.successful_history_limit
        applied = {
            "appliedReplicas": rule.target_replicas,
            "appliedMinReplicas": rule.target_min_replicas,
            "appliedMaxReplicas": rule.target_max_replicas,
        }
        execution |= {name: count for name, count in applied.items() if count is not None}
    kept = [execution, *objects_at(history, field)][: _HISTORY if limit is None else limit]
    if done.next_run_ms < _NEVER_MS:
        history = {**history, "nextExecutionTime": times.to_seconds_text(done.next_run_ms)}
    others = [other for other in histories if other.get("ruleName") != rule.name]
    return [*others, {**history, field: kept}]
