"""A cluster's home shard: turns its silence into a report, and its condition into the taints that policies want.

A condition that may pass (ready, not ready) counts once it has lasted for a while, so that a cluster which flaps moves
nothing; the time counts from the first step that knew of it, for a report may come late. Storms are bounded here
(design section 3): clusters that fail are emptied one after the other, at the pace of the node controller of
Kubernetes, and none where so many fail at once that it is rather the control plane that is cut off. Who comes when
follows from the facts, which every shard sees, and from the step's time.
"""

import bisect
from collections.abc import Iterator
from typing import Final, NamedTuple

from engine.deciders import emitting
from engine.deciders.facts import Facts
from engine.deciders.membership import READY, UNKNOWN, Health
from engine.deciders.state import Watch
from engine.objects import clusters as manifests
from engine.objects import taint_policies
from events import clusters, decisions

CONFIRM_MS: Final = 30_000
"""How long a cluster has to be ready, or not, before that counts: the reference's threshold."""

PACE_MS: Final = 10_000
"""Between one cluster that is emptied and the next: a tenth of one each second."""

STUCK_MS: Final = 60_000
"""How long a cluster waits for each one before it, in case that one is never emptied."""

CROWD_MIN: Final = 3
CROWD_PERCENT: Final = 55
"""So many clusters in trouble, and such a share of all: then none is emptied."""

_CONDITION: Final = "Ready"
_NO_EXECUTE: Final = "NoExecute"
_SECOND_MS: Final = 1_000
_REASON: Final = "ClusterStatusUnknown"


class Plan(NamedTuple):
    """Taints to add and to take away now, and when time alone may change that (0: never).

    ``waits`` says that others come first.
    """

    added: tuple[clusters.Taint, ...]
    removed: tuple[clusters.Taint, ...]
    next_ms: int
    waits: bool = False


_NOTHING: Final = Plan((), (), 0)


def decide(watch: Watch, facts: Facts, emit: emitting.Emitter) -> None:
    """Tells a silence that is too long, and the taints that are due."""
    if facts.fleet.get(watch.name) is None:
        return
    if watch.silent_ms and watch.silent_ms <= emit.time_ms and watch.silenced_ms != watch.heard_ms:
        _silence(watch, emit)
    plan = _plan(watch, facts, emit.time_ms)
    if not plan.added and not plan.removed:
        return
    judged = decisions.ClusterJudged(
        name=watch.name,
        status=watch.status,
        version=facts.version_of(watch.name),
        added=plan.added,
        removed=plan.removed,
    )
    if judged == watch.judged:
        # It was told of this very cluster, and is on its way.
        return
    emit.decide(judged, watch.name)
    for taint in plan.removed:
        emit.fact(clusters.ClusterUntainted(name=watch.name, key=taint.key, effect=taint.effect), watch.name)
    for taint in plan.added:
        emit.fact(clusters.ClusterTainted(name=watch.name, taint=taint), watch.name)


def begin(watch: Watch, at_ms: int) -> None:
    """A new owner waits for the next report as long as was promised: before, nobody was there to hear it."""
    if watch.silent_ms and watch.silenced_ms != watch.heard_ms:
        watch.silent_ms = max(watch.silent_ms, at_ms + watch.grace_ms)


def settle(watch: Watch, facts: Facts, at_ms: int) -> None:
    """Ends the deciding of a cluster in a step at ``at_ms``: what is known since now, and when to look again."""
    watch.known_ms = watch.known_ms or at_ms
    if _is_late(watch, at_ms):
        watch.queued_ms = 0
    plan = _plan(watch, facts, at_ms)
    watch.act_ms = plan.next_ms
    watch.queued_ms = (watch.queued_ms or at_ms) if plan.waits else 0


def is_crowd(facts: Facts) -> bool:
    """Whether so many clusters are in trouble that none is emptied."""
    troubles = len(facts.troubled)
    return troubles >= CROWD_MIN and troubles * 100 >= CROWD_PERCENT * len(facts.fleet)


def first(facts: Facts) -> str:
    """The cluster that is to be emptied next; empty where there is none."""
    return next((name for _, name in facts.waiting(_waits)), "")


