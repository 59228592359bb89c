"""Changes of a Service's type: fields that only the former type has are dropped, as in Kubernetes.

A client that patches the type sends back the other fields as it read them, including defaults and assigned
values. Fields that it changed in the same request stay, and are validated.
"""

from typing import Final

from events.json_values import as_list, as_object, list_at
from events.kube_objects import KubeObject

_SERVICE: Final = ("v1", "Service")
_EXTERNAL: Final = "ExternalName"
_WITH_NODE_PORTS: Final = ("NodePort", "LoadBalancer")
_OF_ADDRESSES: Final = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy")
_OF_NODE_PORTS: Final = ("externalTrafficPolicy", "healthCheckNodePort")
_OF_BALANCERS: Final = ("allocateLoadBalancerNodePorts", "loadBalancerClass")


def without_former(before: KubeObject | None, value: KubeObject) -> KubeObject:
    """Return the object without the fields of its former type; ``before`` includes the API's defaults."""
    if before is None or value.type_meta != _SERVICE:
        return value
    old, new = before.object_at("spec"), value.object_at("spec")
    type_name = new.get("type") or "ClusterIP"
    if type_name == old.get("type"):
        return value
    former: tuple[str, ...] = ()
    if type_name == _EXTERNAL:
        former += _OF_ADDRESSES
    if type_name not in _WITH_NODE_PORTS:
        former += _OF_NODE_PORTS
    if type_name != "LoadBalancer":
        former += _OF_BALANCERS
    spec = {
        name: item for name, item in new.items() if name not in former or name not in old or item != old[name]
    }
    if type_name not in _WITH_NODE_PORTS and (ports := as_list(spec.get("ports"))):
        former_ports = list_at(old, "ports")
        assigned = [port.get("nodePort") for each in former_ports if (port := as_object(each)) is not None]
        spec["ports"] = [_without_node_port(port, assigned) for port in ports]
    return value.with_fields({"spec": spec})


def _without_node_port(value: object, assigned: list[object]) -> object:
    port = as_object(value)
    if port is None or port.get("nodePort") not in assigned:
        return value
    return {name: item for name, item in port.items() if name != "nodePort"}
