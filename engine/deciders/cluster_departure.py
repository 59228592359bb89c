"""Leaving clusters: each shard reports to the cluster's owner shard when it has no work left there.

Nothing is scheduled to a leaving cluster (``placement``) and its works are removed (``dispatch``). A shard
waits until the cluster confirms the removals. As in Karmada, it does not wait for a cluster in Push mode that is not
ready, since nothing would execute the removals there. The agent of a cluster in Pull mode may return, so the shard
waits until a user removes the cluster with ``cluster-left``.
"""

from engine.deciders.facts import Facts
from engine.deciders.indexes import Indexes
from engine.deciders.state import ShardState
from engine.deciders.step_outputs import Outputs, View
from engine.domain.clusters import READY
from events import cluster_decisions, clusters, enums, links, topics


def decide(indexes: Indexes, view: View) -> Outputs[None]:
    """Report leaving clusters without works of this shard; finish the departures that all shards have reported.

    Call it at the end of a step, before ``settle``.
    """
    shard = view.shard
    for name in sorted(shard.departures):
        departure = shard.departures[name]
        uid = view.facts.uid_of(name)
        yield departure.cause
        if not departure.is_told and _is_clear(name, shard, view.facts, indexes):
            # ``is_told`` is set in ``settle``, not here, because a replay calls only ``settle``.
            yield links.ClusterCleared(cluster=name, uid=uid, shard=shard.shard)
        cleared = sum(cleared_uid == uid for cleared_uid in departure.cleared.values())
        if cleared == topics.SHARDS and not departure.is_decided:
            yield cluster_decisions.ClusterVacated(name=name, uid=uid)
            yield clusters.ClusterLeft(name=name, uid=uid)


def settle(shard: ShardState, facts: Facts, indexes: Indexes) -> None:
    """End a step: mark clusters without works as reported; forget removals in clusters that are no longer members."""
    for name, departure in shard.departures.items():
        departure.is_told = departure.is_told or _is_clear(name, shard, facts, indexes)
    for name in [cluster for cluster in shard.removals if facts.fleet.get(cluster) is None]:
        del shard.removals[name]


def _is_clear(name: str, shard: ShardState, facts: Facts, indexes: Indexes) -> bool:
    """Whether the shard has no work in the cluster and waits for no removal there."""
    if any(name in shard.bindings[key].works for key in indexes.by_cluster.get(name, ())):
        return False
    return name not in shard.removals or not _is_awaited(name, facts)


def _is_awaited(name: str, facts: Facts) -> bool:
    cluster = facts.members.get(name)
    if cluster is None:
        return False
    is_ready = cluster.health is not None and cluster.health.status == READY
    return is_ready or cluster.spec.sync_mode == enums.SyncMode.PULL
