"""Cluster health in the owner shard: report silent clusters as unknown, and taint clusters by their conditions.

The condition Ready takes effect only after it has lasted for a while, so a flapping cluster changes nothing. That time
starts at the first step that knew the condition, because a report may arrive late. Conditions that clients report
(network, storage) take effect at once, because the clients decide when to report them. Mass evictions are limited:
clusters are emptied, that is, get NoExecute taints that evict all workloads, one by one at the pace of Kubernetes' node
controller. While so many clusters fail that the control plane itself is probably cut off, none is emptied. Each shard
computes the same order, from the facts and the time of its step.
"""

import bisect
from collections.abc import Iterator
from typing import Final, NamedTuple

from engine.deciders.facts import Facts
from engine.deciders.state import Watch
from engine.deciders.step_outputs import Outputs, View
from engine.domain.clusters import READY, UNKNOWN, Cluster, Health
from engine.kubeapi.values.taints import Effect
from engine.objects import clusters as manifests
from engine.objects import taint_policies
from events import cluster_decisions, clusters, times

CONFIRM_MS: Final = 30_000
"""Time in ms after which a change between ready and not ready takes effect (Karmada's threshold)."""

PACE_MS: Final = 10_000
"""Minimum time in ms between the emptying of two clusters (Kubernetes' node eviction rate of 0.1 per second)."""

STUCK_MS: Final = times.MINUTE_MS
"""Maximum wait in ms of a queued cluster for each cluster ahead of it: a cluster ahead may never be emptied."""

MASS_FAILURE_MIN: Final = 3
MASS_FAILURE_PERCENT: Final = 55
"""No cluster is emptied while at least so many clusters, and this percentage of all clusters, are not ready."""

_CONDITION: Final = "Ready"
_REASON: Final = "ClusterStatusUnknown"
_UNSCHEDULABLE: Final = {
    str(False): manifests.Taint(key="cluster.karmada.io/not-ready", effect=Effect.NO_SCHEDULE),
    UNKNOWN: manifests.Taint(key="cluster.karmada.io/unreachable", effect=Effect.NO_SCHEDULE),
}
"""Taints of clusters by the status of their condition Ready, as in Karmada."""


class Plan(NamedTuple):
    """Taints to add and to remove now.

    ``next_ms`` is the time (ms since 1970; 0 for never) at which the plan may change without a new input. ``waits``:
    workloads must be evicted from the cluster, but other clusters come first.
    """

    added: tuple[clusters.Taint, ...]
    removed: tuple[clusters.Taint, ...]
    next_ms: int
    waits: bool = False


_NOTHING: Final = Plan((), (), 0)


def decide(watch: Watch, view: View) -> Outputs[None]:
    """Report the cluster as silent if its grace period is over, and emit the taint changes that are due."""
    if watch.name not in view.facts.members:
        return
    if watch.silent_ms and watch.silent_ms <= view.time_ms and watch.silenced_ms != watch.heard_ms:
        yield from _silence(watch)
    plan = _plan(watch, view.facts, view.time_ms)
    if not plan.added and not plan.removed:
        return
    judged = cluster_decisions.ClusterJudged(
        name=watch.name,
        status=watch.status,
        version=view.facts.version_of(watch.name),
        added=plan.added,
        removed=plan.removed,
    )
    if judged == watch.judged:
        # These changes were decided already for this version of the cluster; the shard has not read them back yet.
        return
    yield judged
    for taint in plan.removed:
        yield clusters.ClusterUntainted(name=watch.name, key=taint.key, effect=taint.effect)
    for taint in plan.added:
        yield clusters.ClusterTainted(name=watch.name, taint=taint)


def begin(watch: Watch, at_ms: int) -> None:
    """Give the cluster a full grace period for its next report, because a new ownership begins.

    While the shard had no owner, no reports were read.
    """
    if watch.silent_ms and watch.silenced_ms != watch.heard_ms:
        watch.silent_ms = max(watch.silent_ms, at_ms + watch.grace_ms)


def settle(watch: Watch, facts: Facts, at_ms: int) -> None:
    """Set ``known_ms``, ``queued_ms`` and ``act_ms`` of a watch after it was decided in a step at ``at_ms``."""
    watch.known_ms = watch.known_ms or at_ms
    if _is_late(watch, at_ms):
        watch.queued_ms = 0
    plan = _plan(watch, facts, at_ms)
    watch.act_ms = plan.next_ms
    watch.queued_ms = (watch.queued_ms or at_ms) if plan.waits else 0


def too_many_not_ready(facts: Facts) -> bool:
    """Whether so many clusters are not ready that none may be emptied (see ``MASS_FAILURE_MIN``)."""
    not_ready = len(facts.not_ready)
    return not_ready >= MASS_FAILURE_MIN and not_ready * 100 >= MASS_FAILURE_PERCENT * len(facts.fleet)


def next_to_evict(facts: Facts) -> str:
    """Return the cluster from which all workloads are evicted next; an empty text if there is none."""
    return next((name for _, name in facts.waiting(_needs_eviction_taint)), "")


def _silence(watch: Watch) -> Outputs[None]:
    grace = watch.grace_ms // times.SECOND_MS
    yield cluster_decisions.ClusterSilenced(name=watch.name, heard_ms=watch.heard_ms, grace_seconds=grace)
    yield clusters.ClusterHealthChanged(
        name=watch.name,
        ready=False,
        reason=_REASON,
        message=f"nothing was heard of the cluster for {grace} seconds",
        silent=True,
        heard_ms=watch.heard_ms,
    )


