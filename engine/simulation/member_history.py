"""A member according to the log: works, writes of its clients and its own reports, folded one by one.

Replicas keep their exact ages when a workload is scaled, but not when its pod template changes.
"""

from collections import deque
from collections.abc import Iterator
from itertools import chain
from typing import Final, NamedTuple, Protocol

import msgspec
from msgspec import Struct

from engine.domain import marks
from engine.simulation import (
    faults,
    kept_fields,
    orphans,
    reports,
    rollouts,
    unmanaged,
)
from engine.simulation.orphans import Index
from engine.simulation.state import (
    PODS_MAX,
    Cohort,
    KeptFields,
    ReportCause,
    Unmanaged,
    Version,
    Workload,
)
from engine.works import template_loading, templates
from events import clusters, health, kube_objects, works
from events.chain import Chain

Report = health.WorkloadReported | health.WorkloadGone


EARLIER_MAX: Final = 16
"""Number of earlier works kept per workload, in case newer ones could not be applied."""


class WorkloadHistory(Struct):
    """One workload according to the log.

    - ``applied`` is the newest work. If it has overrides, which may fail, ``earlier`` has the works before it, newest
      first. Before the workload is restored, ``choose_work`` replaces ``applied`` by the work that runs, if any.
    - ``newest`` and ``fault``: the newest work, and the reason why it cannot be applied; set by a conflict or by
      ``choose_work``.
    - ``ages`` are the replicas as (count, created_ms), oldest first. If a client has edited the replicas, a later work
      sets only ``assigned`` (replicas, time). Recovery uses it if the template turns out to ignore such edits.
    - ``first`` is the version of the work that created the object.
    - ``edited`` is the record number of the last edit of the object by a client of the member.
    """

    known: Version
    first: Version = (0, 0)
    applied: works.WorkApplied | None = None
    earlier: list[works.WorkApplied] = []
    newest: works.WorkApplied | None = None
    fault: str = ""
    created_ms: int = 0
    ages: list[tuple[int, int]] = []
    assigned: tuple[int, int] | None = None
    suspended: bool = False
    removed: bool = False
    preserved: bool = False
    cause: ReportCause = ReportCause()
    conflict: works.WorkApplied | None = None
    uid: str = ""
    kept: KeptFields = KeptFields()
    edited: int = 0


class ObjectWrite(NamedTuple):
    """A write of a client of the member: the number of its record, the event, the uid of a new object, the time."""

    number: int
    data: clusters.MemberWrite
    uid: str
    at_ms: int


class UnrestoredWorkload(Protocol):
    """A workload that is restored only when its next work arrives, to save time.

    The delay changes nothing: the workload runs as its newest work demands, and its last report shows that.
    """

    def history(self, cluster: str, key: str) -> WorkloadHistory:
        """Return the workload's history in a cluster."""
        ...

    def reported(self, cluster: str, key: str) -> health.WorkloadReported | None:
        """Return the last report on the workload in a cluster; None if there is none."""
        ...


class History(Struct):
    """One member according to the log.

    ``down_since`` is the number of the record that reported the member as down; 0 if it is up. ``unreachable_since`` is
    the number of the record that set the Cluster's address to that of another API; 0 if the address is the member's.
    ``writes`` are clients' writes that are not folded yet; ``unmanaged`` and ``ages`` are the objects that clients
    wrote, and the ages of their replicas. ``replaced`` has ``Workload.replaced`` by key; ``orphans`` is that of
    ``MemberState``.
    ``reports`` has the last report on each workload, ``running`` the last WorkloadReported with its record number.
    ``unrestored`` workloads are restored when their next works arrive. The member has ``nodes`` nodes.
    """

    workloads: dict[str, WorkloadHistory] = {}
    writes: deque[ObjectWrite] = msgspec.field(default_factory=deque)
    unmanaged: dict[str, Unmanaged] = {}
    orphans: Index = {}
    ages: dict[str, list[tuple[int, int]]] = {}
    replaced: dict[str, dict[int, int]] = {}
    reports: dict[str, Report] = {}
    running: dict[str, tuple[int, health.WorkloadReported]] = {}
    unrestored: dict[str, UnrestoredWorkload] = {}
    nodes: int = 1
    joined: bool = False
    was_joined: bool = False
    ready: bool | None = None
    down_since: int = 0
    unreachable_since: int = 0
    capacity: clusters.CapacityReported | None = None
    apis: tuple[clusters.ApiKind, ...] | None = None


