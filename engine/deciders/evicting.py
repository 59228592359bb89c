"""Eviction: when a NoExecute taint drives a workload out of a cluster, and how long it may still run there.

Instants are integer milliseconds since 1970, given by the caller; what may happen at an instant happens at the
first step whose time has reached it. The rules are the reference's. That the place of what was evicted is taken
elsewhere is the scheduler's work, and that the cluster is out of the question meanwhile is a filter's.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

import msgspec
from msgspec import Struct

from engine.objects.clusters import Taint
from engine.objects.placements import Toleration, Tolerations
from events import times

AT_ONCE_MS: Final = 0
"""A deadline that has passed whatever the time is."""

CLUSTER_LEFT: Final = "ClusterLeft"
DELETION_ALLOWED: Final = "DeletionAllowed"
GRACE_PERIOD_OVER: Final = "GracePeriodOver"
RECOVERED: Final = "Recovered"
REPLACEMENT_HEALTHY: Final = "ReplacementHealthy"

_NO_EXECUTE: Final = "NoExecute"
_SECOND_MS: Final = 1000

Targets = tuple[tuple[str, int], ...]
"""Clusters and their replicas."""


class Task(Struct, frozen=True, gc=False):
    """A graceful eviction that goes on: what ran in the cluster, and since when it is to go.

    ``created_ms`` is None until the first look at it; ``grace_period_seconds`` None for the engine's own;
    ``suppress_deletion`` True keeps it until somebody decides, False ends it, None leaves it to the rules.
    ``labels`` are those that preserve its state in a cluster that is not among ``clusters_before``. One that is
    ``held`` ends with its period, however well its replacement is.
    """

    cluster: str
    replicas: int
    created_ms: int | None
    purge_mode: str
    grace_period_seconds: int | None = None
    suppress_deletion: bool | None = None
    labels: dict[str, str] = {}
    clusters_before: tuple[str, ...] = ()
    held: bool = False


class Ended(Struct, frozen=True, gc=False):
    """A task that is over, and why."""

    task: Task
    reason: str


class Assessment(Struct, frozen=True, gc=False):
    """What becomes of the tasks: those that go on, those that are over, and when time alone may end the next."""

    kept: tuple[Task, ...]
    ended: tuple[Ended, ...]
    due_ms: int | None


def deadline_ms(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> int | None:
    """When a binding with these tolerations has to leave a cluster with these taints; None for never.

    Only NoExecute taints count. Each must be tolerated, else the answer is AT_ONCE_MS; the first toleration that
    matches a taint is the one that is used for it. A used toleration with seconds limits the stay by each taint
    that it matches, so also by those for which another is used; a taint that doesn't say when it came limits
    nothing. Raises ValueError where the time of a taint is no RFC 3339 text.
    """
    driving: dict[str, list[Taint]] = {}
    used: dict[int, Toleration] = {}
    indexed = Tolerations(tolerations)
    for taint in taints:
        if taint.effect != _NO_EXECUTE:
            continue
        toleration = indexed.first(taint.key, taint.value, taint.effect)
        if toleration is None:
            return AT_ONCE_MS
        used[id(toleration)] = toleration
        driving.setdefault(taint.key, []).append(taint)
    limits = [
        times.from_text(taint.time_added) + toleration.toleration_seconds * _SECOND_MS
        for toleration in used.values()
        if toleration.toleration_seconds is not None
        for of_key in ([driving[toleration.key]] if toleration.key else driving.values())
        for taint in of_key
        if taint.time_added is not None and _matches(toleration, taint)
    ]
    return _bounded(min(limits)) if limits else None


def evict(clusters: Targets, tasks: tuple[Task, ...], task: Task) -> tuple[Targets, tuple[Task, ...]]:
    """The clusters and the tasks of a binding after it was told to leave one cluster.

    A binding that isn't in the cluster stays as it is; a cluster has at most one task. So a repeated eviction
    changes nothing.
    """
    remaining = tuple(target for target in clusters if target[0] != task.cluster)
    if len(remaining) == len(clusters) or any(known.cluster == task.cluster for known in tasks):
        return remaining, tasks
    return remaining, (*tasks, task)


def assess(
    tasks: Sequence[Task],
    clusters: Targets,
    healthy: AbstractSet[str],
    *,
    is_scheduled: bool,
    now_ms: int,
    grace_period_ms: int,
    verdicts: Mapping[str, str] | None = None,
) -> Assessment:
    """Which tasks are over now.

    ``healthy`` are the clusters in which the workload is reported healthy; ``is_scheduled`` says that the
    scheduler has seen the binding as it is now; ``grace_period_ms`` holds for tasks without a period of their
    own. A task that is looked at for the first time gets its time, and no more happens to it. ``verdicts``, by
    cluster, come before the rules, which are the reference's: the reason that ends a task, or "" for one that time
    alone must not end.
    """
    verdicts = verdicts or {}
    is_replaced = is_scheduled and all(name in healthy for name, _ in clusters)
    kept: list[Task] = []
    ended: list[Ended] = []
    dues: list[int] = []
    for task in tasks:
        verdict = verdicts.get(task.cluster)
        due_ms = _due_ms(task, now_ms, grace_period_ms) if verdict is None else None
        reason = "" if task.created_ms is None else _ending(task, due_ms, now_ms, is_replaced=is_replaced)
        if reason := verdict or reason:
            ended.append(Ended(task, reason))
            continue
        kept.append(task if task.created_ms is not None else msgspec.structs.replace(task, created_ms=now_ms))
        if due_ms is not None:
            dues.append(due_ms)
    return Assessment(tuple(kept), tuple(ended), min(dues, default=None))


def _matches(toleration: Toleration, taint: Taint) -> bool:
    return toleration.tolerates(taint.key, taint.value, taint.effect)


def _ending(task: Task, due_ms: int | None, now_ms: int, *, is_replaced: bool) -> str:
    if task.suppress_deletion is not None:
        return "" if task.suppress_deletion else DELETION_ALLOWED
    if due_ms is not None and due_ms <= now_ms:
        return GRACE_PERIOD_OVER
    return REPLACEMENT_HEALTHY if is_replaced and not task.held else ""


def _due_ms(task: Task, now_ms: int, grace_period_ms: int) -> int | None:
    """The first instant at which the grace period is over, which is after its last one; None for never."""
    if task.suppress_deletion:
        return None
    created_ms = now_ms if task.created_ms is None else task.created_ms
    own_seconds = task.grace_period_seconds
    period_ms = grace_period_ms if own_seconds is None else own_seconds * _SECOND_MS
    return _bounded(created_ms + period_ms + 1)


def _bounded(at_ms: int) -> int | None:
    """What is due after the last instant is never due."""
    return None if at_ms > times.LAST_MS else max(at_ms, AT_ONCE_MS)
