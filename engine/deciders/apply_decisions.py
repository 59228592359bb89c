"""Apply decisions to a shard's state; deciders change the state in no other way.

The owner applies each decision as it emits it, recovery applies each decision that it reads, so both reach
the same state.
"""

import hashlib
from sys import intern

import msgspec

from engine.deciders import eviction_rules, group_ledgers, needs, quota_ledgers
from engine.deciders.sharing import NOTHING
from engine.deciders.state import (
    Binding,
    CapacityRequest,
    Declared,
    Dispatched,
    Removal,
    ShardState,
    Terms,
)
from engine.domain import bindings, rebalancers
from engine.objects import priorities
from engine.shared_values import shared
from events import (
    cluster_decisions,
    decisions,
    group_decisions,
    keys,
    preemption_decisions,
    quota_decisions,
    rebalance_decisions,
    shapes,
)


def apply(shard: ShardState, data: shapes.Event, term: int, step: int) -> None:
    """Apply one decision of the step ``(term, step)``; other records of a step change nothing here."""
    # Ordered by frequency: the most frequent decisions come first.
    match data:
        case decisions.ScheduleDecided() | decisions.ScheduleFailed() | decisions.RescheduleTriggered():
            _apply_schedule(shard.bindings[data.key], data)
        case decisions.BindingDispatched(key=key, digest=digest, works=works):
            _apply_dispatch(shard, key, shared(digest), works, shared((term, step)))
        case decisions.StatusAggregated(key=key):
            shard.bindings[key].shown = shown_digest(data)
        case decisions.EvictionStarted() | decisions.EvictionFinished():
            _apply_eviction(shard.bindings[data.key], data)
        case preemption_decisions.CapacityWanted() | preemption_decisions.PreemptionDecided():
            _apply_capacity_request(shard, data)
        case decisions.BindingWithdrawn():
            _withdraw(shard, data, (term, step))
        case quota_decisions.QuotaClaimed() | quota_decisions.QuotaDecided():
            quota_ledgers.apply(shard, data)
        case group_decisions.GroupClaimed() | group_decisions.GroupDecided():
            group_ledgers.apply(shard, data)
        case decisions.BindingDecision():
            _apply_to_binding(shard, shard.bindings[data.key], data)
        case rebalance_decisions.RebalancerDecision():
            _apply_rebalance(shard, data)
        case cluster_decisions.ClusterDecision():
            _apply_to_cluster(shard, data)
        case _:
            return


def settle(shard: ShardState, key: str, at_ms: int) -> None:
    """Clean up after a key was decided in a step at ``at_ms``.

    Move unanswered reschedule requests to ``delayed``. Clear answered requests, and answers that a rebalancer did not
    use. Reset ``ready_to_retry`` if the retry was due, and set ``unhealthy_ms`` of new unhealthy reports. Delete empty
    bindings and dropped needs. Delete the binding's capacity request if it is decided and ``again_ms`` has passed, or
    if the binding may no longer preempt.
    """
    rebalancer = shard.rebalancers.get(key)
    if rebalancer is not None:
        rebalancer.answers = []
    if key in shard.needs:
        needs.forget_dropped(shard, key)
    binding = shard.bindings.get(key)
    group_ledgers.settle(shard, key)
    if shard.unanswered_requests or shard.preemptions or shard.capacity_requests:
        _settle_capacity_requests(shard, key, binding, at_ms)
    if binding is None:
        return
    binding.delayed = (*binding.delayed, *binding.reschedule_requests) if shard.awaits(key) else ()
    binding.reschedule_requests = ()
    binding.suspending = None
    if binding.retry_at_ms <= at_ms:
        binding.ready_to_retry = False
    for cluster, report in binding.reports.items():
        if not report.healthy and not report.unhealthy_ms:
            binding.reports[cluster] = msgspec.structs.replace(report, unhealthy_ms=at_ms)
    if binding.template is None and binding.declared is None and not binding.works:
        del shard.bindings[key]


