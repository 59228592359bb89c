"""Clusters that are leaving: each shard tells their home when it has nothing left there; the home decides the end.

Nothing is placed on a cluster that is leaving (see ``placement``), and what it was given goes (see ``dispatch``). A
shard waits until the removals of its works are reported as carried out. That is not to be had where nobody carries
them out: of a cluster that is not ready, and gets its works from outside, nobody waits for it, as in the reference.
An agent in the cluster may come back, and is waited for; people end that by letting the cluster go at once.
"""

from typing import Final

from engine.deciders import emitting
from engine.deciders.facts import Facts
from engine.deciders.indexes import Indexes
from engine.deciders.state import ShardState
from events import clusters, decisions, links, topics

_READY: Final = "True"
_PULL: Final = "Pull"


def decide(facts: Facts, indexes: Indexes, emit: emitting.Emitter) -> None:
    """Tells the homes of which clusters nothing is left here, and which of its own have left, at the end of a step."""
    shard = emit.shard
    for name in sorted(shard.departures):
        departure = shard.departures[name]
        uid = facts.uid_of(name)
        emit.because(departure.cause)
        if not departure.is_told and _is_clear(name, shard, facts, indexes):
            emit.send(links.ClusterCleared(cluster=name, uid=uid, shard=shard.shard), name, name)
        cleared = sum(each == uid for each in departure.cleared.values())
        if cleared == topics.SHARDS and not departure.is_decided:
            emit.decide(decisions.ClusterVacated(name=name, uid=uid), name)
            emit.fact(clusters.ClusterLeft(name=name, uid=uid), name)


def settle(shard: ShardState, facts: Facts, indexes: Indexes) -> None:
    """Ends a step: what was told is not told again, and of clusters that are no members nothing is awaited."""
    for name, departure in shard.departures.items():
        departure.is_told = departure.is_told or _is_clear(name, shard, facts, indexes)
    for name in [each for each in shard.removals if facts.fleet.get(each) is None]:
        del shard.removals[name]


def _is_clear(name: str, shard: ShardState, facts: Facts, indexes: Indexes) -> bool:
    """Whether the shard has no work there, and what it removed is gone, or nobody is there to say so."""
    if any(name in shard.bindings[key].works for key in indexes.by_cluster.get(name, ())):
        return False
    return name not in shard.removals or not _is_awaited(name, facts)


def _is_awaited(name: str, facts: Facts) -> bool:
    cluster, health = facts.fleet.get(name), facts.health.get(name)
    is_pull = cluster is not None and cluster.spec.sync_mode == _PULL
    return is_pull or (health is not None and health.status == _READY)
