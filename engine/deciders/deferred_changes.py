"""Changed facts whose keys are queued once per step, not once per change.

Reports and quotas change often, and finding their keys may cost a walk over many clusters or bindings.
"""

from engine.deciders import cluster_health, waiting_keys
from engine.deciders import state as states
from engine.deciders.facts import Facts
from engine.deciders.indexes import Indexes
from engine.deciders.placement_cache import Placements
from engine.deciders.state import Binding, Cause, ShardState
from events import keys


class DeferredChanges:
    """The deferred changes, each with the newest fact as its cause.

    - ``crowd``: the share of clusters that are not ready may have changed.
    - ``emptied``: the next cluster from which all workloads are evicted may have changed.
    - ``taint_policies``: a ClusterTaintPolicy changed.
    - ``quotas``: keys of ResourceQuotas whose assignments to clusters changed.
    - ``changed_cluster``: a cluster changed, so a binding that fits in no cluster may fit there now.
    - ``changed_overall_quotas``: the namespaces of changed overall quotas, with the flags for their bindings (0: do not
      queue them).
    - ``new_group_members``: bindings that may belong to a workload group whose owner shard does not know them yet.

    A step clears them. Snapshots are taken directly after a step, so they contain none of them.
    """

    def __init__(self) -> None:
        self.crowd: Cause | None = None
        self.emptied: Cause | None = None
        self.taint_policies: Cause | None = None
        self.quotas: dict[str, Cause] = {}
        self.changed_cluster: Cause | None = None
        self.changed_overall_quotas: dict[str, tuple[Cause, int]] = {}
        self.new_group_members: dict[str, Cause] = {}

    def are_due(self, shard: ShardState, indexes: Indexes) -> bool:
        """Whether a step is due because of the deferred changes."""
        return bool(
            ((self.crowd or self.emptied) and indexes.not_ready_clusters)
            or (self.taint_policies and shard.watches)
            or (self.changed_cluster and indexes.unfit)
            or self.quotas
            or self.changed_overall_quotas
            or self.new_group_members
        )

    def add_limits(
        self, shard: ShardState, indexes: Indexes, namespace: str, flags: int, cause: Cause
    ) -> None:
        """Add a change of a namespace's overall quotas if the shard owns these quotas or affected bindings.

        ``flags`` are those with which the namespace's bindings are queued; with 0 only the quotas' ledger is queued.
        """
        is_owner = keys.quota_key(namespace) in shard.ledgers
        has_bindings = any(True for _ in indexes.templates.in_namespace(namespace))
        if is_owner or (flags and has_bindings):
            _, before = self.changed_overall_quotas.get(namespace, (cause, 0))
            self.changed_overall_quotas[namespace] = cause, flags | before

    def add_groups(self, shard: ShardState, indexes: Indexes, placements: Placements, cause: Cause) -> None:
        """Add the bindings without a ``GroupMember`` that may belong to a workload group."""
        for (digest, _affinity), group in indexes.by_group.items():
            if placements.get(digest).workload_affinity is not None:
                self.new_group_members |= {key: cause for key in sorted(group) if key not in shard.seats}

    def queue_watches(self, shard: ShardState) -> None:
        """Queue all watches if taint policies changed, also those of clusters that joined after the change."""
        cause, self.taint_policies = self.taint_policies, None
        if cause is not None:
            for key in shard.watches:
                waiting_keys.enqueue_by_fact(shard, key, states.CLUSTER, cause)

    def queue_not_ready(
        self, shard: ShardState, indexes: Indexes, facts: Facts, *, touches_all: bool = False
    ) -> None:
        """Queue clusters that are not ready: all if ``shard.is_crowd`` changes, otherwise only the next one to empty.

        So the cost of a report does not depend on how many clusters are not ready; timers queue the other ones. If a
        newer input has queued a cluster already, that input remains the cause. ``touches_all``: always queue
        all clusters that are not ready, to replay steps of releases that did so.
        """
        cause = self.crowd if touches_all else self.crowd or self.emptied
        self.crowd = self.emptied = None
        if cause is None:
            return
        too_many_not_ready = cluster_health.too_many_not_ready(facts)
        concerned = indexes.not_ready_clusters
        if too_many_not_ready == shard.is_crowd and not touches_all:
            concerned = concerned & {keys.cluster_key(cluster_health.next_to_evict(facts))}
        shard.is_crowd = too_many_not_ready
        for key in concerned:
            waiting_keys.enqueue_by_fact(shard, key, states.CLUSTER, cause)

    def queue_bindings(self, shard: ShardState, indexes: Indexes, placements: Placements) -> None:
        """Queue the bindings that deferred changes of clusters, quotas or workload groups affect."""
        self._queue_unfit(shard, indexes, placements)
        for key, cause in self.quotas.items():
            shard.bindings.setdefault(key, Binding(key=key))
            waiting_keys.enqueue(shard, key, states.OVERRIDE, cause)
        self.quotas.clear()
        self._queue_overall_quotas(shard, indexes)
        for key, cause in self.new_group_members.items():
            waiting_keys.enqueue(shard, key, states.TERM, cause)
        self.new_group_members.clear()

    def _queue_unfit(self, shard: ShardState, indexes: Indexes, placements: Placements) -> None:
        """If a cluster changed, queue the bindings that have affinity groups and fit in no cluster.

        ``Indexes.by_group`` has only one affinity group of a binding, but the cluster may match another one. Karmada
        also schedules these bindings, because their ``schedulerObservedGeneration`` is out of date.
        """
        cause, self.changed_cluster = self.changed_cluster, None
        if cause is None:
            return
        for key in indexes.unfit:
            claim = shard.bindings[key].claim
            if claim is not None and placements.get(claim.placement).cluster_affinities:
                waiting_keys.enqueue_by_fact(shard, key, states.CLUSTER, cause)

    def _queue_overall_quotas(self, shard: ShardState, indexes: Indexes) -> None:
        """Queue the ledgers of changed overall quotas, and the bindings of namespaces that got or lost such quotas."""
        for namespace, (cause, flags) in self.changed_overall_quotas.items():
            if keys.quota_key(namespace) in shard.ledgers:
                waiting_keys.enqueue(shard, keys.quota_key(namespace), states.QUOTA, cause)
            if flags:
                for key in indexes.templates.in_namespace(namespace):
                    if shard.bindings[key].declared is not None:
                        waiting_keys.enqueue(shard, key, flags, cause)
        self.changed_overall_quotas.clear()
