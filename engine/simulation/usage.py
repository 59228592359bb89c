"""Resource usage in a member's metrics API (``metrics.k8s.io``), derived from the requests.

Nothing is measured: a ready replica is assumed to use its requests; one without requests uses nothing. If a workload's
annotation sets a load, the containers of its ready replicas use equal parts of the load.
"""

from collections.abc import Iterator
from typing import Final

from engine.kubeapi.values import quantity
from engine.simulation import autoscaling, lists, nodes
from engine.simulation.state import MemberState, Workload
from events import times
from events.json_values import Json, object_at
from events.kube_objects import KubeObject

API_VERSION: Final = "metrics.k8s.io/v1beta1"
CLUSTER: Final = "resource.karmada.io/cluster"
"""Annotation that distinguishes the usage of several clusters, as in Karmada."""

_WINDOW: Final = "15s"
_RESOURCES: Final = ("cpu", "memory")


def pod_usage(
    state: MemberState, workload: Workload, manifest: KubeObject, now_ms: int
) -> Iterator[KubeObject]:
    """Yield the usage of a workload's ready pods."""
    specs = manifest.objects_at("spec", "template", "spec", "containers")
    load, parts = autoscaling.load_of(workload) or {}, max(workload.ready, 1) * max(len(specs), 1)
    equal = {name: quantity.of_nano(name, load[name] // parts) for name in _RESOURCES if name in load}
    containers = [
        {"name": str(container.get("name", "")), "usage": _usage(container) | equal} for container in specs
    ]
    for pod in lists.pods_of(state.spec.name, workload):
        if pod.ready:
            base = _metrics_object(state, "PodMetrics", pod.name, now_ms)
            labels: Json = {"labels": {**pod.labels}} if pod.labels else {}
            named = base.with_metadata({"namespace": pod.namespace, **labels})
            yield named.with_fields({"containers": containers})


def single_pod_usage(state: MemberState, pod: KubeObject, now_ms: int) -> Iterator[KubeObject]:
    """Yield the usage of a Pod without a controller, if it runs."""
    if pod.at("status", "phase") != "Running":
        return
    metadata = pod.metadata
    base = _metrics_object(state, "PodMetrics", pod.name, now_ms)
    shared = {name: metadata[name] for name in ("namespace", "labels") if name in metadata}
    containers = [
        {"name": str(container.get("name", "")), "usage": _usage(container)}
        for container in pod.objects_at("spec", "containers")
    ]
    yield base.with_metadata(shared).with_fields({"containers": containers})


def node_usage(state: MemberState, now_ms: int) -> Iterator[KubeObject]:
    """Yield the usage of a member's nodes: each has an equal part of the total."""
    all_nodes = list(nodes.objects(state, now_ms))
    usage = {
        name: quantity.of_nano(name, state.capacity.running.get(name, 0) // max(len(all_nodes), 1))
        for name in _RESOURCES
    }
    for node in all_nodes:
        base = _metrics_object(state, "NodeMetrics", node.name, now_ms)
        yield base.with_metadata({"labels": node.labels}).with_fields({"usage": usage})


def _metrics_object(state: MemberState, kind: str, name: str, now_ms: int) -> KubeObject:
    time = times.to_seconds_text(now_ms)
    metadata = {"name": name, "creationTimestamp": time, "annotations": {CLUSTER: state.spec.name}}
    return KubeObject(
        {
            "apiVersion": API_VERSION,
            "kind": kind,
            "metadata": metadata,
            "timestamp": time,
            "window": _WINDOW,
        }
    )


def _usage(container: Json) -> Json:
    resources = object_at(container, "resources")
    requested = {**object_at(resources, "limits"), **object_at(resources, "requests")}
    return {name: _text(name, requested.get(name)) for name in _RESOURCES}


def _text(name: str, amount: object) -> str:
    return quantity.of_nano(name, quantity.nano_units_of(amount) or 0)
