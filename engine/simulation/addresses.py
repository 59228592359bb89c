"""Addresses in a member, derived from names: the same on each request and after a restart.

No address is allocated: two pods in a member with many thousands of pods may have the same one.
"""

import ipaddress
from typing import Final

from engine.kubeapi.admission.rules.core import NODE_PORTS
from engine.kubeapi.values.cluster_ips import address_in, number_of

_NODES: Final = ipaddress.IPv4Network("172.16.0.0/12")
_PODS: Final = ipaddress.IPv4Network("10.0.0.0/9")
_BALANCERS: Final = ipaddress.IPv4Network("198.18.0.0/15")
"""Addresses of load balancers. The range is reserved for benchmarks (RFC 2544), so none of them is public."""


def of_node(cluster: str, name: str) -> str:
    """Return the internal address of a node."""
    return address_in(_NODES, cluster, name)


def of_pod(cluster: str, namespace: str, name: str) -> str:
    """Return the address of a pod."""
    return address_in(_PODS, cluster, namespace, name)


def of_balancer(cluster: str, namespace: str, name: str) -> str:
    """Return the load balancer's address for a Service or an Ingress; ``name`` includes the kind."""
    return address_in(_BALANCERS, cluster, namespace, name)


def node_port(namespace: str, name: str, port: object, skipped: int) -> int:
    """Return a node port for a port of a Service, from Kubernetes' default range.

    The port is computed from the arguments. To avoid a port that is taken, call again with a higher ``skipped``.
    A Service has the same node port in all clusters, as in Karmada, where the control plane assigns it.
    """
    return NODE_PORTS[(number_of(namespace, name, str(port)) + skipped) % len(NODE_PORTS)]
