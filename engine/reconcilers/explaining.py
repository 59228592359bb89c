"""Why a binding is where it is: the step that decided it is computed again, and tells as it goes.

Nothing is decided anew: the inputs, the time and the rules are those of the step in the log.
"""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from engine.deciders.facts import Facts
from engine.log import port
from engine.placement.decisions import Decision
from engine.placement.explain import Explanation
from engine.placement.requests import Request
from engine.reconcilers import recovery
from events import decisions, keys, shapes, times


class Basis(Struct, frozen=True, rename="camel"):
    """What the decision followed from: the step that names every position, the time and the rules."""

    shard: int
    step: int
    position: str
    number: int
    time: str
    release: str
    ends: dict[str, int]


class Explained(Struct, frozen=True, rename="camel"):
    """One decision on a binding with its reasons."""

    key: str
    basis: Basis
    trigger: str
    mode: str
    replicas: int
    requests: dict[str, int] | None
    previous: dict[str, int]
    placement: msgspec.Raw
    condition: str
    message: str
    clusters: dict[str, int]
    excluded: dict[str, int]
    explanation: Explanation | None
    overrides: dict[str, tuple[str, ...]] = {}
    """By cluster, the override policies of its newest work, in the order in which they are applied."""


async def explain(log: port.Log, key: str, at_number: int | None = None) -> Explained | None:
    """The newest decision on a binding, or the newest up to a number of the log; None where there was none."""
    wanted, overrides = await _deciding_step(log, key, at_number)
    if wanted is None:
        return None
    fold, facts = recovery.new_fold(keys.shard_of(key)), Facts()
    async for step in recovery.steps(log, fold.state.shard):
        await recovery.take_inputs(log, fold, facts, step.taken)
        if step.taken.number < wanted:
            fold.replay(facts, step.taken, step.record.value, step.data)
            continue
        taken = step.taken
        again = fold.decide(facts, taken.time_ms, taken.processed, term=taken.term, explained=key)
        found = _told(key, step, again.explanations)
        return None if found is None else msgspec.structs.replace(found, overrides=overrides)
    return None


async def _deciding_step(
    log: port.Log, key: str, at_number: int | None
) -> tuple[int | None, dict[str, tuple[str, ...]]]:
    """The newest step that placed the binding, and the override policies of its newest works."""
    found: int | None = None
    overrides: dict[str, tuple[str, ...]] = {}
    async for step in recovery.steps(log, keys.shard_of(key)):
        if at_number is not None and step.record.number > at_number:
            break
        for data in step.data:
            if isinstance(data, decisions.ScheduleDecided | decisions.ScheduleFailed) and data.key == key:
                found = step.taken.number
            elif isinstance(data, decisions.BindingDispatched) and data.key == key:
                _follow(overrides, data)
    return found, {name: overrides[name] for name in sorted(overrides)}


def _follow(overrides: dict[str, tuple[str, ...]], dispatched: decisions.BindingDispatched) -> None:
    for work in dispatched.works:
        if work.told == "applied":
            overrides[work.cluster] = tuple(_named(ref) for ref in work.overrides)
        if not overrides.get(work.cluster) or work.told == "removed":
            overrides.pop(work.cluster, None)


def _named(ref: shapes.OverrideRef) -> str:
    return f"{ref.kind} {ref.namespace}/{ref.name}" if ref.namespace else f"{ref.kind} {ref.name}"


def _told(
    key: str, step: recovery.RecordedStep, explanations: Sequence[tuple[Request, Decision]]
) -> Explained | None:
    if not explanations:
        return None
    request, decision = explanations[-1]
    taken = step.taken
    return Explained(
        key=key,
        basis=Basis(
            shard=taken.shard,
            step=taken.number,
            position=str(step.record.position),
            number=step.record.number,
            time=times.to_text(taken.time_ms),
            release=taken.release,
            ends=taken.ends,
        ),
        trigger=request.trigger,
        mode="Fresh" if request.fresh else "Steady",
        replicas=request.replicas,
        requests=None if request.requests is None else dict(request.requests),
        previous=dict(request.current),
        placement=msgspec.Raw(msgspec.json.encode(request.placement)),
        condition=decision.reason,
        message=decision.message,
        clusters=dict(decision.clusters),
        excluded=dict(decision.excluded),
        explanation=decision.explanation,
    )
