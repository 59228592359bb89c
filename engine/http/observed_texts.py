"""One-line texts about observations of another control plane, such as a new version of an object. Pure."""

from collections.abc import Callable
from typing import Final

from engine.domain.bindings import SUCCESS, targets_text
from events import keys, vocabulary
from events.json_values import Json, object_at, objects_at
from events.kube_objects import KubeObject

_ABOUT: Final = {"object-observed", "object-vanished", "decision-compared", "decision-made"}
_EVENT: Final = "Event"


def text(event: str, data: Json, *, is_named: bool) -> str | None:
    """Return an observation in one line; None for an event that is not an observation.

    ``is_named``: the line begins with the object's name.
    """
    if event == "control-plane-restored":
        return f"restored from a backup: resourceVersion {data.get('version')} after {data.get('seen')}"
    if event not in _ABOUT:
        return None
    kind = str(data.get("kind"))
    name = keys.full_name(str(data.get("namespace") or ""), str(data.get("name") or ""))
    shown = _shown(event, kind, data)
    if event == "object-observed" and kind == _EVENT:
        return f"Event {_subject(_manifest(data))}: {shown}" if is_named else f"Event {shown}"
    if is_named:
        return f"{kind} {name}: {shown}"
    return shown if kind in vocabulary.BINDING_KINDS or event != "object-observed" else f"{kind}: {shown}"


def _shown(event: str, kind: str, data: Json) -> str:
    match event:
        case "object-vanished":
            return "deleted"
        case "decision-compared":
            return _compared(data)
        case "decision-made":
            return _result(data)
        case _:
            return _OF_KIND.get(kind, _template)(_manifest(data))


def _manifest(data: Json) -> KubeObject:
    return KubeObject(object_at(data, "manifest"))


def _compared(data: Json) -> str:
    observed = _result(object_at(data, "observed"))
    if data.get("verdict") == "same":
        return f"same: {observed}"
    why = f" ({data['why']})" if data.get("why") else ""
    return f"{data.get('verdict')}{why}: Karmada {observed}; Reballast {_result(object_at(data, 'computed'))}"


def _result(data: Json) -> str:
    """The clusters that scheduling chose, or the reason why it chose none."""
    if data.get("reason") == SUCCESS:
        return targets_text(object_at(data, "clusters"))
    return f"{data.get('reason')}: {data.get('message')}"


def _binding(value: KubeObject) -> str:
    spec = value.object_at("spec")
    placed = targets_text(
        {str(target.get("name")): target.get("replicas", 0) for target in objects_at(spec, "clusters")}
    )
    evicting = [str(task.get("fromCluster")) for task in objects_at(spec, "gracefulEvictionTasks")]
    leaving = f"; evicting from {', '.join(evicting)}" if evicting else ""
    scheduled = value.condition("Scheduled")
    failed = f"; {_result(scheduled)}" if scheduled and scheduled.get("reason") != SUCCESS else ""
    return f"{placed}{leaving}{failed}"


def _cluster(value: KubeObject) -> str:
    ready = value.condition("Ready")
    state = {"True": "ready", "False": "not ready"}.get(str(ready.get("status")), "readiness unknown")
    taints = [f"{taint.get('key')}:{taint.get('effect')}" for taint in value.objects_at("spec", "taints")]
    return f"{state}, tainted {', '.join(taints)}" if taints else state


def _event(value: KubeObject) -> str:
    return f"{value.at('reason')}: {value.at('message')}"


def _subject(value: KubeObject) -> str:
    """The object that an Event is about."""
    involved = value.object_at("involvedObject")
    name = keys.full_name(str(involved.get("namespace") or ""), str(involved.get("name")))
    return f"{involved.get('kind')} {name}"


def _rebalancer(value: KubeObject) -> str:
    count = len(value.objects_at("spec", "workloads"))
    results = [str(workload.get("result")) for workload in value.objects_at("status", "observedWorkloads")]
    return f"{results.count('Successful')} of {count} workloads rebalanced"


def _template(value: KubeObject) -> str:
    metadata, spec = value.metadata, value.object_at("spec")
    generation = f"generation {metadata['generation']}" if metadata.get("generation") else ""
    replicas = f"{spec['replicas']} replicas" if "replicas" in spec else ""
    leaving = "being deleted" if metadata.get("deletionTimestamp") else ""
    return (
        ", ".join(filter(None, (replicas, generation, leaving)))
        or f"version {metadata.get('resourceVersion')}"
    )


_OF_KIND: Final[dict[str, Callable[[KubeObject], str]]] = {
    **dict.fromkeys(vocabulary.BINDING_KINDS, _binding),
    "Cluster": _cluster,
    _EVENT: _event,
    "WorkloadRebalancer": _rebalancer,
}
