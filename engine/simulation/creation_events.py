"""Kubernetes Events of a member about pods that its quotas refuse; they last as long as the pods are missing."""

from collections.abc import Iterator

from engine.simulation import api_objects, quotas
from engine.simulation.specs import uid
from engine.simulation.state import MemberState
from events import times
from events.kube_objects import KubeObject


def events(state: MemberState) -> Iterator[KubeObject]:
    """Yield the Events, each about the object that creates the pods."""
    for workload in quotas.short(state):
        owner = api_objects.owner_of_pods(state, workload)
        namespace, since = workload.ref.namespace, times.to_seconds_text(workload.created_ms)
        involved = {name: owner[name] for name in ("apiVersion", "kind", "name", "uid")}
        number = uid(state.spec.name, str(owner["uid"]), "FailedCreate").replace("-", "")[:16]
        yield KubeObject(
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {
                    "name": f"{owner['name']}.{number}",
                    "namespace": namespace,
                    "uid": uid(state.spec.name, number),
                    "creationTimestamp": since,
                },
                "involvedObject": {**involved, "namespace": namespace},
                "type": "Warning",
                "reason": "FailedCreate",
                "message": f"Error creating: {quotas.refusal_of(state, workload)}",
                "source": {"component": f"{str(owner['kind']).lower()}-controller"},
                "firstTimestamp": since,
                "lastTimestamp": since,
                "count": 1,
            }
        )
