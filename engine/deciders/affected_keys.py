"""Find the keys of a shard that must be decided again because a fact changed.

The keys depend only on the change (old and new value) and on the shard's own state. Therefore the order of the two
fact topics does not matter, nor how many facts are folded at a time: a verification may fold them in another order
than the owner of the shard did.
"""

from typing import Final

from engine.deciders import fact_changes, quota_ledgers, waiting_keys
from engine.deciders import state as states
from engine.deciders.deferred_changes import DeferredChanges
from engine.deciders.indexes import Indexes
from engine.deciders.placement_cache import Placements
from engine.deciders.state import Cause, Departure, ShardState, Watch
from engine.kubeapi.values.taints import Effect
from engine.objects import clusters as manifests
from engine.objects import priorities
from engine.placement import fleet
from events import keys, times

_FORGOTTEN: Final = "forgotten"
"""Replaces the digest of the last status, so that the next status counts as changed: no digest equals this text."""


def queue_affected(
    shard: ShardState,
    indexes: Indexes,
    deferred: DeferredChanges,
    placements: Placements,
    changed: fact_changes.Changed,
) -> None:
    """Queue the keys that a change affects for a decision, or defer the change to the next step."""
    cause = changed.cause
    match changed.change:
        case fact_changes.ClusterChanged() as change:
            for key in _cluster_keys(change, indexes, placements):
                waiting_keys.enqueue_by_fact(shard, key, states.CLUSTER, cause)
            _queue_watches(shard, indexes, deferred, change, cause)
            _queue_departure(shard, change, cause)
            deferred.changed_cluster = waiting_keys.newest(deferred.changed_cluster, cause)
        case fact_changes.CapacityGrew():
            _queue_blocked(shard, indexes, cause)
        case fact_changes.PolicyChanged() as change:
            for key in _policy_keys(change, indexes):
                waiting_keys.enqueue_by_fact(shard, key, states.POLICY, cause)
        case fact_changes.QuotaChanged(key=key, is_removed=is_removed):
            if is_removed:
                _forget_status(shard, key)
            deferred.quotas[key] = waiting_keys.newest(deferred.quotas.get(key), cause)
        case fact_changes.OverallChanged() as change:
            flags = states.QUOTA if change.is_switch else 0
            quota_ledgers.forget_shown(shard, keys.quota_key(change.namespace), change.removed)
            deferred.add_limits(shard, indexes, change.namespace, flags, cause)
        case fact_changes.PriorityClassChanged(name=name):
            _queue_priority_class(shard, indexes, name, cause)
        case fact_changes.TaintPolicyChanged():
            deferred.taint_policies = cause
        case fact_changes.HealthReported() | fact_changes.ConditionsChanged() as change:
            _queue_watches(shard, indexes, deferred, change, cause)
        case _:
            _queue_readers(shard, indexes, changed.change, cause)


def _forget_status(shard: ShardState, key: str) -> None:
    """Let the next step emit the aggregated status of an assigned ResourceQuota, even if it has not changed.

    The FederatedResourceQuota may be deleted and created again before that step; the new one has no status yet.
    """
    binding = shard.bindings.get(key)
    if binding is not None and binding.declared is None and binding.shown:
        binding.shown = _FORGOTTEN


def _queue_readers(shard: ShardState, indexes: Indexes, change: fact_changes.Change, cause: Cause) -> None:
    """Queue the templates whose interpreter or override policy changed."""
    match change:
        case fact_changes.InterpreterChanged(api_version=api_version, kind=kind):
            for key in indexes.templates.of_kind(api_version, kind):
                waiting_keys.enqueue_by_fact(shard, key, states.SPEC, cause)
        case fact_changes.OverrideChanged():
            for key in _override_keys(change, shard, indexes):
                waiting_keys.enqueue_by_fact(shard, key, states.OVERRIDE, cause)
        case _:
            return


def _queue_priority_class(shard: ShardState, indexes: Indexes, name: str, cause: Cause) -> None:
    """Queue bindings that wait for a PriorityClass, and the template of the class if this shard owns it.

    If that template differs from the published fact, the shard then publishes the class again.
    """
    class_key = keys.binding_key(priorities.KIND, "", name)
    if keys.shard_of(class_key) == shard.shard:
        waiting_keys.enqueue_by_fact(shard, class_key, states.PRIORITY, cause)
    for key in indexes.unranked:
        waiting_keys.enqueue_by_fact(shard, key, states.PRIORITY, cause)


def _queue_blocked(shard: ShardState, indexes: Indexes, cause: Cause) -> None:
    """Mark blocked bindings as ready to retry, and queue the newly marked ones.

    Clusters report their capacity all the time, so a report must not visit bindings that are marked already.
    """
    for key in indexes.unready:
        shard.bindings[key].ready_to_retry = True
        waiting_keys.enqueue_by_fact(shard, key, states.CAPACITY, cause)
    indexes.unready.clear()