class Past(Struct, frozen=True, kw_only=True):
    """Histories of members, built from the shards' state instead of the log, and the shards' chains in that state."""

    histories: dict[str, History]
    chains: dict[int, Chain]


def take_cluster(history: History, data: object, number: int, source: str) -> None:
    """Fold an event about the member's own cluster; only health reports from the simulator change ``down_since``."""
    match data:
        case clusters.ClusterJoined():
            history.joined = history.was_joined = True
            if not faults.is_reachable(data):
                history.unreachable_since = history.unreachable_since or number
            else:
                # A member that was reported as down while it had another address was only unreachable.
                if 0 < history.unreachable_since < history.down_since:
                    history.down_since = 0
                history.unreachable_since = 0
        case clusters.ClusterLeft():
            history.joined = False
            history.capacity = history.ready = history.apis = None
        case clusters.ClusterApisReported(apis=apis):
            history.apis = apis
        case clusters.CapacityReported() as report:
            history.capacity = report
        case clusters.ClusterHealthChanged(ready=ready):
            history.ready = ready
            if source.startswith(reports.SOURCE):
                history.down_since = 0 if ready else number
        case _:
            pass


def take_writes(history: History, before: int) -> None:
    """Fold the clients' writes whose records have lower numbers than ``before``."""
    while history.writes and history.writes[0].number < before:
        write = history.writes.popleft()
        match write.data:
            case clusters.MemberObjectApplied(manifest=manifest):
                _take_object(history, bytes(manifest), write)
            case clusters.MemberObjectDeleted() as deletion:
                _take_deletion(history, deletion, write.at_ms)
            case clusters.MemberPodDeleted(owner=owner, slot=slot):
                _take_pod_deletion(history, owner.binding_key, slot, write.at_ms)


def take_work(history: History, work: works.Work, at_ms: int, cause: ReportCause) -> None:
    """Fold one work of the member; call ``take_writes`` before it for the writes with lower record numbers."""
    version = (work.term, work.step)
    past = history.workloads.setdefault(work.key, WorkloadHistory(version))
    if version < past.known:
        return
    past.known = version
    match work:
        case works.WorkApplied() if work.key in history.unmanaged and not work.overwrites:
            past.conflict = past.newest = work
            past.fault = marks.conflict(work.template, work.cluster)
            past.suspended = past.removed = False
            past.cause = cause
        case works.WorkApplied():
            if past.applied is None:
                past.created_ms, past.uid, past.kept = at_ms, "", KeptFields()
                past.first = version
                _adopt(history, work.key, work.cluster)
                past.ages = history.ages.pop(work.key, [])
            if own := history.unmanaged.pop(work.key, None):
                orphans.forget(history.orphans, work.key, own)
                past.created_ms, past.uid = own.created_ms, own.uid
                past.kept = kept_fields.taken_over(own)
                past.ages = history.ages.pop(work.key, [])
            past.conflict = past.newest = None
            past.fault = ""
            if not work.overrides:
                past.earlier = []  # A work without overrides can always be applied.
            elif past.applied is not None:
                past.earlier = [past.applied, *past.earlier][:EARLIER_MAX]
            past.applied = work
            past.suspended = past.removed = past.preserved = False
            past.cause = cause
            _assign(past, work.replicas or 0, at_ms)
        case works.WorkRemoved(preserved=preserved):
            past.removed, past.preserved = True, preserved
            past.cause = cause
            past.conflict = None
            if not preserved:
                if work.key not in history.unmanaged:
                    history.replaced.pop(work.key, None)
                past.applied = None
                past.earlier = []
                past.ages = []
        case works.WorkSuspended():
            past.suspended = True