def _settle_capacity_requests(shard: ShardState, key: str, binding: Binding | None, at_ms: int) -> None:
    if key == keys.capacity_key(shard.shard):
        shard.unanswered_requests = {}
    shard.preemptions.pop(key, None)
    request = shard.capacity_requests.get(key)
    is_over = request is not None and request.is_decided and request.again_ms <= at_ms
    if is_over or binding is None or not _may_preempt(binding):
        shard.capacity_requests.pop(key, None)


def _may_preempt(binding: Binding) -> bool:
    """Whether the binding lacks capacity and may preempt."""
    rank = binding.rank
    return (
        binding.blocked
        and binding.claim is not None
        and rank is not None
        and rank.preemption_policy == priorities.PREEMPTS
    )


def shown_digest(status: decisions.StatusAggregated) -> str:
    """Return a digest that identifies the content of an aggregated status."""
    # Sorted, as recorded: a recovered shard computes the same digest from the decoded record.
    encoded = msgspec.json.encode(status, order="deterministic")
    return hashlib.blake2b(encoded, digest_size=8).hexdigest()


def _apply_to_binding(shard: ShardState, binding: Binding, data: decisions.BindingDecision) -> None:
    bindings.apply(binding, data)
    match data:
        case decisions.ClaimRefused():
            binding.refused = data
        case decisions.BindingReleased():
            binding.refused = None
        case decisions.BindingSuspended(scheduling=True):
            _unblock(binding)
        case decisions.BindingDeclared():
            binding.refused = None
            requests = None if data.requests is None else tuple(data.requests.items())
            binding.declared = Declared(
                data.template,
                data.uid,
                data.generation,
                data.offset,
                data.digest,
                data.replicas,
                requests,
            )
        case decisions.BindingClaimed() if binding.claim is not None:
            binding.refused = None
            shard.placements.setdefault(binding.claim.placement, data.placement)
            if not binding.claim.is_scheduled_here:
                _unblock(binding)
        case decisions.DependenciesDistributed():
            binding.distributed = data if data.dependencies else None
        case decisions.BindingRequired():
            terms = (
                (requirer.by, Terms(requirer.clusters, requirer.overwrites, requirer.preserves))
                for requirer in data.required_by
            )
            needs.apply(shard, data.key, terms)
        case _:
            return


def _apply_capacity_request(
    shard: ShardState, data: preemption_decisions.CapacityWanted | preemption_decisions.PreemptionDecided
) -> None:
    match data:
        case preemption_decisions.CapacityWanted():
            shard.capacity_requests[data.key] = CapacityRequest(data.number, data.again_ms, data.attempt)
        case preemption_decisions.PreemptionDecided():
            request = shard.capacity_requests[data.key]
            request.is_decided = True
            request.has_victims = bool(data.victims)
            request.again_ms = data.again_ms
            request.offers = {}


def _withdraw(shard: ShardState, data: decisions.BindingWithdrawn, version: tuple[int, int]) -> None:
    binding = shard.bindings[data.key]
    if data.reason == bindings.TEMPLATE_DELETED:
        # This step also removes all works of the binding, so wait until their clusters confirm the removals.
        for cluster in binding.works:
            shard.removals.setdefault(cluster, {})[data.key] = Removal(version, is_withdrawn=True)
    bindings.apply(binding, data)
    needs.forget_applied(shard, data.key)
    binding.declared = binding.refused = None
    binding.fresh = False
    _unblock(binding)
    binding.reports = {}
    binding.evicted = ()
    binding.shown = ""


