"""Taint manager: start evictions for NoExecute taints and end graceful evictions, by the rules of ``eviction_rules``.

The tolerations are those of the last applied placement, as in Karmada. Removing a taint moves no divided workload
back. The scheduler does not move a binding without policy, so the taint manager evicts it from a leaving cluster.
"""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from engine.deciders import eviction_rules, last_copy, state_preservation
from engine.deciders.eviction_rules import EndReason, EvictionEnds
from engine.deciders.facts import Facts
from engine.deciders.placement_cache import Placements
from engine.deciders.state import Binding, ShardState
from engine.deciders.step_outputs import Outputs, View
from engine.domain.bindings import SUCCESS
from events import decisions, vocabulary

GRACE_PERIOD_MS: Final = 600_000
"""Default time in ms for which a graceful eviction waits for its replacement, as in Karmada."""

TERMINATING: Final = "ClusterTerminating"
RETURN_MS: Final = 5_000
"""Minimum stay in ms of a binding that returns after an eviction by a taint; see ``_paced_deadline_ms``."""

_PRODUCER: Final = "TaintManager"


def decide(binding: Binding, view: View, *, is_changed: bool) -> Outputs[bool]:
    """End evictions that are over and start those that are due.

    Return whether the binding needs a scheduling pass because a cluster can be used again. ``is_changed`` means that
    the binding changed after its last pass. Until the next pass, neither healthy replacements nor a recovered
    cluster end an eviction.
    """
    is_scheduled = _is_scheduled(binding, view.shard) and not is_changed
    ended_evictions = (
        _assess(
            binding,
            view.facts,
            view.placements,
            view.time_ms,
            is_scheduled=is_scheduled,
            is_changed=is_changed,
        ).ended
        if binding.tasks
        else ()
    )
    for eviction in ended_evictions:
        yield decisions.EvictionFinished(
            key=binding.key, cluster=eviction.task.cluster, reason=eviction.reason
        )
    # Collect all evictions before emitting the first: each eviction removes its cluster from the binding.
    yield from list(_due_evictions(binding, view))
    is_restored = yield from last_copy.restore(binding, ended_evictions, view)
    if not is_restored and binding.claim is None:
        yield from last_copy.decide_unclaimed(binding)
    return _frees_cluster(binding, ended_evictions, view)


def _frees_cluster(binding: Binding, ended: Sequence[eviction_rules.Ended], view: View) -> bool:
    """Whether a scheduling pass may use a cluster whose eviction ended.

    A pass that failed without the cluster may succeed now. A duplicated workload returns to the cluster once the taint
    is gone. It does not return while it tolerates the taint only for some seconds, nor after an eviction for another
    reason: it would be evicted again and again.
    """
    return bool(ended) and (
        binding.condition != SUCCESS
        or any(
            eviction.task.reason == eviction_rules.UNTOLERATED
            and _tolerates(binding, eviction.task.cluster, view.facts, view.placements)
            for eviction in ended
        )
    )


def _due_evictions(binding: Binding, view: View) -> Iterator[decisions.EvictionStarted]:
    rules = binding.claim.preserved if binding.claim else ()
    mode = (binding.claim.purge_mode if binding.claim else "") or vocabulary.PURGE_GRACEFULLY
    for cluster, deadline_ms in _deadlines(binding, view.facts, view.placements):
        if deadline_ms > view.time_ms:
            continue
        is_left = _is_stranded(binding, cluster, view.facts)
        started = decisions.EvictionStarted(
            key=binding.key,
            cluster=cluster,
            reason=TERMINATING if is_left else eviction_rules.UNTOLERATED,
            producer=_PRODUCER,
            purge_mode=vocabulary.PURGE_DIRECTLY if is_left else mode,
            created_ms=view.time_ms,
        )
        yield state_preservation.with_state(started, binding, rules)


def due_ms(binding: Binding, facts: Facts, placements: Placements, shard: ShardState) -> int:
    """Return the next time at which an eviction starts or ends without a new input; 0 for never."""
    dues = [max(deadline_ms, 1) for _, deadline_ms in _deadlines(binding, facts, placements)]
    if binding.tasks:
        is_scheduled = _is_scheduled(binding, shard)
        assessed = _assess(binding, facts, placements, 0, is_scheduled=is_scheduled, is_changed=False)
        if assessed.ended:
            # An eviction can end now, for example because its replacement is healthy. Perhaps no other input follows
            # that would cause a step, so make one due now.
            dues.append(1)
        elif assessed.due_ms is not None:
            dues.append(assessed.due_ms)
    return min(dues, default=0)


