"""Schedule a binding: whether a pass is needed, what the scheduler decides, and whether that is a change.

The triggers are the reference's. A pass that repeats the current decision emits nothing. A failed pass is
retried after a fact that may have caused the failure has changed, and not before a delay that doubles with
each failure.
"""

import functools
import operator
from collections.abc import Sequence
from typing import Final

import msgspec

from engine.deciders import eviction_rules, preemption_victims, rebalance, step_outputs
from engine.deciders import state as states
from engine.deciders.facts import Facts
from engine.deciders.placement_cache import Placements
from engine.deciders.state import Binding, Claim, Declared, RescheduleRequest
from engine.objects import workloads
from engine.placement import requests, schedule, triggers
from engine.placement.decisions import SUCCESS, Decision
from events import decisions, keys, links, shapes

_RETRY_MS: Final = 1_000
_RETRY_MS_MAX: Final = 60_000
_DOUBLINGS_MAX: Final = 7
_PARSED_MAX: Final = 4_096
_NAME: Final = operator.itemgetter(0)
_REPLICAS: Final = operator.itemgetter(1)


def decide(
    binding: Binding,
    flags: int,
    facts: Facts,
    placements: Placements,
    emit: step_outputs.Emitter,
    *,
    is_changed: bool,
) -> None:
    """Run a scheduling pass if one is needed and answer the rebalancers that asked for one."""
    asks = binding.asks
    if binding.declared is None or binding.claim is None:
        for ask in asks:
            _answer(ask, rebalance.FAILED, rebalance.NOT_FOUND, emit)
        return
    for ask in asks:
        triggered = decisions.RescheduleTriggered(
            key=binding.key,
            rebalancer=ask.rebalancer,
            uid=ask.uid,
            generation=ask.generation,
            at_ms=ask.at_ms,
        )
        emit.decide(triggered, binding.key)
    if asks:
        preemption_victims.release(binding, emit)
    want = emit.shard.wants.get(binding.key) if emit.shard.wants else None
    is_due = want is not None and 0 < want.due_ms <= emit.time_ms
    if is_changed or asks or flags & states.CLUSTER or is_due or _may_retry(binding, emit.time_ms):
        _pass(binding, binding.declared, binding.claim, facts, placements, emit)
    for ask in asks:
        _answer(ask, rebalance.SUCCESSFUL, "", emit)


def request_of(
    binding: Binding, declared: Declared, claim: Claim, facts: Facts, placements: Placements
) -> requests.Request:
    """Return the scheduling request of a binding, including its trigger."""
    ref = declared.ref
    asked = requests.Request(
        resource=requests.Resource(
            api_version=ref.api_version,
            kind=ref.kind,
            namespace=ref.namespace,
            name=ref.name,
            uid=declared.uid,
        ),
        placement=placements.get(claim.placement),
        replicas=declared.replicas or 0,
        requests=None if declared.requests is None else _parsed(declared.requests),
        current=binding.clusters,
        evicting=frozenset(task.cluster for task in binding.tasks),
        observed_affinity=binding.affinity,
        fresh=binding.fresh,
    )
    applied = placements.get(binding.applied) if binding.applied else None
    trigger = triggers.trigger(asked, applied, facts.fleet)
    if trigger == triggers.NONE and any(facts.fleet.get(name) is None for name, _ in binding.clusters):
        # A cluster removed without a leaving phase is missing from the fleet; treat it as terminating.
        trigger = triggers.CLUSTER_TERMINATING
    return asked if trigger == asked.trigger else msgspec.structs.replace(asked, trigger=trigger)


@functools.lru_cache(maxsize=_PARSED_MAX)
def _parsed(wanted: workloads.Requests) -> requests.Requests:
    return requests.parse_requests(dict(wanted))


def _may_retry(binding: Binding, time_ms: int) -> bool:
    return binding.blocked and binding.ready_to_retry and binding.retry_at_ms <= time_ms


def _pass(
    binding: Binding,
    declared: Declared,
    claim: Claim,
    facts: Facts,
    placements: Placements,
    emit: step_outputs.Emitter,
) -> None:
    request = request_of(binding, declared, claim, facts, placements)
    if request.trigger == triggers.NONE:
        return
    is_explained = binding.key == emit.explained
    if is_explained:
        decision = schedule.schedule(request, facts.fleet, explain=True)
        emit.explanations.append((request, decision))
    else:
        decision = facts.answers.decide(request)
    if decision.reason == SUCCESS:
        _decided(binding, claim, request, decision, facts, emit)
    elif decision.reason:
        _failed(binding, request, decision, emit)


def _mode(request: requests.Request) -> str:
    return "Fresh" if request.fresh else "Steady"


def _decided(
    binding: Binding,
    claim: Claim,
    request: requests.Request,
    decision: Decision,
    facts: Facts,
    emit: step_outputs.Emitter,
) -> None:
    names, replicas = decision.columns
    is_news = (
        binding.fresh
        or binding.condition != SUCCESS
        or binding.affinity != decision.affinity_name
        or binding.applied != claim.placement
        or not _is_unchanged(binding.clusters, names, replicas)
    )
    if not is_news:
        return
    decided = decisions.ScheduleDecided(
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
    )
    emit.decide(decided, binding.key)
    if decision.chosen is not None:
        facts.fleet.learn(binding.clusters, *decision.chosen.numbers())


def _is_unchanged(before: eviction_rules.Targets, names: Sequence[str], replicas: Sequence[int]) -> bool:
    """Whether a result equals the current assignment; replica numbers differ more often and are compared first."""
    return (
        len(before) == len(names)
        and all(map(operator.eq, map(_REPLICAS, before), replicas))
        and all(map(operator.eq, map(_NAME, before), names))
    )


def _failed(
    binding: Binding, request: requests.Request, decision: Decision, emit: step_outputs.Emitter
) -> None:
    is_known = (binding.condition, binding.message) == (decision.reason, decision.message)
    is_final = not decision.retry and not (decision.changed and binding.clusters)
    # A rebalancer's request gets a decision even if the failure is the same as before.
    if is_known and is_final and not binding.asks:
        return
    attempts = binding.attempts + 1 if decision.retry else 0
    delay_ms = min(_RETRY_MS << min(attempts, _DOUBLINGS_MAX) >> 1, _RETRY_MS_MAX)
    failed = decisions.ScheduleFailed(
        key=binding.key,
        generation=binding.generation,
        trigger=request.trigger,
        mode=_mode(request),
        reason=decision.reason,
        message=decision.message,
        emptied=decision.changed,
        retried=decision.retry,
        attempts=attempts,
        retry_at_ms=emit.time_ms + delay_ms if decision.retry else 0,
        excluded=dict(decision.excluded),
    )
    emit.decide(failed, binding.key)


def _answer(ask: RescheduleRequest, result: str, reason: str, emit: step_outputs.Emitter) -> None:
    answer = links.RescheduleAnswered(
        rebalancer=ask.rebalancer,
        uid=ask.uid,
        generation=ask.generation,
        workload=ask.workload,
        result=result,
        reason=reason,
    )
    key = keys.rebalancer_key(ask.rebalancer)
    emit.send(answer, key, key)