def choose_work(
    past: WorkloadHistory, newest: works.WorkApplied, running_work: works.WorkApplied | None, fault: str
) -> None:
    """Set the work that a workload runs (None if none can be applied), its newest work, and the newest work's fault."""
    past.newest, past.applied, past.fault = newest, running_work, fault
    _assign(past, (running_work.replicas or 0) if running_work else 0, past.created_ms)


def ages_of(past: WorkloadHistory, *, retains: bool) -> list[tuple[int, int]]:
    """Return a workload's replicas as (count, created_ms); ``retains``: its template lets members set their number."""
    if past.assigned is not None and not retains:
        _scale(past.ages, *past.assigned)
        past.assigned = None
    return past.ages


def take_report(history: History, report: Report, number: int) -> None:
    """Fold one report of the member; it replaces the earlier report on the same workload."""
    history.reports[report.key] = report
    if isinstance(report, health.WorkloadReported):
        history.running[report.key] = number, report


def positions(history: History) -> Iterator[tuple[str, template_loading.TemplatePosition]]:
    """Yield the keys of the workloads whose templates must be loaded, with the templates' positions in the log."""
    for key, workload in history.workloads.items():
        applied = workload.applied or workload.conflict
        if applied is not None and template_loading.needs_template(applied):
            yield key, (applied.shard, applied.offset)


def _take_object(history: History, manifest: bytes, write: ObjectWrite) -> None:
    ref = kube_objects.read_head(msgspec.Raw(manifest)).reference
    key = ref.binding_key
    past = history.workloads.get(key)
    if past is not None and past.applied is not None and not past.preserved:
        past.kept, past.edited = kept_fields.read(manifest), write.number
        ages = ages_of(past, retains=past.kept.replicas is not None)
        if past.kept.replicas is not None:
            _scale(ages, past.kept.replicas, write.at_ms)
            past.assigned = None
        return
    old = history.unmanaged.get(key)
    if old is None and past is not None and past.applied is not None:
        old = Unmanaged(ref=ref, manifest=b"{}", uid=past.uid, created_ms=past.created_ms, digest="")
        history.ages[key], past.applied, past.preserved = past.ages, None, False
        past.uid, past.kept = "", KeptFields()
    kept = (
        [history.unmanaged[orphan_key] for orphan_key in history.orphans.get(key, ())] if old is None else []
    )
    history.unmanaged[key] = unmanaged.revised(
        old, manifest, write.uid, write.at_ms, orphans.revisions_of(kept)
    )
    _adopt(history, key, write.data.name)
    _scale(history.ages.setdefault(key, []), unmanaged.count_of(ref, manifest, history.nodes), write.at_ms)


def _take_deletion(history: History, deletion: clusters.MemberObjectDeleted, at_ms: int) -> None:
    ref, key = deletion.object, deletion.object.binding_key
    past = history.workloads.get(key)
    if past is not None and past.applied is not None and not past.preserved:
        past.created_ms, past.uid, past.kept = at_ms, "", KeptFields()
        if not deletion.orphans:
            past.ages = []
        _assign(past, past.applied.replicas or 0, at_ms)
        return
    if deletion.orphans:
        _orphan(history, key, deletion.name)
    preserved = (
        item.applied.template for item in history.workloads.values() if item.preserved and item.applied
    )
    written = (item.ref for item in history.unmanaged.values())
    for deleted_key in (key, *unmanaged.contained(chain(written, preserved), ref)):
        _forget(history, deleted_key)
        deleted = history.workloads.get(deleted_key)
        if deleted is not None and deleted.preserved:
            deleted.applied, deleted.preserved = None, False
        if deleted is not None and deleted.conflict is not None:
            take_work(history, deleted.conflict, at_ms, deleted.cause)


def _forget(history: History, key: str) -> None:
    item = history.unmanaged.pop(key, None)
    if item is not None:
        orphans.forget(history.orphans, key, item)
    history.replaced.pop(key, None)
    history.ages.pop(key, None)