def _cluster_keys(change: fact_changes.ClusterChanged, indexes: Indexes, placements: Placements) -> set[str]:
    """Return the keys of bindings that are blocked or in the cluster, or whose affinity selects or selected it."""
    touched = set(indexes.by_cluster.get(change.name, ())) | indexes.blocked
    if not indexes.by_group:
        return touched
    # Create these fleets only if needed: each takes 0.1 ms, and every shard handles every change of a cluster.
    versions = [_fleet_of_one(manifest) for manifest in (change.old, change.new) if manifest]
    for (digest, affinity_name), group in indexes.by_group.items():
        affinity = placements.affinity(digest, affinity_name)
        if any(version.matches(affinity, change.name) for version in versions):
            touched.update(group)
    return touched


def _fleet_of_one(manifest: manifests.ClusterManifest) -> fleet.Fleet:
    single = fleet.Fleet()
    single.put(manifest)
    return single


def _policy_keys(change: fact_changes.PolicyChanged, indexes: Indexes) -> set[str]:
    """Return the bindings that the policy has claimed and the templates that it selects or selected."""
    selected = (indexes.templates.selected(selection) for selection in change.selections)
    return set(indexes.by_policy.get(change.policy, ())).union(*selected)


def _override_keys(change: fact_changes.OverrideChanged, shard: ShardState, indexes: Indexes) -> set[str]:
    """Return the keys of templates that an override policy selects now or selected before the change.

    Templates that no policy claims and no binding needs are left out: their works stay as they are.
    """
    selected = set[str]().union(*map(indexes.templates.selected, change.selections))
    return {key for key in selected if shard.bindings[key].claim is not None or key in shard.needs}


def _queue_watches(
    shard: ShardState,
    indexes: Indexes,
    deferred: DeferredChanges,
    change: fact_changes.ClusterChanged | fact_changes.HealthReported | fact_changes.ConditionsChanged,
    cause: Cause,
) -> None:
    """Queue the health watch of a cluster that changed; delete the watch of a cluster that left."""
    match change:
        case fact_changes.ClusterChanged(name=name, new=new):
            key = keys.cluster_key(name)
            if new is None:
                shard.watches.pop(key, None)
                indexes.not_ready_clusters.discard(key)
            elif key in shard.watches:
                waiting_keys.enqueue_by_fact(shard, key, states.CLUSTER, cause)
            if change.old is None or new is None:
                deferred.crowd = cause
            elif _evicting_taints(change.old) != _evicting_taints(new):
                deferred.emptied = cause
        case fact_changes.HealthReported():
            _apply_health_report(shard, indexes, deferred, change, cause)
        case fact_changes.ConditionsChanged(name=name):
            key = keys.cluster_key(name)
            if keys.shard_of(name) == shard.shard:
                shard.watches.setdefault(key, Watch(key, name, "", 0, 0))
                waiting_keys.enqueue_by_fact(shard, key, states.CLUSTER, cause)
            # Taint policies read the conditions, so another cluster may be the next one to evict all workloads from.
            deferred.emptied = cause


def _queue_departure(shard: ShardState, change: fact_changes.ClusterChanged, cause: Cause) -> None:
    """Start or end tracking of a leaving cluster, even if this shard has no works there."""
    name = change.name
    if change.new is None:
        is_change = name in shard.departures or name in shard.removals
        shard.departures.pop(name, None)
        shard.removals.pop(name, None)
    else:
        is_change = change.new.metadata.deletion_timestamp is not None and name not in shard.departures
        if is_change:
            shard.departures[name] = Departure(cause)
    if is_change:
        waiting_keys.enqueue_by_fact(shard, keys.cluster_key(name), states.CLUSTER, cause)


def _apply_health_report(
    shard: ShardState,
    indexes: Indexes,
    deferred: DeferredChanges,
    change: fact_changes.HealthReported,
    cause: Cause,
) -> None:
    """Update the watch of a cluster that this shard owns; queue keys only if the health status changed.

    Most reports are heartbeats that change nothing; queueing a key for each would cost a step per report.
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
        indexes.health_reported(watch)
        awaited = health.heard_ms and health.grace_seconds
        watch.grace_ms = health.grace_seconds * times.SECOND_MS
        watch.silent_ms = max(health.heard_ms, shard.began_ms) + watch.grace_ms if awaited else 0
    if change.is_change:
        if key in shard.watches or change.name in shard.departures:
            waiting_keys.enqueue_by_fact(shard, key, states.CLUSTER, cause)
        deferred.crowd = cause


def _evicting_taints(cluster: manifests.ClusterManifest) -> tuple[manifests.Taint, ...]:
    """Return the NoExecute taints of a cluster."""
    return tuple(taint for taint in cluster.spec.taints if taint.effect == Effect.NO_EXECUTE)
