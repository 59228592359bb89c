"""Eviction rules: when a NoExecute taint evicts a workload, and when a graceful eviction ends.

Times are integer milliseconds since 1970; an action takes effect in the first step at or after its time. The rules are
Karmada's. The scheduler replaces the evicted replicas; a scheduling filter excludes the cluster meanwhile.
"""

import enum
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from msgspec import Struct

from engine.domain.bindings import Targets
from engine.kubeapi.values.taints import Effect
from engine.objects.clusters import Taint
from engine.objects.placements import Toleration, Tolerations
from events import times
from events.decisions import EvictionStarted

AT_ONCE_MS: Final = 0
"""The deadline of an eviction that is due at once: it precedes the time of every step."""

UNTOLERATED: Final = "TaintUntolerated"
"""The reason of evictions by a taint."""


class EndReason(enum.StrEnum):
    """Why an eviction has ended, as recorded."""

    CLUSTER_LEFT = "ClusterLeft"
    DELETION_ALLOWED = "DeletionAllowed"
    GRACE_PERIOD_OVER = "GracePeriodOver"
    RECOVERED = "Recovered"
    REPLACEMENT_HEALTHY = "ReplacementHealthy"


class EvictionEnds(Struct, frozen=True, gc=False):
    """Clusters whose evictions end now, with reasons.

    Evictions from the clusters in ``protected`` do not end with their grace period.
    """

    ending: Mapping[str, EndReason] = {}
    protected: AbstractSet[str] = frozenset()


NO_ENDS: Final = EvictionEnds()


class Ended(Struct, frozen=True, gc=False):
    """An eviction task that has ended, with the reason."""

    task: EvictionStarted
    reason: EndReason


class Assessment(Struct, frozen=True, gc=False):
    """Eviction tasks that have ended, and when the next grace period of the other tasks ends (None: never)."""

    ended: tuple[Ended, ...]
    due_ms: int | None


def deadline_ms(taints: Sequence[Taint], tolerations: Sequence[Toleration]) -> int | None:
    """Return when a binding with these tolerations must leave a cluster with these taints; None for never.

    Only NoExecute taints evict. If one of them is not tolerated, the result is AT_ONCE_MS. Each taint uses the first
    toleration that matches it. If a used toleration has ``tolerationSeconds``, it limits the stay for every taint
    with a matching key, also for a taint that uses another toleration. A taint without ``timeAdded`` limits nothing.
    Raises ValueError if a taint's time is not RFC 3339.
    """
    driving: dict[str, list[Taint]] = {}
    used: dict[int, Toleration] = {}
    indexed = Tolerations(tolerations)
    for taint in taints:
        if taint.effect != Effect.NO_EXECUTE:
            continue
        toleration = indexed.first(taint.key, taint.value, taint.effect)
        if toleration is None:
            return AT_ONCE_MS
        # Keyed by identity, because equal tolerations count as distinct entries. An identity stays valid, because
        # ``tolerations`` keeps the entries alive.
        used[id(toleration)] = toleration
        driving.setdefault(taint.key, []).append(taint)
    limits = [
        times.from_text(taint.time_added) + toleration.toleration_seconds * times.SECOND_MS
        for toleration in used.values()
        if toleration.toleration_seconds is not None
        for taints_of_key in ([driving[toleration.key]] if toleration.key else driving.values())
        for taint in taints_of_key
        if taint.time_added is not None and _matches(toleration, taint)
    ]
    return _bounded(min(limits)) if limits else None


def assess(
    tasks: Sequence[EvictionStarted],
    clusters: Targets,
    healthy: AbstractSet[str],
    *,
    is_scheduled: bool,
    now_ms: int,
    grace_period_ms: int,
    ends: EvictionEnds = NO_ENDS,
) -> Assessment:
    """Return the eviction tasks that end now, and when the next grace period of the others ends.

    - ``healthy``: clusters that report the workload as healthy.
    - ``is_scheduled``: the scheduler has seen the binding's current state.
    - ``grace_period_ms``: for tasks that set no grace period.
    """
    is_replaced = is_scheduled and all(name in healthy for name, _ in clusters)
    ended: list[Ended] = []
    dues: list[int] = []
    for task in tasks:
        is_protected = task.cluster in ends.protected
        due_ms = None if is_protected else _due_ms(task, grace_period_ms)
        reason = ends.ending.get(task.cluster) or _end_reason(task, due_ms, now_ms, is_replaced=is_replaced)
        if reason is not None:
            ended.append(Ended(task, reason))
        elif due_ms is not None:
            dues.append(due_ms)
    return Assessment(tuple(ended), min(dues, default=None))


def _matches(toleration: Toleration, taint: Taint) -> bool:
    return toleration.tolerates(taint.key, taint.value, taint.effect)


def _end_reason(
    task: EvictionStarted, due_ms: int | None, now_ms: int, *, is_replaced: bool
) -> EndReason | None:
    if task.suppress_deletion is not None:
        return None if task.suppress_deletion else EndReason.DELETION_ALLOWED
    if due_ms is not None and due_ms <= now_ms:
        return EndReason.GRACE_PERIOD_OVER
    return EndReason.REPLACEMENT_HEALTHY if is_replaced and not task.held else None


def _due_ms(task: EvictionStarted, grace_period_ms: int) -> int | None:
    """Return the first millisecond after the grace period of a task; None for never."""
    if task.suppress_deletion:
        return None
    own_seconds = task.grace_period_seconds
    period_ms = grace_period_ms if own_seconds is None else own_seconds * times.SECOND_MS
    return _bounded(task.created_ms + period_ms + 1)


def _bounded(at_ms: int) -> int | None:
    """Clamp a time to the supported range; a time after the last supported one is never reached (None)."""
    return None if at_ms > times.LAST_MS else max(at_ms, AT_ONCE_MS)
