"""Find the keys of a shard that a changed fact touches.

The keys depend only on the change (old and new value) and on the shard's own state. Therefore the order of the two
fact topics does not matter, nor how many facts are folded at a time: a verification may fold them in another order
than the owner of the shard did.
"""

from typing import Final

from engine.deciders import cluster_health, fact_changes, facts, waiting_keys
from engine.deciders import state as states
from engine.deciders.indexes import Indexes
from engine.deciders.placement_cache import Placements
from engine.deciders.state import Binding, Cause, Departure, ShardState, Watch
from engine.objects import clusters as manifests
from engine.objects import priorities
from engine.placement import fleet
from events import keys, times, topics, vocabulary


def touch(shard: ShardState, indexes: Indexes, placements: Placements, changed: fact_changes.Changed) -> None:
    """Queue the keys that a change concerns."""
    cause = changed.cause
    match changed.change:
        case fact_changes.ClusterChanged() as change:
            for key in _cluster_keys(change, indexes, placements):
                _touch(shard, key, states.CLUSTER, cause)
            _touch_watches(shard, indexes, change, cause)
            _touch_departure(shard, change, cause)
            indexes.refitted = _newest(indexes.refitted, cause)
        case fact_changes.CapacityGrew():
            _touch_blocked(shard, indexes, cause)
        case fact_changes.PolicyChanged() as change:
            for key in _policy_keys(change, indexes):
                _touch(shard, key, states.POLICY, cause)
        case fact_changes.QuotaChanged(key=key):
            indexes.quotas[key] = _newest(indexes.quotas.get(key), cause)
        case fact_changes.OverallChanged() as change:
            defer_limits(shard, indexes, change.namespace, states.QUOTA if change.is_switch else 0, cause)
        case fact_changes.PriorityClassChanged(name=name):
            _touch_ranked(shard, indexes, name, cause)
        case fact_changes.TaintPolicyChanged():
            indexes.taint_policies = cause
        case fact_changes.HealthReported() | fact_changes.ConditionsChanged() as change:
            _touch_watches(shard, indexes, change, cause)
        case _:
            _touch_readers(shard, indexes, changed.change, cause)


def _touch(shard: ShardState, key: str, flags: int, cause: Cause) -> None:
    """Queue a key that a fact touches; the newest of several facts is the cause."""
    touched = shard.touched.get(key)
    waiting_keys.touch(shard, key, flags, _newest(touched.cause if touched else None, cause))


def _newest(previous: Cause | None, cause: Cause) -> Cause:
    return previous if previous and _fold_order(previous) > _fold_order(cause) else cause


def _touch_readers(shard: ShardState, indexes: Indexes, change: fact_changes.Change, cause: Cause) -> None:
    """Touch templates whose interpreter or override policy changed."""
    match change:
        case fact_changes.InterpreterChanged(api_version=api_version, kind=kind):
            for key in indexes.templates.of_kind(api_version, kind):
                _touch(shard, key, states.SPEC, cause)
        case fact_changes.OverrideChanged():
            for key in _override_keys(change, shard, indexes):
                _touch(shard, key, states.OVERRIDE, cause)
        case _:
            return


def _touch_ranked(shard: ShardState, indexes: Indexes, name: str, cause: Cause) -> None:
    """Touch bindings that wait for a PriorityClass, and the class's template if this shard owns it.

    If the template differs from the changed fact, the shard publishes the class again.
    """
    class_key = keys.binding_key(priorities.KIND, "", name)
    if keys.shard_of(class_key) == shard.shard:
        _touch(shard, class_key, states.PRIORITY, cause)
    for key in indexes.unranked:
        _touch(shard, key, states.PRIORITY, cause)


def _touch_blocked(shard: ShardState, indexes: Indexes, cause: Cause) -> None:
    """Mark blocked bindings as ready to retry, and touch those that were not marked before.

    Clusters report their capacity all the time, so a report must not cost a walk over the bindings that it marks again.
    """
    for key in indexes.unready:
        shard.bindings[key].ready_to_retry = True
        _touch(shard, key, states.CAPACITY, cause)
    indexes.unready.clear()


