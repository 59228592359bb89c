"""A rebalancer in its owner shard: request to reschedule each workload, record the results, finish and expire.

The rules are those of Karmada and its user guide: a workload removed from the spec stays in the status if it
succeeded and is dropped if it failed or waits. Each workload is requested once per generation. The rebalancer
finishes when all workloads of the current generation have a result.
"""

from typing import Final

from engine.deciders.state import Rebalancer
from engine.deciders.step_outputs import Outputs, View
from events import links, rebalance_decisions, specs, times

SUCCESSFUL: Final = "Successful"
FAILED: Final = "Failed"
NOT_FOUND: Final = "ReferencedBindingNotFound"


def decide(rebalancer: Rebalancer, view: View) -> Outputs[None]:
    """Start a new generation, record results, finish and expire the rebalancer if due; yields after each workload."""
    if rebalancer.started < rebalancer.generation:
        yield from _start(rebalancer)
    yield from _count_answers(rebalancer)
    if rebalancer.finished < rebalancer.started and all(
        observed.result for observed in rebalancer.observed.values()
    ):
        yield rebalance_decisions.RebalanceFinished(
            name=rebalancer.name,
            uid=rebalancer.uid,
            generation=rebalancer.started,
            finish_ms=view.time_ms,
        )
    due_ms = expires_ms(rebalancer)
    if due_ms and due_ms <= view.time_ms:
        yield from _expire(rebalancer)


def expires_ms(rebalancer: Rebalancer) -> int:
    """Return the time at which the rebalancer is to be deleted; 0 for never or not known yet."""
    finished = rebalancer.finished == rebalancer.generation and rebalancer.finish_ms
    if not finished or rebalancer.ttl_seconds is None or rebalancer.expired:
        return 0
    return rebalancer.finish_ms + max(rebalancer.ttl_seconds, 0) * times.SECOND_MS


def _start(rebalancer: Rebalancer) -> Outputs[None]:
    workloads = {ref.sort_key: ref for ref in rebalancer.workloads}
    added = tuple(ref for order, ref in workloads.items() if order not in rebalancer.observed)
    dropped = tuple(
        observed.workload
        for order, observed in sorted(rebalancer.observed.items())
        if order not in workloads and observed.result != SUCCESSFUL
    )
    # Time of the requests: the rebalancer's creation for generation 1, later the edit that added the workloads.
    at_ms = rebalancer.created_ms if rebalancer.generation == 1 else rebalancer.edited_ms
    yield rebalance_decisions.RebalanceStarted(
        name=rebalancer.name,
        uid=rebalancer.uid,
        generation=rebalancer.generation,
        at_ms=at_ms,
        asked=added,
        dropped=dropped,
    )
    for ref in added:
        key = ref.binding_key
        yield links.RescheduleRequested(
            rebalancer=rebalancer.name,
            uid=rebalancer.uid,
            generation=rebalancer.generation,
            at_ms=at_ms,
            key=key,
            workload=ref,
        )
        yield


def _count_answers(rebalancer: Rebalancer) -> Outputs[None]:
    # Iterate over a copy: yielding a result removes its answer. Answers that do not apply are skipped.
    for answer in tuple(rebalancer.answers):
        observed = rebalancer.observed.get(answer.workload.sort_key)
        if observed is None or observed.result or observed.generation != answer.generation:
            continue
        yield rebalance_decisions.WorkloadRebalanced(
            name=rebalancer.name,
            uid=rebalancer.uid,
            generation=answer.generation,
            workload=answer.workload,
            result=answer.result,
            reason=answer.reason,
        )
        yield


def _expire(rebalancer: Rebalancer) -> Outputs[None]:
    yield rebalance_decisions.RebalancerExpired(
        name=rebalancer.name, uid=rebalancer.uid, generation=rebalancer.generation
    )
    # An ordinary write with ``expects``: if the rebalancer was edited meanwhile, the deletion is refused as
    # late.
    yield specs.RebalancerDeleted(name=rebalancer.name, expects=rebalancer.version)
