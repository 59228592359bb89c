"""Pure: the Kubernetes Events of a decision, one on the binding and one on its template."""

from collections.abc import Iterator
from typing import Final

import msgspec

from engine.observer.observed_bindings import ObservedBinding
from engine.scheduler import writes
from events.json_values import Json
from events.kube_objects import KubeObject
from events.observations import DecisionMade
from events.validation.known_kinds import WORK_GROUP

_DEFAULT: Final = "default"
"""The namespace of Events about cluster-scoped objects."""


def events_of(binding: ObservedBinding, decision: DecisionMade, component: str) -> Iterator[KubeObject]:
    """Yield the Events that Karmada's scheduler writes, with its texts; ``component`` is the name of ours."""
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
    is_success = decision.status == writes.TRUE
    namespace = str(involved.get("namespace") or _DEFAULT)
    return KubeObject(
        {
            "apiVersion": "v1",
            "kind": "Event",
            # The same decision has the same names, so a repeated write of its Events is refused as existing.
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