def _cluster_keys(change: fact_changes.ClusterChanged, indexes: Indexes, placements: Placements) -> set[str]:
    """Return all blocked bindings, and those that are in the cluster or whose affinity selects or selected it."""
    touched = set(indexes.by_cluster.get(change.name, ())) | indexes.blocked
    versions = [_fleet_of_one(manifest) for manifest in (change.old, change.new) if manifest]
    for (digest, affinity_name), group in indexes.by_group.items():
        affinity = placements.affinity(digest, affinity_name)
        if any(version.matches(affinity, change.name) for version in versions):
            touched |= group
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
    """Return the templates that the override policy selects or selected, if a policy claims or a binding needs them."""
    selected = set[str]().union(*map(indexes.templates.selected, change.selections))
    return {key for key in selected if shard.bindings[key].claim is not None or key in shard.needs}


def _touch_watches(
    shard: ShardState,
    indexes: Indexes,
    change: fact_changes.ClusterChanged | fact_changes.HealthReported | fact_changes.ConditionsChanged,
    cause: Cause,
) -> None:
    """Touch the watch of a cluster that changed; delete that of a cluster that left."""
    match change:
        case fact_changes.ClusterChanged(name=name, new=new):
            key = keys.cluster_key(name)
            if new is None:
                shard.watches.pop(key, None)
                indexes.troubled.discard(key)
            elif key in shard.watches:
                _touch(shard, key, states.CLUSTER, cause)
            if change.old is None or new is None:
                indexes.crowd = cause
            elif _evicting_taints(change.old) != _evicting_taints(new):
                indexes.emptied = cause
        case fact_changes.HealthReported():
            _apply_health_report(shard, indexes, change, cause)
        case fact_changes.ConditionsChanged(name=name):
            key = keys.cluster_key(name)
            if keys.shard_of(name) == shard.shard:
                shard.watches.setdefault(key, Watch(key, name, "", 0, 0))
                _touch(shard, key, states.CLUSTER, cause)
            # Conditions may decide whether a cluster is to be emptied, and so which cluster is emptied next.
            indexes.emptied = cause


def _touch_departure(shard: ShardState, change: fact_changes.ClusterChanged, cause: Cause) -> None:
    """Start or end the departure of a cluster; each shard does so, even without works there."""
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
        _touch(shard, keys.cluster_key(name), states.CLUSTER, cause)


