"""Services of a member as its own API shows them: cluster IPs and node ports, and the addresses of their pods.

These are in EndpointSlices, and in Endpoints for clients of the older API.
"""

from collections.abc import Iterable
from typing import Final

from engine.simulation import addresses
from engine.simulation.specs import uid
from events.json_values import Json, as_list, at, object_at, objects_at

_WITH_NODE_PORTS: Final = ("LoadBalancer", "NodePort")
_SERVICE_NAME: Final = "kubernetes.io/service-name"
_SLICE_ENDPOINTS_MAX: Final = 1_000
"""Maximum number of endpoints of a slice in the Kubernetes API; more are left out."""


def with_addresses(cluster: str, service: Json) -> Json:
    """Return a Service with its cluster IP and node ports; values in its manifest, ``None`` included, stay."""
    spec, metadata = object_at(service, "spec"), object_at(service, "metadata")
    if spec.get("type") == "ExternalName":
        return service
    names = cluster, str(metadata.get("namespace", "")), str(metadata["name"])
    address = spec.get("clusterIP") or addresses.of_service(*names)
    assigned: Json = {"clusterIP": address, "clusterIPs": [address]}
    if spec.get("type") in _WITH_NODE_PORTS:
        assigned["ports"] = [
            {**port, "nodePort": port.get("nodePort") or addresses.node_port(*names[1:], port.get("port"))}
            for port in objects_at(spec, "ports")
        ]
    return {**service, "spec": {**spec, **assigned}}


def endpoint_slices(cluster: str, services: Iterable[Json], pods: list[Json]) -> list[Json]:
    """Return the EndpointSlices of all Services that have a selector."""
    by_namespace: dict[object, list[Json]] = {}
    for pod in pods:
        by_namespace.setdefault(at(pod, "metadata", "namespace"), []).append(pod)
    return [
        _slice(cluster, service, by_namespace.get(at(service, "metadata", "namespace"), []))
        for service in services
        if object_at(service, "spec", "selector") and at(service, "spec", "type") != "ExternalName"
    ]


def endpoints(cluster: str, slices: Iterable[Json]) -> list[Json]:
    """Return the Endpoints of the Services with these EndpointSlices."""
    return [_endpoints(cluster, each) for each in slices]


def _endpoints(cluster: str, of_slice: Json) -> Json:
    metadata = object_at(of_slice, "metadata")
    name, namespace = str(object_at(metadata, "labels")[_SERVICE_NAME]), str(metadata["namespace"])
    addresses = [
        {"ip": address, **{field: each[field] for field in ("nodeName", "targetRef") if field in each}}
        for each in objects_at(of_slice, "endpoints")
        for address in as_list(each["addresses"]) or ()
    ]
    subset: Json = {"addresses": addresses, "ports": of_slice["ports"]}
    return {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid(cluster, "endpoints", str(metadata["uid"])),
            "creationTimestamp": metadata["creationTimestamp"],
            "labels": {"endpoints.kubernetes.io/managed-by": "endpoint-controller"},
        },
        "subsets": [subset] if addresses else [],
    }


def _slice(cluster: str, service: Json, pods: list[Json]) -> Json:
    metadata, spec = object_at(service, "metadata"), object_at(service, "spec")
    name, namespace = str(metadata["name"]), str(metadata.get("namespace", ""))
    selector = object_at(spec, "selector")
    chosen = [
        pod
        for pod in pods
        if selector.items() <= object_at(pod, "metadata", "labels").items() and at(pod, "status", "podIP")
    ]
    owner = {
        "apiVersion": "v1",
        "kind": "Service",
        "name": name,
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": f"{name}-{uid(cluster, 'slice', namespace, name)[:5]}",
            "namespace": namespace,
            "uid": uid(cluster, "slice", str(metadata["uid"])),
            "creationTimestamp": metadata["creationTimestamp"],
            "labels": {
                _SERVICE_NAME: name,
                "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
            },
            "ownerReferences": [owner],
        },
        "addressType": "IPv4",
        "endpoints": [_endpoint(pod) for pod in chosen[:_SLICE_ENDPOINTS_MAX]],
        "ports": [_port(port, chosen) for port in objects_at(spec, "ports")],
    }


def _endpoint(pod: Json) -> Json:
    metadata, spec, status = (object_at(pod, field) for field in ("metadata", "spec", "status"))
    node: Json = {"nodeName": spec["nodeName"]} if spec.get("nodeName") else {}
    return {
        "addresses": [status["podIP"]],
        "conditions": {"ready": True, "serving": True, "terminating": False},
        "targetRef": {
            "kind": "Pod",
            "name": metadata["name"],
            "namespace": metadata.get("namespace", ""),
            "uid": metadata["uid"],
        },
        **node,
    }


def _port(port: Json, pods: list[Json]) -> Json:
    """Return a port of a slice; the number of a named target port is that of the first pod that has it."""
    target = port.get("targetPort") or port.get("port")
    if isinstance(target, str):
        numbers = (
            each.get("containerPort")
            for pod in pods
            for container in objects_at(pod, "spec", "containers")
            for each in objects_at(container, "ports")
            if each.get("name") == target
        )
        target = next(numbers, None)
    number: Json = {} if target is None else {"port": target}
    return {"name": port.get("name") or "", "protocol": port.get("protocol") or "TCP", **number}
