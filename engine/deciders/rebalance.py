"""The rebalancer's home shard: asks for each workload, counts the answers, finishes, expires.

Rules of the guide and of the reference: the status keeps what succeeded, and drops what failed or waits once it
is out of the spec; nothing is asked for twice in a generation; the finish moves whenever a generation was taken
up and all results are there.
"""

from collections.abc import Iterator
from typing import Final

from engine.deciders import emitting
from engine.deciders import state as states
from engine.deciders.state import Rebalancer
from events import decisions, keys, links, shapes, specs

SUCCESSFUL: Final = "Successful"
FAILED: Final = "Failed"
NOT_FOUND: Final = "ReferencedBindingNotFound"
_SECOND_MS: Final = 1000


def decide(rebalancer: Rebalancer, emit: emitting.Emitter) -> Iterator[None]:
    """Takes up a new generation, folds in the answers, finishes and expires, as far as that goes now; in portions."""
    if rebalancer.started < rebalancer.generation:
        yield from _start(rebalancer, emit)
    yield from _count_answers(rebalancer, emit)
    if rebalancer.finished < rebalancer.started and all(seen.result for seen in rebalancer.observed.values()):
        finish = decisions.RebalanceFinished(
            name=rebalancer.name,
            uid=rebalancer.uid,
            generation=rebalancer.started,
            finish_ms=emit.time_ms,
        )
        emit.decide(finish, rebalancer.key)
    due_ms = expires_ms(rebalancer)
    if due_ms and due_ms <= emit.time_ms:
        _expire(rebalancer, emit)


def expires_ms(rebalancer: Rebalancer) -> int:
    """The instant at which the rebalancer is to be deleted; 0 while that is not known, or never."""
    finished = rebalancer.finished == rebalancer.generation and rebalancer.finish_ms
    if not finished or rebalancer.ttl_seconds is None or rebalancer.expired:
        return 0
    return rebalancer.finish_ms + max(rebalancer.ttl_seconds, 0) * _SECOND_MS


def _start(rebalancer: Rebalancer, emit: emitting.Emitter) -> Iterator[None]:
    wanted = {states.workload_order(ref): ref for ref in rebalancer.workloads}
    asked = tuple(ref for order, ref in wanted.items() if order not in rebalancer.observed)
    dropped = tuple(
        seen.workload
        for order, seen in sorted(rebalancer.observed.items())
        if order not in wanted and seen.result != SUCCESSFUL
    )
    # Generation 1 shows the rebalancer's own creation, later ones the edit that added the workload.
    at_ms = rebalancer.created_ms if rebalancer.generation == 1 else rebalancer.edited_ms
    start = decisions.RebalanceStarted(
        name=rebalancer.name,
        uid=rebalancer.uid,
        generation=rebalancer.generation,
        at_ms=at_ms,
        asked=asked,
        dropped=dropped,
    )
    emit.decide(start, rebalancer.key)
    for ref in asked:
        key = binding_key(ref)
        ask = links.RescheduleAsked(
            rebalancer=rebalancer.name,
            uid=rebalancer.uid,
            generation=rebalancer.generation,
            at_ms=at_ms,
            key=key,
            workload=ref,
        )
        emit.send(ask, key, key)
        yield


def _count_answers(rebalancer: Rebalancer, emit: emitting.Emitter) -> Iterator[None]:
    # A copy, since each result takes its answer away; those that are left count as ignored.
    for answer in tuple(rebalancer.answers):
        awaited = rebalancer.observed.get(states.workload_order(answer.workload))
        if awaited is None or awaited.result or awaited.generation != answer.generation:
            continue
        result = decisions.WorkloadRebalanced(
            name=rebalancer.name,
            uid=rebalancer.uid,
            generation=answer.generation,
            workload=answer.workload,
            result=answer.result,
            reason=answer.reason,
        )
        emit.decide(result, rebalancer.key)
        yield


def _expire(rebalancer: Rebalancer, emit: emitting.Emitter) -> None:
    expired = decisions.RebalancerExpired(
        name=rebalancer.name, uid=rebalancer.uid, generation=rebalancer.generation
    )
    emit.decide(expired, rebalancer.key)
    # The deletion is a write like anybody's: an edit that came in between makes it late, and the edit stays.
    gone = specs.RebalancerDeleted(name=rebalancer.name, expects=rebalancer.version)
    emit.send(gone, rebalancer.key, rebalancer.key)


def binding_key(ref: shapes.WorkloadRef) -> str:
    """The key of the binding of a workload that a rebalancer names."""
    return keys.binding_key(ref.kind, ref.namespace, ref.name)