def _plan(watch: Watch, facts: Facts, time_ms: int) -> Plan:
    name, cluster = watch.name, facts.members.get(watch.name)
    if cluster is None:
        return _NOTHING
    confirmed_ms = _confirmed_ms(watch, time_ms)
    if (
        confirmed_ms
        and not facts.taint_policies
        and not any(_taint_changes(name, cluster, watch.status, facts))
    ):
        return _NOTHING
    added, removed = _taint_changes(name, cluster, watch.status if not confirmed_ms else "", facts)
    if watch.status in ("", READY) or not _has_no_execute(added):
        return Plan(tuple(added), tuple(removed), confirmed_ms)
    check_ms = _next_check_ms(watch, facts, time_ms)
    if check_ms == time_ms:
        return Plan(tuple(added), tuple(removed), confirmed_ms)
    added = [taint for taint in added if taint.effect != Effect.NO_EXECUTE]
    next_ms = min(due_ms for due_ms in (check_ms, confirmed_ms) if due_ms) if check_ms or confirmed_ms else 0
    return Plan(tuple(added), tuple(removed), next_ms, waits=check_ms > 0)


def _confirmed_ms(watch: Watch, time_ms: int) -> int:
    """Return when the condition Ready takes effect; 0 if it is in effect already, or is not reported."""
    known_ms = watch.known_ms or time_ms
    counts_ms = known_ms if watch.status in ("", UNKNOWN) else known_ms + CONFIRM_MS
    return counts_ms if time_ms < counts_ms else 0


def _next_check_ms(watch: Watch, facts: Facts, time_ms: int) -> int:
    """Return when a cluster that is not ready may be emptied or must be checked again.

    The result equals ``time_ms`` if the cluster may be emptied now; it is 0 while ``too_many_not_ready`` holds.
    """
    if too_many_not_ready(facts):
        return 0
    waiting = facts.waiting(_needs_eviction_taint)
    position = bisect.bisect_left(waiting, (watch.since_ms, watch.name))
    emptied_ms, emptied = facts.emptied
    # Each queued cluster waits ``PACE_MS`` after the one before it, the first one after the last emptied cluster.
    # The cluster that was emptied last does not wait.
    paced_ms = time_ms if emptied in ("", watch.name) else emptied_ms + (position + 1) * PACE_MS
    # The clusters before this one may never be emptied, for example if their shard is quarantined: wait at most
    # ``STUCK_MS`` for each of them.
    are_stuck = (
        watch.queued_ms and watch.queued_ms + position * STUCK_MS <= time_ms and not _is_late(watch, time_ms)
    )
    if not position or are_stuck:
        return max(paced_ms, time_ms)
    # Not its turn: check again after one interval for each cluster before it.
    return max(paced_ms, time_ms + position * PACE_MS)


def _is_late(watch: Watch, time_ms: int) -> bool:
    """Whether a cluster's check is overdue, because no step was taken when it was due.

    The cluster's waiting time then begins again; otherwise many clusters would be emptied at once after an outage.
    """
    return bool(watch.act_ms) and time_ms > watch.act_ms + PACE_MS


def _needs_eviction_taint(name: str, health: Health, facts: Facts) -> bool:
    """Whether a cluster that is not ready must get a NoExecute taint that it does not have yet."""
    cluster = facts.members.get(name)
    return cluster is not None and _has_no_execute(_taint_changes(name, cluster, health.status, facts)[0])


def _has_no_execute(added: list[clusters.Taint]) -> bool:
    return any(taint.effect == Effect.NO_EXECUTE for taint in added)


def _taint_changes(
    name: str, cluster: Cluster, ready: str, facts: Facts
) -> tuple[list[clusters.Taint], list[clusters.Taint]]:
    """Return the taints to add and those to remove, by the condition Ready of the cluster and the ClusterTaintPolicies.

    A taint to add is not removed, even if another policy removes it. ``ready`` is the status of the condition Ready;
    empty if it is not reported or not in effect yet.
    """
    present = {(taint.key, taint.effect): taint.value for taint in cluster.spec.taints}
    adding: dict[tuple[str, str], manifests.Taint] = {}
    removing: dict[tuple[str, str], manifests.Taint] = {}
    reported = cluster.statuses
    conditions = {**reported, _CONDITION: ready} if ready else reported
    for status, taint in _UNSCHEDULABLE.items():
        if ready:
            (adding if status == ready else removing)[taint.key, taint.effect] = taint
    for policy in _policies(name, facts):
        for taint in policy.spec.taints:
            if policy.adds(conditions):
                adding.setdefault((taint.key, taint.effect), taint)
            if policy.removes(conditions):
                removing.setdefault((taint.key, taint.effect), taint)
    added = [
        _taint(taint_change)
        for identity, taint_change in sorted(adding.items())
        if present.get(identity) != taint_change.value
    ]
    removed = [
        _taint(taint_change)
        for identity, taint_change in sorted(removing.items())
        if identity in present and identity not in adding
    ]
    return added, removed


def _policies(cluster: str, facts: Facts) -> Iterator[taint_policies.TaintPolicy]:
    """Yield the ClusterTaintPolicies that select a cluster, in name order."""
    for name in sorted(facts.taint_policies):
        policy = facts.taint_policies[name]
        if facts.fleet.matches(policy.spec.target_clusters, cluster):
            yield policy


def _taint(taint: manifests.Taint) -> clusters.Taint:
    return clusters.Taint(key=taint.key, effect=taint.effect, value=taint.value)
