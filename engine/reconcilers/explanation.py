"""Explain why a binding is where it is: compute the deciding step again with explanations on.

Inputs, time and rules are those of the recorded step, so nothing is decided differently.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct

from engine.deciders import quota_amounts
from engine.deciders.required_bindings import NOT_REQUIRED
from engine.deciders.step_outputs import SchedulingPass
from engine.domain import bindings
from engine.log import port
from engine.placement.decisions import SUCCESS
from engine.reconcilers import preemption_explanation, recovery, replay
from engine.reconcilers.explanation_types import Basis, Explained
from events import decisions, keys, shapes, times


class _Newest(Struct):
    """The newest decisions on a binding, up to the requested position.

    ``placed`` is the number of the last step that scheduled the binding. ``required`` is the step in which the needs of
    dependent bindings last changed. ``refused`` is the step that refused the policy, with the reason. ``waits`` is the
    step since which the engine does not schedule the binding, with the reason: another scheduler, or suspended.
    ``withdrawn`` is the number of the step that withdrew the binding because its template was deleted. ``former`` are
    the clusters from which that step removed works and which have got no work since. ``is_deleted``: the template was
    deleted after these decisions and has not been created again.
    """

    placed: int | None
    required: recovery.RecordedStep | None
    overrides: dict[str, tuple[str, ...]]
    required_by: dict[str, decisions.RequiredBy]
    refused: tuple[recovery.RecordedStep, str] | None = None
    waits: tuple[recovery.RecordedStep, str] | None = None
    withdrawn: int | None = None
    former: set[str] = set()
    is_deleted: bool = False
    labels: dict[str, dict[str, str]] = {}
    not_preserved: dict[str, dict[str, str]] = {}
    preemption: preemption_explanation.History = msgspec.field(default_factory=preemption_explanation.History)


_FIRST: Final = (
    decisions.BindingDeclared,
    decisions.BindingClaimed,
    decisions.BindingRequired,
    decisions.BindingSuspended,
    decisions.ClaimRefused,
)
"""Decisions that start the history of a template, and a new history if a deleted template is created again."""

_SUSPENDED: Final = "a client has suspended its scheduling (spec.suspension.scheduling of the binding)"


async def explain(log: port.Log, key: str, at_number: int | None = None) -> Explained | None:
    """Explain the newest decision on a binding, up to a log number if given; None if there is none.

    Without a scheduling decision, the explanation names the dependent bindings that need this one, the policy that
    was refused, or the reason why the engine does not schedule the binding.
    """
    newest = await _newest(log, key, at_number)
    explained = None
    if newest.placed is not None:
        explained = await of_step(log, key, newest.placed)
    elif newest.required is not None and newest.required_by:
        names = {name for need in newest.required_by.values() for name in need.clusters}
        explained = _undecided(key, newest.required, "Required", sorted(names))
    elif newest.refused is not None:
        explained = _undecided(key, newest.refused[0], "ApplyPolicyFailed")
    elif newest.waits is not None:
        explained = _undecided(key, newest.waits[0], "NotScheduledHere", message=newest.waits[1])
    if explained is None:
        return None
    return msgspec.structs.replace(
        explained,
        is_deleted=newest.is_deleted,
        refused="" if newest.refused is None else newest.refused[1],
        overrides={name: newest.overrides[name] for name in sorted(newest.overrides)},
        required_by={by: newest.required_by[by].clusters for by in sorted(newest.required_by)},
        former=_former(newest, explained),
        labels={name: newest.labels[name] for name in sorted(newest.labels)},
        not_preserved={name: newest.not_preserved[name] for name in sorted(newest.not_preserved)},
        priority=newest.preemption.priority,
        preemption=newest.preemption.preemption,
        preempted={name: newest.preemption.by_cluster[name] for name in sorted(newest.preemption.by_cluster)},
    )


async def of_step(log: port.Partitions, key: str, number: int) -> Explained | None:
    """Return the decision on a binding in step ``number`` of its shard, computed again; None if there is none."""
    shard = keys.shard_of(key)
    replayed = replay.Replay(log, [shard])
    async for step in replayed.steps():
        recorded, taken = step.recorded, step.recorded.taken
        if taken.number < number:
            step.fold.replay(step.facts, taken, recorded.record.value, recorded.data)
            continue
        recomputed = step.fold.decide(
            step.facts, taken.time_ms, taken.processed, term=taken.term, explained=key
        )
        return _explained(key, recorded, recomputed.passes) or _unclaimed(key, recorded)
    for error in replayed.unreadable.values():
        raise error
    return None


async def _newest(log: port.Log, key: str, at_number: int | None) -> _Newest:
    """Fold the decisions on the binding up to ``at_number``."""
    newest = _Newest(None, None, {}, {})
    async for step in recovery.steps(log, keys.shard_of(key)):
        for record, data in zip(step.outputs, step.data, strict=True):
            # Stop within a step, as an as-of view does: the views fold single records, not whole steps.
            if at_number is not None and record.number > at_number:
                return newest
            if getattr(data, "key", None) == key:
                newest.preemption.take(data, step.taken.time_ms)
                _take(newest, step, data)
    return newest


def _take(newest: _Newest, step: recovery.RecordedStep, data: shapes.Event) -> None:
    if newest.is_deleted and isinstance(data, _FIRST):
        newest.placed, newest.required, newest.is_deleted = None, None, False
    match data:
        case decisions.ScheduleDecided() | decisions.ScheduleFailed():
            newest.placed = step.taken.number
        case decisions.BindingDispatched():
            _apply_dispatched(newest.overrides, data)
            _apply_preserved(newest, data)
            _apply_removed(newest, step.taken.number, data)
        case decisions.EvictionStarted() | decisions.EvictionFinished():
            _apply_preserved(newest, data)
        case decisions.ClaimRefused():
            newest.refused = step, data.fault
        case decisions.BindingClaimed():
            newest.refused = None
            reason = bindings.other_scheduler_reason(data.scheduler)
            newest.waits = (step, reason) if reason else None
        case decisions.BindingSuspended(scheduling=scheduling):
            newest.waits = (step, _SUSPENDED) if scheduling else None
        case decisions.BindingDeclared() | decisions.BindingReleased():
            newest.refused = None
        case decisions.BindingRequired():
            newest.required = step
            data.fold(newest.required_by)
        case decisions.BindingWithdrawn(reason=reason):
            newest.required_by.clear()
            newest.refused = newest.waits = None
            newest.is_deleted = reason != NOT_REQUIRED
            newest.withdrawn = step.taken.number if newest.is_deleted else None
            if not newest.is_deleted:
                newest.placed, newest.required = None, None
        case _:
            pass


def _apply_preserved(
    newest: _Newest,
    data: decisions.BindingDispatched | decisions.EvictionStarted | decisions.EvictionFinished,
) -> None:
    """Fold a decision into the labels that preserve state, and into the reasons why some could not be preserved."""
    match data:
        case decisions.BindingDispatched(works=works):
            for work in works:
                newest.labels.pop(work.cluster, None)
                if work.labels:
                    newest.labels[work.cluster] = work.labels
        case decisions.EvictionStarted(cluster=cluster, not_preserved=missing) if missing:
            newest.not_preserved[cluster] = missing
        case _:
            newest.not_preserved.pop(data.cluster, None)


def _apply_dispatched(overrides: dict[str, tuple[str, ...]], dispatched: decisions.BindingDispatched) -> None:
    for work in dispatched.works:
        if work.state == "applied":
            overrides[work.cluster] = tuple(
                f"{ref.kind} {keys.full_name(ref.namespace, ref.name)}" for ref in work.overrides
            )
        if not overrides.get(work.cluster) or work.state == "removed":
            overrides.pop(work.cluster, None)


def _apply_removed(newest: _Newest, number: int, dispatched: decisions.BindingDispatched) -> None:
    for work in dispatched.works:
        if work.state == "removed" and number == newest.withdrawn:
            newest.former.add(work.cluster)
        else:
            newest.former.discard(work.cluster)


def _former(newest: _Newest, explained: Explained) -> tuple[str, ...]:
    needed = (name for need in newest.required_by.values() for name in need.clusters)
    return () if newest.is_deleted else tuple(sorted(newest.former & {*explained.clusters, *needed}))


def _explained(key: str, step: recovery.RecordedStep, passes: Sequence[SchedulingPass]) -> Explained | None:
    if not passes:
        return None
    request, decision = passes[-1].request, passes[-1].decision
    return Explained(
        key=key,
        basis=_basis(step),
        trigger=request.trigger,
        mode="Fresh" if request.fresh else "Steady",
        replicas=request.replicas,
        requests=None
        if request.requests is None
        else {name: quota_amounts.shown(name, amount) for name, amount in request.requests},
        previous=dict(request.current),
        placement=msgspec.Raw(msgspec.json.encode(request.placement)),
        condition=decision.reason,
        message=decision.message,
        clusters=dict(decision.clusters),
        excluded=dict(decision.excluded),
        explanation=decision.explanation,
    )


def _unclaimed(key: str, step: recovery.RecordedStep) -> Explained | None:
    """Return the recorded decision on a binding without a policy, made without the scheduler; None if there is none."""
    for data in reversed(step.data):
        match data:
            case decisions.ScheduleDecided() if data.key == key:
                condition, message = SUCCESS, ""
                clusters = {target.name: target.replicas for target in data.clusters}
            case decisions.ScheduleFailed() if data.key == key:
                condition, message, clusters = data.reason, data.message, {}
            case _:
                continue
        return Explained(
            key=key,
            basis=_basis(step),
            trigger=data.trigger,
            mode=data.mode,
            replicas=sum(clusters.values()),
            requests=None,
            previous={},
            placement=msgspec.Raw(b"{}"),
            condition=condition,
            message=message,
            clusters=clusters,
            excluded={},
            explanation=None,
        )
    return None


def _undecided(
    key: str, step: recovery.RecordedStep, trigger: str, clusters: Sequence[str] = (), *, message: str = ""
) -> Explained:
    """Explain a template without a scheduling decision: only dependents need it, its policy is refused, or it waits."""
    return Explained(
        key=key,
        basis=_basis(step),
        trigger=trigger,
        mode="",
        replicas=0,
        requests=None,
        previous={},
        placement=msgspec.Raw(b"{}"),
        condition="",
        message=message,
        clusters=dict.fromkeys(clusters, 0),
        excluded={},
        explanation=None,
    )


def _number(step: recovery.RecordedStep) -> int:
    """Return the lowest sequence number as of which the views show all decisions of a step."""
    return (step.outputs[-1] if step.outputs else step.record).number


def _basis(step: recovery.RecordedStep) -> Basis:
    taken = step.taken
    return Basis(
        shard=taken.shard,
        step=taken.number,
        position=str(step.record.position),
        number=_number(step),
        time=times.to_text(taken.time_ms),
        release=taken.release,
        ends=taken.ends,
    )
