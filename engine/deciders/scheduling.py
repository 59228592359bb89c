"""Schedule a binding: run a scheduling pass if one is needed, and emit its decision if it is a change.

The triggers are Karmada's. A pass that repeats the current decision emits nothing. A failed pass is retried
when a fact changes that may have caused the failure, but not before a delay, which doubles with each failure.
A binding whose policy names another scheduler gets no pass, but takes over an imported placement. A binding
whose scheduling a client suspended keeps its clusters until a client resumes its scheduling.
"""

import operator
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from engine.deciders import (
    overall_quotas,
    preemption_victims,
    quota_amounts,
    rebalance,
    record_sizes,
    workload_groups,
)
from engine.deciders import state as states
from engine.deciders.facts import Facts
from engine.deciders.overall_quotas import Pending, Refused
from engine.deciders.placement_cache import Placements
from engine.deciders.state import Binding, Declared
from engine.deciders.step_outputs import Outputs, SchedulingPass, View
from engine.domain.bindings import Claim, Targets
from engine.domain.workload_groups import NO_RESTRICTIONS, GroupRestrictions
from engine.placement import requests, schedule, triggers
from engine.placement.decisions import SUCCESS, Decision
from events import decisions, imported_placements, links, shapes, times

_RETRY_MS: Final = 1_000
_RETRY_MS_MAX: Final = times.MINUTE_MS
_DOUBLINGS_MAX: Final = 7
_IMPORTED: Final = "Imported"
_FORCES_PASS: Final = states.CLUSTER | states.QUOTA | states.GROUP
_STEADY: Final = "Steady"
_NAME: Final = operator.itemgetter(0)
_REPLICAS: Final = operator.itemgetter(1)


def decide(
    binding: Binding,
    flags: int,
    view: View,
    *,
    is_changed: bool,
) -> Outputs[bool]:
    """Run a scheduling pass if one is needed; return whether all reschedule requests of rebalancers are answered."""
    reschedules = binding.reschedule_requests
    if binding.declared is None or binding.claim is None:
        for request in (*binding.delayed, *reschedules):
            yield _answer(request, rebalance.FAILED, rebalance.NOT_FOUND)
        return True
    for request in reschedules:
        yield decisions.RescheduleTriggered(
            key=binding.key,
            rebalancer=request.rebalancer,
            uid=request.uid,
            generation=request.generation,
            at_ms=request.at_ms,
        )
    if reschedules:
        yield from preemption_victims.release(binding)
    request = view.shard.capacity_requests.get(binding.key) if view.shard.capacity_requests else None
    is_due = request is not None and 0 < request.due_ms <= view.time_ms
    is_needed = (
        is_changed or reschedules or flags & _FORCES_PASS or is_due or _may_retry(binding, view.time_ms)
    )
    if is_needed and not binding.suspension.scheduling:
        yield from _run_pass(binding, binding.declared, binding.claim, view)
    return (yield from answer(binding, view))


def answer(binding: Binding, view: View) -> Outputs[bool]:
    """Answer the reschedule requests for a binding; return False, without answers, if it waits for quotas or groups."""
    if view.shard.awaits(binding.key):
        return False  # the answer comes with the decision
    for request in (*binding.delayed, *binding.reschedule_requests):
        yield _answer(request, rebalance.SUCCESSFUL, "")
    return True


def request_of(
    binding: Binding,
    declared: Declared,
    claim: Claim,
    facts: Facts,
    placements: Placements,
    shard: states.ShardState,
) -> requests.Request:
    """Return the scheduling request of a binding, including its trigger."""
    ref = declared.ref
    amounts = None if declared.requests is None else requests.parse_pairs(declared.requests)
    restrictions = workload_groups.restrictions(binding, placements, shard)
    request = requests.Request(
        resource=requests.Resource(
            api_version=ref.api_version,
            kind=ref.kind,
            namespace=ref.namespace,
            name=ref.name,
            uid=declared.uid,
        ),
        placement=placements.get(claim.placement),
        replicas=declared.replicas or 0,
        requests=amounts,
        current=binding.clusters,
        evicting=frozenset(task.cluster for task in binding.tasks),
        observed_affinity=binding.affinity,
        fresh=binding.fresh,
        replica_limits=facts.quota_limits.replica_limits(ref.namespace, amounts or ()),
        excluded_by_groups=restrictions.apart,
        allowed_by_groups=restrictions.together,
        prioritized=claim.schedule_priority is not None,
    )
    applied = placements.get(binding.applied) if binding.applied else None
    trigger = triggers.trigger(request, applied, facts.fleet)
    if trigger == triggers.NONE and any(facts.fleet.get(name) is None for name, _ in binding.clusters):
        # A cluster removed without a leaving phase is missing from the fleet; treat it as terminating.
        trigger = triggers.CLUSTER_TERMINATING
    return request if trigger == request.trigger else msgspec.structs.replace(request, trigger=trigger)


