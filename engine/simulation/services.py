"""Services of a member as its own API shows them: cluster IPs and node ports, and the addresses of their pods.

The addresses of pods are in EndpointSlices, and in Endpoints for clients of the older API.
"""

from collections.abc import Iterable
from typing import Final, TypedDict

from engine.kubeapi.admission.rules.core import WITH_NODE_PORTS
from engine.kubeapi.values import cluster_ips
from engine.simulation import addresses
from engine.simulation.specs import uid
from events.json_values import Json, as_list, objects_at
from events.kube_fields import controlled_by
from events.kube_objects import KubeObject

_SERVICE_NAME: Final = "kubernetes.io/service-name"
_SLICE_ENDPOINTS_MAX: Final = 1_000
"""Maximum number of endpoints of an EndpointSlice in the Kubernetes API; further ones are omitted."""


def with_addresses(cluster: str, service: KubeObject) -> KubeObject:
    """Return a Service with its cluster IP and node ports; values in its manifest stay."""
    service = cluster_ips.with_cluster_ip(service, cluster)
    spec = service.object_at("spec")
    if spec.get("type") not in WITH_NODE_PORTS:
        return service
    ports = _with_node_ports(service.key, objects_at(spec, "ports"))
    return service.with_fields({"spec": {**spec, "ports": ports}})


def _with_node_ports(service: tuple[str, str], ports: list[Json]) -> list[Json]:
    """Return the ports of a Service with their node ports; as in Kubernetes, none occurs twice for a protocol."""
    used = {f"{port.get('protocol')}/{port.get('nodePort')}" for port in ports}
    result: list[Json] = []
    for port in ports:
        number = port.get("nodePort")
        for skipped in range(0 if number else len(ports)):
            number = addresses.node_port(*service, port.get("port"), skipped)
            if f"{port.get('protocol')}/{number}" not in used:
                break
        used.add(f"{port.get('protocol')}/{number}")
        result.append({**port, "nodePort": number})
    return result


def endpoint_slices(cluster: str, services: Iterable[KubeObject], pods: list[KubeObject]) -> list[KubeObject]:
    """Return the EndpointSlices of all Services that have a selector."""
    by_namespace: dict[str, list[KubeObject]] = {}
    for pod in pods:
        by_namespace.setdefault(pod.namespace, []).append(pod)
    return [
        _slice(cluster, service, by_namespace.get(service.namespace, []))
        for service in services
        if service.object_at("spec", "selector") and service.at("spec", "type") != "ExternalName"
    ]


def endpoints(cluster: str, slices: Iterable[KubeObject]) -> list[KubeObject]:
    """Return the Endpoints of the Services with these EndpointSlices."""
    return [_endpoints(cluster, endpoint_slice) for endpoint_slice in slices]


def _endpoints(cluster: str, of_slice: KubeObject) -> KubeObject:
    addresses = [
        {
            "ip": address,
            **{field: endpoint[field] for field in ("nodeName", "targetRef") if field in endpoint},
        }
        for endpoint in of_slice.objects_at("endpoints")
        for address in as_list(endpoint["addresses"]) or ()
    ]
    subset: Json = {"addresses": addresses, "ports": of_slice.at("ports")}
    return KubeObject(
        {
            "apiVersion": "v1",
            "kind": "Endpoints",
            "metadata": {
                "name": of_slice.labels[_SERVICE_NAME],
                "namespace": of_slice.namespace,
                "uid": uid(cluster, "endpoints", of_slice.uid),
                "creationTimestamp": of_slice.at("metadata", "creationTimestamp"),
                "labels": {"endpoints.kubernetes.io/managed-by": "endpoint-controller"},
            },
            "subsets": [subset] if addresses else [],
        }
    )


def _slice(cluster: str, service: KubeObject, pods: list[KubeObject]) -> KubeObject:
    namespace, name = service.key
    selector = service.object_at("spec", "selector")
    chosen = [pod for pod in pods if selector.items() <= pod.labels.items() and pod.at("status", "podIP")]
    owner = controlled_by("v1", "Service", name, service.uid)
    return KubeObject(
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": f"{name}-{uid(cluster, 'slice', namespace, name)[:5]}",
                "namespace": namespace,
                "uid": uid(cluster, "slice", service.uid),
                "creationTimestamp": service.at("metadata", "creationTimestamp"),
                "labels": {
                    _SERVICE_NAME: name,
                    "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
                },
                "ownerReferences": [owner],
            },
            "addressType": "IPv4",
            "endpoints": [_endpoint(pod) for pod in chosen[:_SLICE_ENDPOINTS_MAX]],
            "ports": [_port(port, chosen) for port in service.objects_at("spec", "ports")],
        }
    )


class _Endpoint(TypedDict, total=False):
    addresses: list[str]
    conditions: Json
    targetRef: Json
    nodeName: str


def _endpoint(pod: KubeObject) -> _Endpoint:
    endpoint: _Endpoint = {
        "addresses": [pod.text_at("status", "podIP")],
        "conditions": {"ready": True, "serving": True, "terminating": False},
        "targetRef": {"kind": "Pod", "name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
    }
    if name := pod.text_at("spec", "nodeName"):
        endpoint["nodeName"] = name
    return endpoint


def _port(port: Json, pods: list[KubeObject]) -> Json:
    """Return a port of a slice; a named target port gets its number from the first pod that declares the name."""
    target = port.get("targetPort") or port.get("port")
    if isinstance(target, str):
        numbers = (
            port.get("containerPort")
            for pod in pods
            for container in pod.objects_at("spec", "containers")
            for port in objects_at(container, "ports")
            if port.get("name") == target
        )
        target = next(numbers, None)
    number: Json = {} if target is None else {"port": target}
    return {"name": port.get("name") or "", "protocol": port.get("protocol") or "TCP", **number}
