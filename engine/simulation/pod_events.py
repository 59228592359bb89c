"""Kubernetes Events of a member about its pods: those that the scheduler, the kubelet and the owner's controller write.

They are derived from the pods that exist, and are shown for an hour.
"""

import zlib
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from engine.simulation.specs import uid
from events import times
from events.json_values import Json, at, condition
from events.kube_objects import KubeObject

SHOWN_MS: Final = times.HOUR_MS
PODS_MAX: Final = 1_000
"""Pods with Events in one list, the first ones by workload."""

_SCHEDULER: Final = "default-scheduler"
_KUBELET: Final = "kubelet"
_CREATED: Final = {
    "StatefulSet": ("statefulset-controller", "create Pod {pod} in StatefulSet {owner} successful"),
    "ReplicaSet": ("replicaset-controller", "Created pod: {pod}"),
    "DaemonSet": ("daemonset-controller", "Created pod: {pod}"),
    "Job": ("job-controller", "Created pod: {pod}"),
}
"""By the kind of the owner: the controller, and its message about a new pod."""


class _PodMessage(NamedTuple):
    reason: str
    message: str
    component: str
    involved: Json
    type: str = "Normal"


def events(cluster: str, pods: Iterable[KubeObject]) -> Iterator[KubeObject]:
    """Yield the Events about some pods of a cluster."""
    for pod in pods:
        namespace, since = pod.namespace, pod.text_at("metadata", "creationTimestamp")
        for event in (*_of_owner(pod), *_of_pod(pod)):
            number = f"{zlib.crc32(f'{event.reason} {event.message}'.encode()):08x}"
            name = f"{event.involved['name']}.{number}{times.from_text(since) & 0xFFFFFFFF:08x}"
            yield KubeObject(
                {
                    "apiVersion": "v1",
                    "kind": "Event",
                    "metadata": {
                        "name": name,
                        "namespace": namespace,
                        "uid": uid(cluster, namespace, name),
                        "creationTimestamp": since,
                    },
                    "involvedObject": {**event.involved, "namespace": namespace},
                    "type": event.type,
                    "reason": event.reason,
                    "message": event.message,
                    "source": {"component": event.component},
                    "firstTimestamp": since,
                    "lastTimestamp": since,
                    "count": 1,
                }
            )


def _of_owner(pod: KubeObject) -> Iterator[_PodMessage]:
    for owner in pod.objects_at("metadata", "ownerReferences"):
        component, message = _CREATED.get(str(owner.get("kind")), ("", ""))
        if component:
            involved = {name: owner[name] for name in ("apiVersion", "kind", "name", "uid")}
            text = message.format(pod=pod.name, owner=owner["name"])
            yield _PodMessage("SuccessfulCreate", text, component, involved)


def _of_pod(pod: KubeObject) -> Iterator[_PodMessage]:
    """The Events about a pod: its scheduling, and for each container its image and its start."""
    about: Json = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid}
    statuses = pod.objects_at("status", "containerStatuses")
    waiting = [str(at(each, "state", "waiting", "reason") or "") for each in statuses]
    unscheduled = condition(pod.document, "PodScheduled")
    if unscheduled.get("status") == "False":
        yield _PodMessage("FailedScheduling", str(unscheduled["message"]), _SCHEDULER, about, "Warning")
        return
    if node := pod.at("spec", "nodeName"):
        text = f"Successfully assigned {pod.namespace}/{pod.name} to {node}"
        yield _PodMessage("Scheduled", text, _SCHEDULER, about)
    for container in pod.objects_at("spec", "containers"):
        image, container_name = container.get("image"), container.get("name")
        if any(waiting):
            yield _PodMessage("BackOff", f'Back-off pulling image "{image}"', _KUBELET, about, "Warning")
        elif node:
            text = f'Container image "{image}" already present on machine'
            yield _PodMessage("Pulled", text, _KUBELET, about)
            yield _PodMessage("Created", f"Created container: {container_name}", _KUBELET, about)
            yield _PodMessage("Started", f"Started container {container_name}", _KUBELET, about)
