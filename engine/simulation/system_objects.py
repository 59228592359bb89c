"""Objects that a member has from the start: pods of its control plane, ``coredns``, ``kube-proxy``, and roles.

They exist in every cluster, and clients look for them. They are derived, can't be written, and take none of the
member's capacity.
"""

from collections.abc import Iterator
from typing import Final

from engine.domain import namespaces
from engine.kubeapi.rights import bootstrap_roles
from engine.simulation import addresses, nodes
from engine.simulation.specs import uid
from engine.simulation.state import MemberState
from events import times
from events.json_values import Json
from events.kube_fields import controlled_by
from events.kube_objects import KubeObject
from events.validation.kinds_table import RELEASE

_DNS: Final = "coredns"
_PROXY: Final = "kube-proxy"
_STATIC: Final = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
_DNS_HASH: Final = "6f6b679f8f"
_DNS_SUFFIXES: Final = ("b8vq2", "x7kcm")
_DNS_LABELS: Final[Json] = {"k8s-app": "kube-dns"}
_PROXY_LABELS: Final[Json] = {"k8s-app": _PROXY}
_ROLES: Final = frozenset({"cluster-admin", "admin", "edit", "view"})


def of_kind(state: MemberState, qualified: str, created_ms: int) -> Iterator[KubeObject]:
    """Yield the objects of a kind; ``created_ms`` is when the member joined."""
    created = times.to_seconds_text(created_ms)
    match qualified:
        case "pods":
            yield from _pods(state, created)
        case "deployments.apps":
            status = {"replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2}
            available = {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}
            yield _object(state, "apps/v1", "Deployment", _DNS, created).with_fields(
                {
                    "spec": {"replicas": 2, **_template(_DNS, _DNS_LABELS)},
                    "status": {"observedGeneration": 1, **status, "conditions": [available]},
                }
            )
        case "replicasets.apps":
            value = _object(state, "apps/v1", "ReplicaSet", f"{_DNS}-{_DNS_HASH}", created)
            owned = _owned(state, value, "Deployment", _DNS)
            yield owned.with_fields(
                {
                    "spec": {"replicas": 2, **_template(_DNS, _DNS_LABELS)},
                    "status": {"replicas": 2, "readyReplicas": 2, "availableReplicas": 2},
                }
            )
        case "daemonsets.apps":
            counts = dict.fromkeys(
                ("currentNumberScheduled", "desiredNumberScheduled", "numberReady", "numberAvailable"), 1
            )
            status = {"observedGeneration": 1, "numberMisscheduled": 0, **counts, "updatedNumberScheduled": 1}
            value = _object(state, "apps/v1", "DaemonSet", _PROXY, created)
            yield value.with_fields({"spec": _template(_PROXY, _PROXY_LABELS), "status": status})
        case "clusterroles.rbac.authorization.k8s.io" | "clusterrolebindings.rbac.authorization.k8s.io":
            yield from _roles(state, qualified.partition(".")[0], created)
        case _:
            return


def _pods(state: MemberState, created: str) -> Iterator[KubeObject]:
    for name in _STATIC:
        pod = _object(
            state, "v1", "Pod", f"{name}-{nodes.control_plane(state)}", created, {"component": name}
        )
        yield _running(state, pod, name, created)
    for suffix in _DNS_SUFFIXES:
        labels = {**_DNS_LABELS, "pod-template-hash": _DNS_HASH}
        pod = _object(state, "v1", "Pod", f"{_DNS}-{_DNS_HASH}-{suffix}", created, labels)
        owned = _owned(state, pod, "ReplicaSet", f"{_DNS}-{_DNS_HASH}")
        yield _running(state, owned, _DNS, created)
    pod = _object(state, "v1", "Pod", f"{_PROXY}-zq4lp", created, _PROXY_LABELS)
    yield _running(state, _owned(state, pod, "DaemonSet", _PROXY), _PROXY, created)


def _running(state: MemberState, pod: KubeObject, container: str, created: str) -> KubeObject:
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": created}
        for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    ]
    running = {
        "name": container,
        "image": _image(container),
        "imageID": "",
        "ready": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": created}},
    }
    return pod.with_fields(
        {
            "spec": {"nodeName": nodes.control_plane(state), "containers": _containers(container)},
            "status": {
                "phase": "Running",
                "podIP": addresses.of_pod(state.spec.name, namespaces.SYSTEM, pod.name),
                "hostIP": addresses.of_node(state.spec.name, nodes.control_plane(state)),
                "startTime": created,
                "conditions": conditions,
                "containerStatuses": [running],
            },
        }
    )


def _roles(state: MemberState, plural: str, created: str) -> Iterator[KubeObject]:
    for value in bootstrap_roles.objects():
        if f"{value.kind.lower()}s" == plural and value.name in _ROLES:
            own = {"uid": uid(state.spec.name, plural, value.name), "creationTimestamp": created}
            yield value.with_metadata(own)


def _object(
    state: MemberState, api_version: str, kind: str, name: str, created: str, labels: Json | None = None
) -> KubeObject:
    metadata: Json = {
        "name": name,
        "namespace": namespaces.SYSTEM,
        "uid": uid(state.spec.name, kind, namespaces.SYSTEM, name),
        "creationTimestamp": created,
        "labels": labels or (_PROXY_LABELS if kind == "DaemonSet" else _DNS_LABELS),
    }
    return KubeObject(
        {
            "apiVersion": api_version,
            "kind": kind,
            "metadata": metadata | ({} if kind == "Pod" else {"generation": 1}),
        }
    )


def _owned(state: MemberState, value: KubeObject, kind: str, name: str) -> KubeObject:
    owner = controlled_by("apps/v1", kind, name, uid(state.spec.name, kind, namespaces.SYSTEM, name))
    return value.with_metadata({"ownerReferences": [owner]})


def _template(name: str, labels: Json) -> Json:
    template = {"metadata": {"labels": labels}, "spec": {"containers": _containers(name)}}
    return {"selector": {"matchLabels": labels}, "template": template}


def _containers(name: str) -> list[Json]:
    return [{"name": name, "image": _image(name)}]


def _image(name: str) -> str:
    return f"registry.k8s.io/{name}:{RELEASE}"