def _apply_health_report(
    shard: ShardState, indexes: Indexes, change: fact_changes.HealthReported, cause: Cause
) -> None:
    """Update the watch of a cluster that this shard owns; touch keys only if the health status changed.

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
            _touch(shard, key, states.CLUSTER, cause)
        indexes.crowd = cause


def defer_limits(shard: ShardState, indexes: Indexes, namespace: str, flags: int, cause: Cause) -> None:
    """Note a change of a namespace's overall quotas if it concerns this shard; the next step touches the keys.

    ``flags`` are those for the namespace's bindings; 0 if only the ledger of the quotas is touched.
    """
    is_owner = keys.quota_key(namespace) in shard.ledgers
    has_bindings = any(True for _ in indexes.templates.in_namespace(namespace))
    if is_owner or (flags and has_bindings):
        _, before = indexes.limited.get(namespace, (cause, 0))
        indexes.limited[namespace] = cause, flags | before


def touch_watched(shard: ShardState, indexes: Indexes) -> None:
    """Touch all watches if ClusterTaintPolicies changed, also those of clusters that joined after the change."""
    cause, indexes.taint_policies = indexes.taint_policies, None
    if cause is not None:
        for key in shard.watches:
            _touch(shard, key, states.CLUSTER, cause)


def touch_unfit(shard: ShardState, indexes: Indexes, placements: Placements) -> None:
    """Touch bindings with affinity groups that fit in no cluster if a cluster changed; ``by_group`` has only one group.

    Karmada does so too, as their ``schedulerObservedGeneration`` is out of date.
    """
    cause, indexes.refitted = indexes.refitted, None
    if cause is None:
        return
    for key in indexes.unfit:
        claim = shard.bindings[key].claim
        if claim is not None and placements.get(claim.placement).cluster_affinities:
            _touch(shard, key, states.CLUSTER, cause)


def touch_limited(shard: ShardState, indexes: Indexes) -> None:
    """Queue the ledgers of changed overall quotas, and the bindings of namespaces that got or lost such quotas."""
    for namespace, (cause, flags) in indexes.limited.items():
        if keys.quota_key(namespace) in shard.ledgers:
            waiting_keys.touch(shard, keys.quota_key(namespace), states.QUOTA, cause)
        if flags:
            for key in indexes.templates.in_namespace(namespace):
                if shard.bindings[key].declared is not None:
                    waiting_keys.touch(shard, key, flags, cause)
    indexes.limited.clear()


def defer_groups(shard: ShardState, indexes: Indexes, placements: Placements, cause: Cause) -> None:
    """Note the bindings without a ``Seat`` that may belong to a workload group; the next step touches them."""
    for (digest, _affinity), group in indexes.by_group.items():
        if placements.get(digest).workload_affinity is not None:
            indexes.grouped |= {key: cause for key in sorted(group) if key not in shard.seats}


def touch_grouped(shard: ShardState, indexes: Indexes) -> None:
    """Touch the bindings that ``defer_groups`` noted."""
    for key, cause in indexes.grouped.items():
        waiting_keys.touch(shard, key, states.TERM, cause)
    indexes.grouped.clear()


def touch_quotas(shard: ShardState, indexes: Indexes) -> None:
    """Touch the ResourceQuotas whose assignments to clusters changed."""
    for key, cause in indexes.quotas.items():
        shard.bindings.setdefault(key, Binding(key=key))
        waiting_keys.touch(shard, key, states.OVERRIDE, cause)
    indexes.quotas.clear()


def touch_troubled(
    shard: ShardState, indexes: Indexes, cluster_facts: facts.Facts, *, touches_all: bool = False
) -> None:
    """Touch clusters that are not ready: all if ``shard.is_crowd`` changes, otherwise only the next one to empty.

    Called once per step, so the cost of a report does not depend on how many clusters are not ready; timers touch the
    others. The recorded cause is ``indexes.crowd`` or ``indexes.emptied``, unless a newer input touches the cluster.
    ``touches_all``: touch all in any case, to replay steps of releases that did so.
    """
    cause = indexes.crowd if touches_all else indexes.crowd or indexes.emptied
    indexes.crowd = indexes.emptied = None
    if cause is None:
        return
    is_crowd = cluster_health.is_crowd(cluster_facts)
    concerned = indexes.troubled
    if is_crowd == shard.is_crowd and not touches_all:
        concerned = concerned & {keys.cluster_key(cluster_health.next_to_empty(cluster_facts))}
    shard.is_crowd = is_crowd
    for key in concerned:
        _touch(shard, key, states.CLUSTER, cause)


def _evicting_taints(cluster: manifests.ClusterManifest) -> tuple[manifests.Taint, ...]:
    """Return the NoExecute taints of a cluster."""
    return tuple(taint for taint in cluster.spec.taints if taint.effect == vocabulary.NO_EXECUTE)


def _fold_order(cause: Cause) -> tuple[int, int]:
    """Return the sort key of an input in fold order: clusters before policies before own inputs, then by offset."""
    topic, _, offset = cause.position.split("/")
    return _FOLD_ORDER.get(topic, len(_FOLD_ORDER)), int(offset)


_FOLD_ORDER: Final = {topic: rank for rank, topic in enumerate(topics.FACT_TOPICS)}
