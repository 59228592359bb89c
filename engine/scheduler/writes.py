"""The writes that a decision still needs, given the newest version of its binding, and the decision's Events. Pure.

A write is valid for that version only (its resourceVersion is a precondition), so lost writes are repeated and nothing
is written twice. A binding whose spec was changed by others after the decision gets a new decision instead.
"""

from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Struct

from engine.domain import marks, namespaces
from engine.observer.observed_bindings import SCHEDULED, Condition, ObservedBinding
from engine.placement import parsing
from events.json_values import DECODING_ERRORS, Json
from events.kube_objects import KubeObject
from events.observations import DecisionMade
from events.validation.known_kinds import WORK_GROUP

STATUS: Final = "status"
TRUE: Final = "True"


class Write(Struct, frozen=True):
    """A merge patch of a binding, or of its ``subresource``."""

    body: Json
    subresource: str = ""


def next_write(binding: ObservedBinding, decision: DecisionMade) -> Write | None:
    """Return the next write; None if the binding shows the whole decision, or was changed or replaced meanwhile."""
    generation = binding.metadata.generation
    if binding.metadata.uid != decision.uid or is_shown(binding, decision):
        return None
    if not _is_placed(binding, decision):
        return _placing(binding, decision) if generation == decision.generation else None
    return _status(binding, decision) if generation == _decided_generation(decision) else None


def is_shown(binding: ObservedBinding, decision: DecisionMade) -> bool:
    """Whether the binding has everything that the decision writes: clusters, placement, condition and status."""
    if not _is_placed(binding, decision):
        return False
    status, condition = binding.status, binding.scheduled
    if condition is None or (condition.status, condition.reason, condition.message) != (
        decision.status,
        decision.reason,
        decision.message,
    ):
        return False
    if decision.status != TRUE:
        return True
    return (
        status.scheduler_observed_generation == _decided_generation(decision)
        and status.scheduler_observing_affinity_name == decision.affinity
        and (not moves_time(decision) or status.last_scheduled_time >= decision.time)
    )


def moves_time(decision: DecisionMade) -> bool:
    """Whether a decision updates the binding's ``lastScheduledTime``."""
    return decision.status == TRUE and (decision.fresh or decision.places or bool(decision.applied))


def _decided_generation(decision: DecisionMade) -> int:
    """Return the binding's generation once the decision is written; ``places`` adds one, since it changes the spec."""
    return decision.generation + decision.places


def _is_placed(binding: ObservedBinding, decision: DecisionMade) -> bool:
    if decision.places and binding.placed != decision.clusters:
        return False
    return not decision.applied or is_same_placement(binding.applied, decision.applied)


def is_same_placement(current: str, decided: str) -> bool:
    """Whether two placements, as JSON, are equal; one that cannot be read equals no other."""
    if current == decided:
        return True
    try:
        return parsing.read_placement(current) == parsing.read_placement(decided)
    except DECODING_ERRORS:
        return False


def _placing(binding: ObservedBinding, decision: DecisionMade) -> Write:
    metadata: Json = {"resourceVersion": binding.metadata.resource_version}
    if decision.applied:
        metadata["annotations"] = {marks.APPLIED_PLACEMENT: decision.applied}
    body: Json = {"metadata": metadata}
    if decision.places:
        clusters = [
            {"name": name, **({"replicas": replicas} if replicas else {})}
            for name, replicas in decision.clusters.items()
        ]
        body["spec"] = {"clusters": clusters or None}
    return Write(body)


def _status(binding: ObservedBinding, decision: DecisionMade) -> Write:
    before = binding.scheduled
    condition = Condition(
        type=SCHEDULED,
        status=decision.status,
        reason=decision.reason,
        message=decision.message,
        last_transition_time=before.last_transition_time
        if before is not None and before.status == decision.status
        else decision.time,
    )
    others = binding.status.conditions
    conditions = (
        [*others, condition]
        if before is None
        else [condition if other.type == SCHEDULED else other for other in others]
    )
    status: Json = {"conditions": [msgspec.to_builtins(item) for item in conditions]}
    if decision.status == TRUE:
        status["schedulerObservedGeneration"] = _decided_generation(decision)
        status["schedulerObservingAffinityName"] = decision.affinity or None
    if moves_time(decision):
        status["lastScheduledTime"] = decision.time
    return Write(
        {"metadata": {"resourceVersion": binding.metadata.resource_version}, "status": status}, STATUS
    )


def events_of(binding: ObservedBinding, decision: DecisionMade, component: str) -> Iterator[KubeObject]:
    """Yield the Events that Karmada's scheduler writes, with its texts; ``component`` is this scheduler's name."""
    metadata, resource = binding.metadata, binding.spec.resource
    bound: Json = {
        "apiVersion": WORK_GROUP,
        "kind": decision.kind,
        "name": metadata.name,
        "uid": metadata.uid,
        "resourceVersion": metadata.resource_version,
    }
    if metadata.namespace:
        bound["namespace"] = metadata.namespace
    for involved in (bound, msgspec.to_builtins(resource)):
        yield _event(involved, decision, component)


def _event(involved: Json, decision: DecisionMade, component: str) -> KubeObject:
    is_success = decision.status == TRUE
    namespace = str(involved.get("namespace") or namespaces.DEFAULT)
    return KubeObject(
        {
            "apiVersion": "v1",
            "kind": "Event",
            # A decision always gives its Events the same names, so a repeated write is refused as already existing.
            "metadata": {
                "name": f"{involved.get('name')}.{decision.version:x}-{decision.uid[:8]}",
                "namespace": namespace,
            },
            "involvedObject": involved,
            "reason": "ScheduleBindingSucceed" if is_success else "ScheduleBindingFailed",
            "message": _text(decision) if is_success else decision.message,
            "type": "Normal" if is_success else "Warning",
            "source": {"component": component},
            "reportingComponent": component,
            "reportingInstance": "",
            "firstTimestamp": decision.time,
            "lastTimestamp": decision.time,
            "count": 1,
        }
    )


def _text(decision: DecisionMade) -> str:
    placed = ", ".join(f"{name}:{replicas}" for name, replicas in decision.clusters.items())
    colon = ":" if decision.namespace else ""
    return f"{decision.message} Result{colon} {{{placed}}}"