def _deadlines(binding: Binding, facts: Facts, placements: Placements) -> Iterator[tuple[str, int]]:
    """Yield each cluster that the binding must leave, with the time."""
    if not binding.applied:
        return
    for name, _ in binding.clusters:
        if _is_stranded(binding, name, facts):
            yield name, eviction_rules.AT_ONCE_MS
            continue
        manifest = facts.fleet.get(name)
        if manifest is None or not manifest.spec.taints:
            continue
        deadline_ms = placements.deadline_ms(binding.applied, name, manifest.spec.taints)
        if deadline_ms is not None:
            yield name, _paced_deadline_ms(binding, name, deadline_ms)


def _paced_deadline_ms(binding: Binding, cluster: str, deadline_ms: int) -> int:
    """Return when a binding must leave a cluster: later than ``deadline_ms`` if a taint evicted it after that time.

    The scheduler may choose a cluster with a tolerated taint again, although the toleration's seconds are over. In
    Karmada, such a binding is evicted and assigned again every few seconds, since its controllers wait for one another.
    Here that would happen every millisecond, forever. So each new stay lasts as long as the time from the deadline to
    the last eviction, at least RETURN_MS.
    """
    last_ms = next((at_ms for name, at_ms in binding.evicted if name == cluster), None)
    if last_ms is None or last_ms < deadline_ms or deadline_ms == eviction_rules.AT_ONCE_MS:
        return deadline_ms
    return last_ms + max(last_ms - deadline_ms, RETURN_MS)


def _is_stranded(binding: Binding, cluster: str, facts: Facts) -> bool:
    """Whether the cluster is leaving, and the scheduler does not move the binding, because no policy claims it."""
    return cluster in facts.leaving and binding.claim is None


def _is_scheduled(binding: Binding, shard: ShardState) -> bool:
    """Whether the evicted replicas are assigned elsewhere; False if the engine does not schedule the binding now."""
    return (
        binding.condition == SUCCESS
        and binding.claim is not None
        and binding.claim.is_scheduled_here
        and not binding.suspension.scheduling
        and not shard.awaits(binding.key)
    )


def _assess(
    binding: Binding,
    facts: Facts,
    placements: Placements,
    now_ms: int,
    *,
    is_scheduled: bool,
    is_changed: bool,
) -> eviction_rules.Assessment:
    healthy = _healthy(binding)
    return eviction_rules.assess(
        binding.tasks,
        binding.clusters,
        healthy,
        is_scheduled=is_scheduled,
        now_ms=now_ms,
        grace_period_ms=GRACE_PERIOD_MS,
        ends=_ends(binding, healthy, facts, placements, is_changed=is_changed),
    )


def _ends(
    binding: Binding, healthy: AbstractSet[str], facts: Facts, placements: Placements, *, is_changed: bool
) -> EvictionEnds:
    protected = last_copy.clusters(binding)
    ending: dict[str, EndReason] = {}
    if not binding.clusters and (binding.claim is None or not is_changed):
        for cluster in protected & healthy:
            if _tolerates(binding, cluster, facts, placements) and last_copy.selecting_groups(
                binding, (cluster,), facts, placements
            ):
                ending[cluster] = EndReason.RECOVERED
    for task in binding.tasks:
        if not task.held and facts.fleet.get(task.cluster) is None:
            ending[task.cluster] = EndReason.CLUSTER_LEFT
    return EvictionEnds(ending, protected)


def _tolerates(binding: Binding, cluster: str, facts: Facts, placements: Placements) -> bool:
    """Whether the binding, once assigned to the cluster, may stay there without a time limit."""
    manifest = facts.fleet.get(cluster)
    if manifest is None or cluster in facts.leaving:
        return False
    taints = manifest.spec.taints
    # An assignment applies the placement of the claim. ``applied`` may be older: a failed pass may not change it.
    digest = binding.claim.placement if binding.claim else binding.applied
    tolerations = placements.get(digest).cluster_tolerations if taints and digest else ()
    return eviction_rules.deadline_ms(taints, tolerations) is None


def _healthy(binding: Binding) -> frozenset[str]:
    """Return clusters that report the newest work as healthy; reports of older works are ignored."""
    return frozenset(
        name
        for name, report in binding.reports.items()
        if report.healthy
        and not report.fault
        and (work := binding.works.get(name)) is not None
        and (report.term, report.step) >= (work.term, work.step)
    )