def _silence(watch: Watch, emit: emitting.Emitter) -> None:
    grace = watch.grace_ms // _SECOND_MS
    told = decisions.ClusterSilenced(name=watch.name, heard_ms=watch.heard_ms, grace_seconds=grace)
    emit.decide(told, watch.name)
    report = clusters.ClusterHealthChanged(
        name=watch.name,
        ready=False,
        reason=_REASON,
        message=f"nothing was heard of the cluster for {grace} seconds",
        silent=True,
        heard_ms=watch.heard_ms,
    )
    emit.fact(report, watch.name)


def _plan(watch: Watch, facts: Facts, time_ms: int) -> Plan:
    cluster = facts.fleet.get(watch.name)
    if cluster is None or not facts.taint_policies:
        return _NOTHING
    known_ms = watch.known_ms or time_ms
    counts_ms = known_ms if watch.status == UNKNOWN else known_ms + CONFIRM_MS
    if time_ms < counts_ms:
        return Plan((), (), counts_ms)
    added, removed = _wanted(cluster, watch.status, facts)
    if watch.status == READY or not _empties(added):
        return Plan(tuple(added), tuple(removed), 0)
    look_ms = _look_ms(watch, facts, time_ms)
    if look_ms == time_ms:
        return Plan(tuple(added), tuple(removed), 0)
    added = [taint for taint in added if taint.effect != _NO_EXECUTE]
    return Plan(tuple(added), tuple(removed), look_ms, waits=look_ms > 0)


def _look_ms(watch: Watch, facts: Facts, time_ms: int) -> int:
    """When a cluster in trouble may be emptied, or is to be looked at again; 0 while too many are in trouble."""
    if is_crowd(facts):
        return 0
    waiting = facts.waiting(_waits)
    before = bisect.bisect_left(waiting, (watch.since_ms, watch.name))
    emptied_ms, emptied = facts.emptied
    paced_ms = time_ms if emptied in ("", watch.name) else emptied_ms + (before + 1) * PACE_MS
    are_stuck = (
        watch.queued_ms and watch.queued_ms + before * STUCK_MS <= time_ms and not _is_late(watch, time_ms)
    )
    if not before or are_stuck:
        return max(paced_ms, time_ms)
    return max(paced_ms, time_ms + before * PACE_MS)


def _is_late(watch: Watch, time_ms: int) -> bool:
    """Whether nobody decided when it was time: then all wait anew, so that they don't make up for it together."""
    return bool(watch.act_ms) and time_ms > watch.act_ms + PACE_MS


def _waits(name: str, health: Health, facts: Facts) -> bool:
    """Whether a cluster in trouble is to be emptied, and is not yet."""
    cluster = facts.fleet.get(name)
    return cluster is not None and _empties(_wanted(cluster, health.status, facts)[0])


def _empties(added: list[clusters.Taint]) -> bool:
    return any(taint.effect == _NO_EXECUTE for taint in added)


def _wanted(
    cluster: manifests.ClusterManifest, status: str, facts: Facts
) -> tuple[list[clusters.Taint], list[clusters.Taint]]:
    """What the policies add to the cluster's taints and take from them; what one adds no other takes away."""
    has = {(taint.key, taint.effect): taint.value for taint in cluster.spec.taints}
    adding: dict[tuple[str, str], manifests.Taint] = {}
    removing: dict[tuple[str, str], manifests.Taint] = {}
    conditions = {_CONDITION: status}
    for policy in _policies(cluster.metadata.name, facts):
        for taint in policy.spec.taints:
            if policy.adds(conditions):
                adding.setdefault((taint.key, taint.effect), taint)
            if policy.removes(conditions):
                removing.setdefault((taint.key, taint.effect), taint)
    added = [_taint(each) for place, each in sorted(adding.items()) if has.get(place) != each.value]
    removed = [
        _taint(each) for place, each in sorted(removing.items()) if place in has and place not in adding
    ]
    return added, removed


def _policies(cluster: str, facts: Facts) -> Iterator[taint_policies.TaintPolicy]:
    """The policies that mean a cluster, by name."""
    for name in sorted(facts.taint_policies):
        policy = facts.taint_policies[name]
        if facts.fleet.matches(policy.spec.target_clusters, cluster):
            yield policy


def _taint(taint: manifests.Taint) -> clusters.Taint:
    return clusters.Taint(key=taint.key, effect=taint.effect, value=taint.value)
