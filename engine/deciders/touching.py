"""Which keys of a shard a change of facts touches.

It follows from the change (what was, what is) and from the shard's own state alone, so it does not matter in how
many portions the facts were folded.
"""

from typing import Final

from engine.deciders import facts, intake, watching
from engine.deciders import state as states
from engine.deciders.indexes import Indexes
from engine.deciders.placing import Placements
from engine.deciders.state import Cause, Departure, ShardState, Watch
from engine.objects import clusters as manifests
from engine.objects import priorities
from engine.placement import fleet
from events import keys, topics

_NO_EXECUTE: Final = "NoExecute"
_SECOND_MS: Final = 1_000


def touch(shard: ShardState, indexes: Indexes, placements: Placements, changed: facts.Changed) -> None:
    """Makes the keys wait that a change concerns."""
    cause = Cause(f"{changed.topic}/0/{changed.offset}", changed.story, changed.trace, changed.at_ms)
    match changed.change:
        case facts.ClusterChanged() as change:
            for key in _of_cluster(change, indexes, placements):
                intake.touch_by(shard, key, states.CLUSTER, cause)
            _touch_watches(shard, indexes, change, cause)
            _touch_departure(shard, change, cause)
        case facts.RoomGrew():
            _touch_blocked(shard, indexes, cause)
        case facts.PolicyChanged() as change:
            for key in _of_policy(change, indexes):
                intake.touch_by(shard, key, states.POLICY, cause)
        case facts.PriorityClassChanged(name=name):
            _touch_ranked(shard, indexes, name, cause)
        case facts.HealthReported() | facts.TaintPolicyChanged() as change:
            _touch_watches(shard, indexes, change, cause)
        case _:
            _touch_read(shard, indexes, changed.change, cause)


def _touch_read(shard: ShardState, indexes: Indexes, change: facts.Change, cause: Cause) -> None:
    """What is read in another way: by an interpreter, by an override policy."""
    match change:
        case facts.InterpreterChanged(api_version=api_version, kind=kind):
            for key in indexes.templates.of_kind(api_version, kind):
                intake.touch_by(shard, key, states.SPEC, cause)
        case facts.OverrideChanged():
            for key in _overridden(change, shard, indexes):
                intake.touch_by(shard, key, states.OVERRIDE, cause)
        case _:
            return


def _touch_ranked(shard: ShardState, indexes: Indexes, name: str, cause: Cause) -> None:
    """The class itself, whose template may say something else by now, and what waits for a class."""
    home = keys.binding_key(priorities.KIND, "", name)
    if keys.shard_of(home) == shard.shard:
        intake.touch_by(shard, home, states.PRIORITY, cause)
    for key in indexes.unranked:
        intake.touch_by(shard, key, states.PRIORITY, cause)


def _touch_blocked(shard: ShardState, indexes: Indexes, cause: Cause) -> None:
    """Who is ready waits for its time only: further news change nothing."""
    for key in indexes.blocked:
        binding = shard.bindings[key]
        if not binding.ready_to_retry:
            binding.ready_to_retry = True
            intake.touch_by(shard, key, states.ROOM, cause)


def _of_cluster(change: facts.ClusterChanged, indexes: Indexes, placements: Placements) -> set[str]:
    """What runs there, what could, and what is blocked."""
    found = set(indexes.by_cluster.get(change.name, ())) | indexes.blocked
    versions = [_alone(manifest) for manifest in (change.old, change.new) if manifest]
    for (digest, affinity_name), group in indexes.by_group.items():
        affinity = placements.affinity(digest, affinity_name)
        if any(version.matches(affinity, change.name) for version in versions):
            found |= group
    return found


def _alone(manifest: manifests.ClusterManifest) -> fleet.Fleet:
    alone = fleet.Fleet()
    alone.put(manifest)
    return alone


def _of_policy(change: facts.PolicyChanged, indexes: Indexes) -> set[str]:
    """What it has claimed, and every template that it selects or selected."""
    selected = (indexes.templates.selected(selection) for selection in change.selections)
    return set(indexes.by_policy.get(change.policy, ())).union(*selected)


def _overridden(change: facts.OverrideChanged, shard: ShardState, indexes: Indexes) -> set[str]:
    """What the policy selects or selected, as far as it is placed."""
    selected = set[str]().union(*map(indexes.templates.selected, change.selections))
    return {key for key in selected if shard.bindings[key].claim is not None or key in shard.needs}


