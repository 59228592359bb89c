"""A cluster's home shard: turns its silence into a report, and its condition into the taints that policies want.

A condition that may pass (ready, not ready) counts once it has lasted for a while, so that a cluster which flaps moves
nothing. Storms are bounded here (design section 3): clusters that fail are emptied one after the other, at the pace of
the node controller of Kubernetes, and none where so many fail at once that it is rather the control plane that is cut
off. All of it follows from the facts, which every shard sees, and from the step's time.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from engine.deciders import emitting
from engine.deciders.facts import Facts
from engine.deciders.membership import UNKNOWN
from engine.deciders.state import Watch
from engine.objects import clusters as manifests
from engine.objects import taint_policies
from events import clusters, decisions

CONFIRM_MS: Final = 30_000
"""How long a cluster has to be ready, or not, before that counts: the reference's threshold."""

PACE_MS: Final = 10_000
"""Between one cluster that is emptied and the next: a tenth of one each second."""

CROWD_MIN: Final = 3
CROWD_PERCENT: Final = 55
"""So many clusters in trouble, and such a share of all: then none is emptied."""

_READY: Final = "True"
_CONDITION: Final = "Ready"
_NO_EXECUTE: Final = "NoExecute"
_SECOND_MS: Final = 1_000
_REASON: Final = "ClusterStatusUnknown"


class Plan(NamedTuple):
    """Taints to add and to take away now, and when time alone may change that (0: never)."""

    added: tuple[clusters.Taint, ...]
    removed: tuple[clusters.Taint, ...]
    next_ms: int


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


def act_ms(watch: Watch, facts: Facts, time_ms: int) -> int:
    """When time alone may change the taints of a cluster; 0 for never."""
    return _plan(watch, facts, time_ms).next_ms


def _silence(watch: Watch, emit: emitting.Emitter) -> None:
    grace = (watch.silent_ms - watch.heard_ms) // _SECOND_MS
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
    counts_ms = watch.since_ms if watch.status == UNKNOWN else watch.since_ms + CONFIRM_MS
    if time_ms < counts_ms:
        return Plan((), (), counts_ms)
    added, removed = _wanted(watch, cluster, facts)
    evicting = [taint for taint in added if taint.effect == _NO_EXECUTE]
    next_ms = 0
    if evicting and watch.status != _READY:
        turn_ms = _turn_ms(watch, counts_ms, facts)
        if turn_ms is None or turn_ms > time_ms:
            added = [taint for taint in added if taint.effect != _NO_EXECUTE]
            next_ms = turn_ms or 0
    return Plan(tuple(added), tuple(removed), next_ms)


def _turn_ms(watch: Watch, counts_ms: int, facts: Facts) -> int | None:
    """When it is this cluster's turn among those in trouble, the longest first; None while they are too many."""
    failing = [(health.since_ms, name) for name, health in facts.health.items() if health.status != _READY]
    if len(failing) >= CROWD_MIN and len(failing) * 100 >= CROWD_PERCENT * len(facts.fleet):
        return None
    before = sum(each < (watch.since_ms, watch.name) for each in failing)
    return counts_ms + before * PACE_MS


def _wanted(
    watch: Watch, cluster: manifests.ClusterManifest, facts: Facts
) -> tuple[list[clusters.Taint], list[clusters.Taint]]:
    """What the policies add to the cluster's taints and take from them; what one adds no other takes away."""
    has = {(taint.key, taint.effect): taint.value for taint in cluster.spec.taints}
    adding: dict[tuple[str, str], manifests.Taint] = {}
    removing: dict[tuple[str, str], manifests.Taint] = {}
    conditions = {_CONDITION: watch.status}
    for policy in _policies(watch.name, facts):
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
