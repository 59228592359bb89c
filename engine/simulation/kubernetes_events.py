"""Kubernetes Events of a member about its pods: those that the scheduler, the kubelet and the owner's controller write.

Events about existing pods are derived from the pods and shown for an hour. Events about pods that quotas refuse are
shown as long as the pods are missing.
"""

import zlib
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from engine.simulation import api_objects, quotas
from engine.simulation.specs import uid
from engine.simulation.state import MemberState
from events import times
from events.json_values import Json, at
from events.kube_objects import KubeObject

SHOWN_MS: Final = times.HOUR_MS
PODS_MAX: Final = 1_000
"""Maximum number of pods whose Events a list contains; these are the first pods in the order of workloads."""

_INVOLVED: Final = ("apiVersion", "kind", "name", "uid")
_SCHEDULER: Final = "default-scheduler"
_KUBELET: Final = "kubelet"
_CREATED: Final = {
    "StatefulSet": ("statefulset-controller", "create Pod {pod} in StatefulSet {owner} successful"),
    "ReplicaSet": ("replicaset-controller", "Created pod: {pod}"),
    "DaemonSet": ("daemonset-controller", "Created pod: {pod}"),
    "Job": ("job-controller", "Created pod: {pod}"),
}
"""By the kind of the owner: the controller, and its message about a new pod."""


class _Message(NamedTuple):
    reason: str
    message: str
    component: str
    involved: Json
    type: str = "Normal"


def of_pods(cluster: str, pods: Iterable[KubeObject]) -> Iterator[KubeObject]:
    """Yield the Events about some pods of a cluster."""
    for pod in pods:
        namespace, since = pod.namespace, pod.text_at("metadata", "creationTimestamp")
        for message in (*_of_owner(pod), *_of_pod(pod)):
            number = f"{zlib.crc32(f'{message.reason} {message.message}'.encode()):08x}"
            name = f"{message.involved['name']}.{number}{times.from_text(since) & 0xFFFFFFFF:08x}"
            yield _event(name, namespace, uid(cluster, namespace, name), since, message)


def of_refused_pods(state: MemberState) -> Iterator[KubeObject]:
    """Yield the Events about pods that quotas refuse, each about the object that creates the pods."""
    for workload in quotas.with_refused_pods(state):
        owner = api_objects.owner_of_pods(state, workload)
        number = uid(state.spec.name, owner["uid"], "FailedCreate").replace("-", "")[:16]
        message = _Message(
            "FailedCreate",
            f"Error creating: {quotas.refusal_of(state, workload)}",
            f"{owner['kind'].lower()}-controller",
            {name: item for name, item in owner.items() if name in _INVOLVED},
            "Warning",
        )
        yield _event(
            f"{owner['name']}.{number}",
            workload.ref.namespace,
            uid(state.spec.name, number),
            times.to_seconds_text(workload.created_ms),
            message,
        )


def _event(name: str, namespace: str, event_uid: str, since: str, message: _Message) -> KubeObject:
    return KubeObject(
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": event_uid,
                "creationTimestamp": since,
            },
            "involvedObject": {**message.involved, "namespace": namespace},
            "type": message.type,
            "reason": message.reason,
            "message": message.message,
            "source": {"component": message.component},
            "reportingComponent": message.component,
            "reportingInstance": "",
            "eventTime": None,
            "firstTimestamp": since,
            "lastTimestamp": since,
            "count": 1,
        }
    )


def _of_owner(pod: KubeObject) -> Iterator[_Message]:
    for owner in pod.objects_at("metadata", "ownerReferences"):
        component, message = _CREATED.get(str(owner.get("kind")), ("", ""))
        # A client may write a pod whose owner reference lacks fields.
        if component and all(name in owner for name in _INVOLVED):
            involved = {name: owner[name] for name in _INVOLVED}
            text = message.format(pod=pod.name, owner=owner["name"])
            yield _Message("SuccessfulCreate", text, component, involved)


def _of_pod(pod: KubeObject) -> Iterator[_Message]:
    """The Events about a pod: its scheduling, and for each container its image and its start."""
    involved: Json = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid}
    statuses = pod.objects_at("status", "containerStatuses")
    waiting = [str(at(status, "state", "waiting", "reason") or "") for status in statuses]
    unscheduled = pod.condition("PodScheduled")
    if unscheduled.get("status") == "False":
        yield _Message(
            "FailedScheduling", str(unscheduled.get("message", "")), _SCHEDULER, involved, "Warning"
        )
        return
    if node := pod.at("spec", "nodeName"):
        text = f"Successfully assigned {pod.namespace}/{pod.name} to {node}"
        yield _Message("Scheduled", text, _SCHEDULER, involved)
    for container in pod.objects_at("spec", "containers"):
        image, container_name = container.get("image"), container.get("name")
        if any(waiting):
            yield _Message("BackOff", f'Back-off pulling image "{image}"', _KUBELET, involved, "Warning")
        elif node:
            text = f'Container image "{image}" already present on machine'
            yield _Message("Pulled", text, _KUBELET, involved)
            yield _Message("Created", f"Created container: {container_name}", _KUBELET, involved)
            yield _Message("Started", f"Started container {container_name}", _KUBELET, involved)