def _touch_watches(
    shard: ShardState,
    indexes: Indexes,
    change: facts.ClusterChanged | facts.HealthReported | facts.TaintPolicyChanged,
    cause: Cause,
) -> None:
    """A cluster that is another one, or meets other policies, is judged again; one that left is watched no more."""
    match change:
        case facts.ClusterChanged(name=name, new=new):
            key = keys.cluster_key(name)
            if new is None:
                shard.watches.pop(key, None)
                indexes.troubled.discard(key)
            elif key in shard.watches:
                intake.touch_by(shard, key, states.CLUSTER, cause)
            if change.old is None or new is None:
                indexes.crowd = cause
            elif _evicting(change.old) != _evicting(new):
                indexes.emptied = cause
        case facts.HealthReported():
            _hear(shard, indexes, change, cause)
        case facts.TaintPolicyChanged():
            for key in shard.watches:
                intake.touch_by(shard, key, states.CLUSTER, cause)


def _touch_departure(shard: ShardState, change: facts.ClusterChanged, cause: Cause) -> None:
    """A cluster that is to leave concerns each shard, whether it has anything there or not."""
    name = change.name
    if change.new is None:
        is_news = name in shard.departures or name in shard.removals
        shard.departures.pop(name, None)
        shard.removals.pop(name, None)
    else:
        is_news = change.new.metadata.deletion_timestamp is not None and name not in shard.departures
        if is_news:
            shard.departures[name] = Departure(cause)
    if is_news:
        intake.touch_by(shard, keys.cluster_key(name), states.CLUSTER, cause)


def _hear(shard: ShardState, indexes: Indexes, change: facts.HealthReported, cause: Cause) -> None:
    """A report of the shard's own cluster, or one that may change how many others are in trouble at once.

    A report that brings no news makes nothing wait: most of them only say that somebody is alive.
    """
    key = keys.cluster_key(change.name)
    if keys.shard_of(change.name) == shard.shard:
        health = change.health
        watch = shard.watches.get(key)
        if watch is None:
            watch = shard.watches[key] = Watch(
                key, change.name, health.status, health.since_ms, health.heard_ms
            )
        if watch.status != health.status:
            watch.known_ms = 0
        watch.status, watch.since_ms, watch.heard_ms = health.status, health.since_ms, health.heard_ms
        indexes.hear(watch)
        awaited = health.heard_ms and health.grace_seconds
        watch.grace_ms = health.grace_seconds * _SECOND_MS
        watch.silent_ms = max(health.heard_ms, shard.began_ms) + watch.grace_ms if awaited else 0
    if change.is_news:
        if key in shard.watches or change.name in shard.departures:
            intake.touch_by(shard, key, states.CLUSTER, cause)
        indexes.crowd = cause


def touch_troubled(
    shard: ShardState, indexes: Indexes, known: facts.Facts, *, are_all_told: bool = False
) -> None:
    """Where too many clusters are in trouble, or no longer, all of these are judged again; else the next one only.

    So each report costs the same, however many are in trouble. The others look at their place when it may be their
    turn. It is told once for all inputs of a step, and counts as told by the newest input that changed these numbers,
    if nothing newer touched the cluster. ``are_all_told`` is how former releases did it.
    """
    cause = indexes.crowd if are_all_told else indexes.crowd or indexes.emptied
    indexes.crowd = indexes.emptied = None
    if cause is None:
        return
    is_crowd = watching.is_crowd(known)
    concerned = indexes.troubled
    if is_crowd == shard.is_crowd and not are_all_told:
        concerned = concerned & {keys.cluster_key(watching.first(known))}
    shard.is_crowd = is_crowd
    for key in concerned:
        touched = shard.touched.get(key)
        is_newer = touched is not None and _place(touched.cause) > _place(cause)
        intake.touch_by(shard, key, states.CLUSTER, touched.cause if touched and is_newer else cause)


def _evicting(cluster: manifests.ClusterManifest) -> tuple[manifests.Taint, ...]:
    """What empties a cluster."""
    return tuple(taint for taint in cluster.spec.taints if taint.effect == _NO_EXECUTE)


def _place(cause: Cause) -> tuple[bool, int]:
    """Where a fact stands in the order in which they are folded: clusters, then policies."""
    topic, _, offset = cause.position.split("/")
    return topic != topics.CLUSTERS, int(offset)