def _orphan(history: History, key: str, cluster: str) -> None:
    """Keep the ReplicaSets or pods of an object that is about to be deleted."""
    item, ages = history.unmanaged.get(key), history.ages.get(key, [])
    if item is None or not (ages or item.ref.kind == orphans.DEPLOYMENT):
        return
    count, replaced = sum(number for number, _ in ages), history.replaced.get(key, {})
    if item.ref.kind == orphans.DEPLOYMENT:
        orphaned = orphans.replica_sets_of(cluster, key, item, count)
        last = next(reversed(orphaned))
        history.ages[last], history.replaced[last] = ages, replaced
    else:
        workload = _workload(key, item, ages, replaced)
        orphaned = orphans.pods_of(cluster, workload, item.manifest)
    for orphan_key, orphan in orphaned.items():
        history.unmanaged[orphan_key] = orphan
        orphans.record(history.orphans, orphan_key, orphan)


def _adopt(history: History, key: str, cluster: str) -> None:
    """Assign the orphaned replicas of a deleted object to the object that was created again with its key."""
    orphaned = {orphan_key: history.unmanaged[orphan_key] for orphan_key in history.orphans.get(key, ())}
    if not orphaned:
        return
    last = next(reversed(orphaned))
    ages, replaced = history.ages.get(last, []), history.replaced.get(last, {})
    pods = [item for item in orphaned.values() if item.ref.kind == templates.POD]
    if pods and (own := history.unmanaged.get(key)) is not None:
        count = unmanaged.count_of(own.ref, own.manifest, history.nodes)
        ages, replaced = orphans.adopted(cluster, _workload(key, own, [], {}), count, pods)
    elif pods:
        # The template of a managed object is unknown here; assume that it equals that of the pods.
        ages, replaced = [(1, created_ms) for created_ms in sorted(pod.created_ms for pod in pods)], {}
    history.ages[key], history.replaced[key] = ages, replaced
    for orphan_key in orphaned:
        _forget(history, orphan_key)


def _workload(key: str, item: Unmanaged, ages: list[tuple[int, int]], replaced: dict[int, int]) -> Workload:
    workload = unmanaged.workload_of(key, item)
    workload.template = templates.read(item.manifest)
    workload.cohorts = tuple(
        Cohort(count, created_ms, created_ms, running=True) for count, created_ms in ages
    )
    workload.replaced = replaced
    return workload


def _take_pod_deletion(history: History, key: str, slot: int, at_ms: int) -> None:
    past = history.workloads.get(key)
    ages = history.ages.get(key, past.ages if past is not None else [])
    replaced = history.replaced.setdefault(key, {})
    if slot >= rollouts.FORMER_SLOTS:
        return  # the slot of a former pod template: the rollout replaces its pod anyway
    order = list(rollouts.slots(replaced, sum(count for count, _ in ages)))
    rollouts.count_replacement(replaced, slot)
    position = order.index(slot) if slot in order else len(order)
    for index, (count, created_ms) in enumerate(ages):
        if position < count:
            ages[index] = count - 1, created_ms
            ages.append((1, at_ms))
            return
        position -= count


def _assign(past: WorkloadHistory, replicas: int, at_ms: int) -> None:
    """Scale to the replicas of a work; if a client has edited the replicas, keep them and set only ``assigned``."""
    if past.kept.replicas is None:
        _scale(past.ages, replicas, at_ms)
        past.assigned = None
    else:
        past.assigned = replicas, at_ms


def _scale(ages: list[tuple[int, int]], replicas: int, at_ms: int) -> None:
    """Change groups of (count, created_ms) so that their counts add up to ``replicas``; the youngest shrink first."""
    replicas = min(max(replicas, 0), PODS_MAX)
    total = sum(count for count, _ in ages)
    if replicas > total:
        ages.append((replicas - total, at_ms))
    while total > replicas:
        count, created_ms = ages.pop()
        remaining = max(count - (total - replicas), 0)
        total -= count - remaining
        if remaining:
            ages.append((remaining, created_ms))