def _may_retry(binding: Binding, time_ms: int) -> bool:
    return binding.blocked and binding.ready_to_retry and binding.retry_at_ms <= time_ms


def _run_pass(
    binding: Binding,
    declared: Declared,
    claim: Claim,
    view: View,
) -> Outputs[None]:
    imported = _imported(binding, view.facts)
    is_foreign = not claim.is_scheduled_here
    if imported is not None and (imported.is_complete or (is_foreign and imported.placement.clusters)):
        yield _import(binding, imported.placement)
        return
    if is_foreign:
        return
    request = request_of(binding, declared, claim, view.facts, view.placements, view.shard)
    if imported is not None:
        clusters = tuple(sorted(imported.placement.clusters.items()))
        affinity = imported.placement.affinity
        request = msgspec.structs.replace(request, current=clusters, observed_affinity=affinity)
    if request.trigger == triggers.NONE:
        return
    decision = _decision(binding, request, view)
    restrictions = GroupRestrictions(request.excluded_by_groups, request.allowed_by_groups)
    if (
        decision.reason not in ("", SUCCESS)
        and restrictions != NO_RESTRICTIONS
        and not workload_groups.has_open_claim(binding, view.shard)
    ):
        # The known restrictions may be outdated, because the other bindings of the groups may have moved since the last
        # claim. So try without restrictions and claim the clusters: the verdict brings the current restrictions.
        other = msgspec.structs.replace(request, excluded_by_groups=frozenset(), allowed_by_groups=None)
        if view.facts.decision_cache.decide(other).reason == SUCCESS:
            request, decision = other, _decision(binding, other, view)
    if decision.reason == SUCCESS:
        is_change = not _is_unchanged_decision(binding, claim, decision)
        if is_change and (yield from workload_groups.admit(binding, decision.columns[0], view)):
            decision = yield from _emit_decision(binding, request, decision, view)
    elif decision.reason:
        yield from _emit_failure(binding, request, decision, view)
    if binding.key == view.explained:
        yield SchedulingPass(request, decision)


def _decision(binding: Binding, request: requests.Request, view: View) -> Decision:
    if binding.key == view.explained:
        return schedule.schedule(request, view.facts.fleet, explain=True)
    return view.facts.decision_cache.decide(request)


class _Imported(NamedTuple):
    """An imported placement, reduced to member clusters; ``is_complete``: no cluster was left out."""

    placement: imported_placements.ImportedPlacement
    is_complete: bool


def _imported(binding: Binding, facts: Facts) -> _Imported | None:
    """Return the placement with which the template was imported; None if there is none or a decision has adopted it."""
    template = binding.template
    if template is None or (binding.condition and not template.is_imported):
        return None
    placement = template.imported
    if placement is None or not placement.clusters:
        return None
    known = {name: count for name, count in placement.clusters.items() if facts.fleet.get(name) is not None}
    return _Imported(msgspec.structs.replace(placement, clusters=known), known == placement.clusters)


def _import(binding: Binding, imported: imported_placements.ImportedPlacement) -> decisions.ScheduleDecided:
    return decisions.ScheduleDecided(
        key=binding.key,
        generation=binding.generation,
        trigger=_IMPORTED,
        mode=_STEADY,
        clusters=tuple(
            shapes.TargetCluster(name=name, replicas=count)
            for name, count in sorted(imported.clusters.items())
        ),
        affinity=imported.affinity,
    )


def _mode(request: requests.Request) -> str:
    return "Fresh" if request.fresh else _STEADY


def _is_unchanged_decision(binding: Binding, claim: Claim, decision: Decision) -> bool:
    """Whether recording a successful decision would change nothing in the binding."""
    return not (
        binding.fresh
        or binding.condition != SUCCESS
        or binding.affinity != decision.affinity_name
        or binding.applied != claim.placement
        or not _is_unchanged(binding.clusters, *decision.columns)
    )