def _apply_schedule(
    binding: Binding,
    data: decisions.ScheduleDecided | decisions.ScheduleFailed | decisions.RescheduleTriggered,
) -> None:
    bindings.apply(binding, data)
    match data:
        case decisions.RescheduleTriggered():
            binding.fresh = True
        case decisions.ScheduleDecided():
            binding.fresh = False
            _unblock(binding)
            if binding.template is not None and binding.template.is_imported:
                binding.template = msgspec.structs.replace(binding.template, is_imported=False)
        case decisions.ScheduleFailed():
            _unblock(binding)
            binding.blocked = data.retried
            binding.attempts = data.attempts
            binding.retry_at_ms = data.retry_at_ms


def _unblock(binding: Binding) -> None:
    binding.blocked = False
    binding.ready_to_retry = False
    binding.attempts = 0
    binding.retry_at_ms = 0


def _apply_eviction(binding: Binding, data: decisions.EvictionStarted | decisions.EvictionFinished) -> None:
    bindings.apply(binding, data)
    if isinstance(data, decisions.EvictionStarted):
        if data.reason == eviction_rules.UNTOLERATED:
            others = tuple(eviction for eviction in binding.evicted if eviction[0] != data.cluster)
            binding.evicted = (*others, (data.cluster, data.created_ms))
        return
    report = binding.reports.get(data.cluster)
    if report is not None and report.unhealthy_ms:
        # The time for which unhealthiness is tolerated starts again if the workload returns to the cluster.
        binding.reports[data.cluster] = msgspec.structs.replace(report, unhealthy_ms=0)


def _apply_dispatch(
    shard: ShardState,
    key: str,
    digest: str,
    works: tuple[decisions.DispatchedWork, ...],
    version: tuple[int, int],
) -> None:
    binding = shard.bindings[key]
    for work in works:
        if work.state == "removed":
            binding.works.pop(work.cluster, None)
            # The report describes the removed work; it must not be taken for a report on a later work in this cluster.
            binding.reports.pop(work.cluster, None)
            awaited = shard.removals.setdefault(work.cluster, {})
            if key not in awaited or awaited[key].version != version:
                awaited[key] = Removal(version, is_withdrawn=False)
        else:
            forget_removal(shard, work.cluster, key)
            previous = binding.works.get(work.cluster)
            first = previous.first if previous else version
            suspended = work.state == "suspended"
            if suspended:
                generation = previous.generation if previous else 0
            else:
                generation = binding.declared.generation if binding.declared else 0
            binding.works[intern(work.cluster)] = shared(
                Dispatched(
                    digest,
                    work.replicas,
                    *version,
                    suspended,
                    work.overrides,
                    work.labels or NOTHING,
                    work.reading,
                    first,
                    work.overwrites,
                    generation,
                    work.completions,
                )
            )


def forget_removal(shard: ShardState, cluster: str, key: str) -> None:
    """Stop waiting for the removal of a work: it is confirmed as gone, or the cluster gets the work again."""
    awaited = shard.removals.get(cluster)
    if awaited is not None:
        awaited.pop(key, None)
        if not awaited:
            del shard.removals[cluster]


def _apply_to_cluster(shard: ShardState, data: cluster_decisions.ClusterDecision) -> None:
    watch, departure = shard.watches.get(keys.cluster_key(data.name)), shard.departures.get(data.name)
    match data:
        case cluster_decisions.ClusterSilenced() if watch is not None:
            watch.silenced_ms = data.heard_ms
        case cluster_decisions.ClusterJudged() if watch is not None:
            watch.judged = data
        case cluster_decisions.ClusterVacated() if departure is not None:
            departure.is_decided = True
        case _:
            return


def _apply_rebalance(shard: ShardState, data: rebalance_decisions.RebalancerDecision) -> None:
    rebalancer = shard.rebalancers.get(data.subject)
    if rebalancer is None or rebalancer.uid != data.uid:
        return
    rebalancers.apply(rebalancer, data)
    if isinstance(data, rebalance_decisions.WorkloadRebalanced):
        observed = rebalancer.observed[data.workload.sort_key]
        if observed in rebalancer.answers:
            rebalancer.answers.remove(observed)
