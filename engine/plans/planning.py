"""Plan a change: fork the log, apply the change, run the fork until it is stable, and compare."""

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from typing import Final

from msgspec import structs

from engine.log import port
from engine.plans import comparison, fork_log, recorded_shards, summaries
from engine.plans.fork import Fork
from engine.plans.predictions import Prediction
from engine.plans.questions import Question
from events import codec, rejections, times

_NOT_EVICTED: Final = (
    "no ClusterTaintPolicy evicts workloads from clusters that fail: they stay assigned to them"
)
Unchanged = Callable[[], Awaitable[Prediction]]
"""Predicts, from the same state, what happens without the change."""


def without_change(question: Question) -> Question:
    """Return the question with the same state and time, without inputs and failures."""
    return structs.replace(question, inputs=(), failures=())


async def prepare(log: port.NumberedLog, question: Question, shards: recorded_shards.RecordedShards) -> Fork:
    """Return the engine at the question's log number, for one prediction; raises the log's errors.

    ``shards`` are new, or were used for a fork at this number or an earlier one.
    """
    forked = await fork_log.fork(log, question.number)
    fork = Fork(forked, question.simulated, question.began_ms, shards)
    await fork.start()
    return fork


async def predict_on(
    fork: Fork, question: Question, unchanged: Unchanged, progress: Callable[[int], None] = lambda _: None
) -> Prediction:
    """Apply a change to a prepared engine and return the effect; prepare another engine for each prediction.

    ``unchanged`` is called only if the engine was not stable before the change. ``progress`` gets the virtual time that
    has passed, in milliseconds. Raises the log's errors, and questions.PlanError.
    """
    prediction = await outcome(fork, question, progress)
    if fork.was_stable:
        return prediction
    is_change = question.inputs or question.failures
    return comparison.caused(prediction, await unchanged() if is_change else prediction)


async def outcome(
    fork: Fork, question: Question, progress: Callable[[int], None] = lambda _: None
) -> Prediction:
    """Return everything that happens after a change, even if not caused by it; raises the errors of ``predict_on``."""
    forked, number = fork.log, fork.number
    began_ms = fork.begin(question.began_ms, question.faults)
    await fork.take_over()
    first, count = len(forked.added), len(fork.before.workloads)
    unready = frozenset(fork.worker.facts.not_ready)
    is_settled = await fork.run(question.inputs, question.failures, question.horizon_ms, progress)
    failing = {failure.member for failure in question.failures if failure.kind == "down"}
    failed = failing | fork.worker.facts.not_ready
    added = forked.added[first:]
    before, after = comparison.compared(fork.before, fork.worker.folds, added, failing)
    recorded, omitted = comparison.decoded(added)
    listed = recorded[: comparison.EVENTS_MAX]
    decided_ms = comparison.first_decisions_ms(added, began_ms)
    changed = comparison.changes(before, after, recorded, decided_ms, failed, unready)
    return Prediction(
        number=number,
        time=times.to_text(began_ms),
        horizon_ms=question.horizon_ms,
        settled_ms=comparison.settled_ms(added, began_ms, before),
        is_settled=is_settled,
        workloads=count + len(after.keys() - before.keys()),
        changed=comparison.with_needed_capacity(changed, fork.worker.folds, fork.worker.facts, failed),
        unplaced=comparison.newly_unplaced(before, after),
        clusters=comparison.loads(fork.before.capacity, recorded),
        events=comparison.events(listed, began_ms),
        omitted=omitted + len(recorded) - len(listed),
        refused=_refused(recorded),
        assumptions=[
            *fork.assumptions,
            *([_NOT_EVICTED] if failing and not fork.worker.facts.taint_policies else []),
            *_silenced(failing, fork),
            *_autoscaled({change.key for change in changed} & set(_scaled(question.autoscaled, fork))),
        ],
    )


def _scaled(autoscaled: Mapping[str, str], fork: Fork) -> Iterator[str]:
    """Yield the keys of workloads whose autoscalers a policy propagates at the end of the prediction."""
    for scaler, key in autoscaled.items():
        bindings = (fold.state.bindings.get(scaler) for fold in fork.worker.folds)
        if any(binding is not None and binding.claim is not None for binding in bindings):
            yield key


def _autoscaled(keys: Collection[str]) -> list[str]:
    """Return the note that the autoscalers of these workloads are not run; empty without workloads."""
    if not keys:
        return []
    return [
        f"a HorizontalPodAutoscaler scales {summaries.names(sorted(keys))}: its decisions are not predicted"
    ]


def _silenced(failed: set[str], fork: Fork) -> list[str]:
    """Return notes on how soon the engine notices the failures of clusters with heartbeats."""
    by_grace: dict[int, list[str]] = {}
    for name in sorted(failed & fork.heartbeats.keys()):
        by_grace.setdefault(fork.heartbeats[name].grace_seconds, []).append(name)
    return [
        f"the failure of {summaries.names(names)} is noticed after {grace_s} s without heartbeats"
        for grace_s, names in sorted(by_grace.items())
    ]


def _refused(recorded: Sequence[codec.Decoded]) -> list[str]:
    """Return the keys of the inputs that the engine would reject, each with the reason."""
    refused = (event.data for event in recorded if isinstance(event.data, rejections.InputRejected))
    return [f"{rejection.key}: {rejection.reason}" for rejection in refused]
