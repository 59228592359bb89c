"""Preemption, victim side: offer lower-priority bindings as candidates and evict those that are chosen.

A victim is removed at once, scheduled again and kept out of that cluster for a while, so that it does not
take the capacity back. A rebalancer that reschedules the victim ends this exclusion.
"""

from collections.abc import Iterator
from typing import Final

from engine.deciders import record_sizes, state_preservation
from engine.deciders.indexes import Indexes
from engine.deciders.state import Binding, ShardState
from engine.deciders.step_outputs import Outputs, View
from events import decisions, links, shapes, vocabulary

OFFERS_MAX: Final = 64
"""Maximum number of candidates in one answer: those of lowest priority, among equals those with the most replicas.

Fewer if the answer would exceed the size of a record.
"""

EXCLUSION_SECONDS: Final = 300
"""How long a preempted binding stays out of the cluster."""

RESCHEDULED: Final = "RescheduleTriggered"
PREEMPTED: Final = "Preempted"
"""The reason of evictions by a preemption."""

_PRODUCER: Final = "Scheduler"


def answer(indexes: Indexes, view: View) -> Outputs[None]:
    """Offer this shard's lower-priority bindings to each open capacity request; yields None after each answer."""
    for key in sorted(view.shard.unanswered_requests):
        request = view.shard.unanswered_requests[key]
        # Sorted, because ``occupants`` iterates over a set. Send an answer even without candidates: the requester
        # waits until every shard has answered.
        candidates = sorted(occupants(request, indexes, view.shard), key=_victim_order)
        # Offer only as many candidates as one record can contain: a custom object may have thousands of resource
        # requests.
        offers = next(record_sizes.portions(tuple(candidates[:OFFERS_MAX])))
        yield links.CapacityOffered(key=key, number=request.number, shard=view.shard.shard, occupants=offers)
        yield


def decide(binding: Binding, view: View) -> Outputs[None]:
    """Evict the binding from the clusters where preemption is requested, if the request is still valid."""
    requests = view.shard.preemptions.get(binding.key, [])
    for request in sorted(requests, key=lambda request: (request.cluster, -request.priority, request.by)):
        if not _is_valid(binding, request, view.time_ms):
            continue
        started = decisions.EvictionStarted(
            key=binding.key,
            cluster=request.cluster,
            reason=PREEMPTED,
            producer=_PRODUCER,
            purge_mode=vocabulary.PURGE_DIRECTLY,
            created_ms=view.time_ms,
            grace_period_seconds=EXCLUSION_SECONDS,
            by=request.by,
            held=True,
        )
        rules = binding.claim.preserved if binding.claim else ()
        yield state_preservation.with_state(started, binding, rules)


def release(binding: Binding) -> Outputs[None]:
    """End the exclusions by preemption, so that the binding may return to these clusters."""
    for task in binding.tasks:
        if task.held:
            yield decisions.EvictionFinished(key=binding.key, cluster=task.cluster, reason=RESCHEDULED)


def occupants(
    request: links.CapacityRequested, indexes: Indexes, shard: ShardState
) -> Iterator[shapes.Occupant]:
    """Yield each lower-priority binding of this shard, for each requested cluster from which it can be evicted."""
    bindings = shard.bindings
    clusters = frozenset(request.clusters)
    for key in {key for cluster in request.clusters for key in indexes.by_cluster.get(cluster, ())}:
        binding = bindings[key]
        declared = binding.declared
        if (
            key == request.key
            or declared is None
            or not declared.requests
            or binding.priority >= request.priority
        ):
            continue
        for cluster, replicas in binding.clusters:
            if cluster in clusters and replicas and _is_evictable(binding, cluster):
                yield shapes.Occupant(
                    key=key,
                    cluster=cluster,
                    priority=binding.priority,
                    replicas=replicas,
                    requests=dict(declared.requests),
                )


def _victim_order(occupant: shapes.Occupant) -> tuple[int, int, str, str]:
    return occupant.priority, -occupant.replicas, occupant.key, occupant.cluster


def _is_evictable(binding: Binding, cluster: str) -> bool:
    """Whether evicting the binding frees capacity in the cluster, and the engine then schedules the binding again.

    Evicting frees capacity unless the work there is suspended. The binding is scheduled again if a policy claims it,
    the policy names no other scheduler, and no client has suspended its scheduling.
    """
    claim = binding.claim
    return (
        claim is not None
        and claim.is_scheduled_here
        and not binding.suspension.scheduling
        and not binding.is_suspended_in(cluster)
    )


def _is_valid(binding: Binding, request: links.PreemptionRequested, at_ms: int) -> bool:
    """Whether the request is in time, and the binding is evictable, has lower priority and enough replicas there."""
    replicas = dict(binding.clusters).get(request.cluster, 0)
    return (
        at_ms <= request.until_ms
        and binding.priority < request.priority
        and binding.declared is not None
        and replicas >= max(request.replicas, 1)
        and _is_evictable(binding, request.cluster)
    )