def _quota_obstacle(binding: Binding, replicas: int, view: View) -> Outputs[Pending | Refused | None]:
    """Return why overall quotas do not allow this many replicas now; None if they do."""
    if not view.facts.overall:
        return None
    amounts = quota_amounts.amounts(binding.declared.requests if binding.declared else None, replicas)
    return (yield from overall_quotas.admit(binding, amounts, view, is_declared=True))


def _emit_decision(
    binding: Binding,
    request: requests.Request,
    decision: Decision,
    view: View,
) -> Outputs[Decision]:
    """Emit and return a successful decision, or the failure if overall quotas do not allow it.

    Emit nothing while the owner of the quotas has not answered.
    """
    names, replicas = decision.columns
    match (yield from _quota_obstacle(binding, sum(replicas), view)):
        case Refused(fault=fault):
            reason = overall_quotas.QUOTA_EXCEEDED
            refused = msgspec.structs.replace(
                decision, chosen=None, status="False", reason=reason, message=fault, failed=()
            )
            yield from _emit_failure(binding, request, refused, view)
            return refused
        case Pending():
            return decision
        case None:
            pass
    yield decisions.ScheduleDecided(
        key=binding.key,
        generation=binding.generation,
        trigger=request.trigger,
        mode=_mode(request),
        clusters=tuple(
            shapes.TargetCluster(name=name, replicas=count)
            for name, count in zip(names, replicas, strict=True)
        ),
        affinity=decision.affinity_name,
        available=decision.available,
        excluded=dict(decision.excluded),
        failed=_failed(decision),
    )
    # Only fills a cache: a replay does not run this line, so no decision may depend on it.
    if decision.chosen is not None:
        view.facts.fleet.cache_columns(binding.clusters, *decision.chosen.numbers())
    return decision


def _failed(decision: Decision) -> tuple[decisions.GroupFailure, ...]:
    """Return the groups that failed; none if their messages, each of which names all taints, exceed a record."""
    failed = tuple(decisions.GroupFailure(index=index, message=message) for index, message in decision.failed)
    if not failed:
        return ()
    others = (decision.message, dict(decision.excluded), decision.columns, decision.available)
    return failed if record_sizes.fits((failed, others)) else ()


def _is_unchanged(targets: Targets, names: Sequence[str], replicas: Sequence[int]) -> bool:
    """Whether a result equals the current assignment; replica numbers differ more often and are compared first."""
    return (
        len(targets) == len(names)
        and all(map(operator.eq, map(_REPLICAS, targets), replicas))
        and all(map(operator.eq, map(_NAME, targets), names))
    )


def _emit_failure(
    binding: Binding, request: requests.Request, decision: Decision, view: View
) -> Outputs[None]:
    is_known = (binding.condition, binding.message) == (decision.reason, decision.message)
    # Record the first failure with a new placement too, even if its message equals that of the previous placement.
    is_applied = binding.claim is None or binding.applied == binding.claim.placement
    is_final = not decision.is_open and not (decision.changed and (binding.clusters or not is_applied))
    # A rebalancer's request gets a decision even if the failure is the same as before.
    if is_known and is_final and not (binding.reschedule_requests or binding.delayed):
        return
    attempts = binding.attempts + 1 if decision.is_open else 0
    delay_ms = min(_RETRY_MS << min(attempts, _DOUBLINGS_MAX) >> 1, _RETRY_MS_MAX)
    yield decisions.ScheduleFailed(
        key=binding.key,
        generation=binding.generation,
        trigger=request.trigger,
        mode=_mode(request),
        reason=decision.reason,
        message=decision.message,
        emptied=decision.changed,
        retried=decision.is_open,
        attempts=attempts,
        retry_at_ms=view.time_ms + delay_ms if decision.is_open else 0,
        excluded=dict(decision.excluded),
        failed=_failed(decision),
    )


def _answer(request: links.RescheduleRequested, result: str, reason: str) -> links.RescheduleAnswered:
    return links.RescheduleAnswered(
        rebalancer=request.rebalancer,
        uid=request.uid,
        generation=request.generation,
        workload=request.workload,
        result=result,
        reason=reason,
    )
