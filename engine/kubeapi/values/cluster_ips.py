"""Cluster IPs of Services, computed from their names: the same on each read and after a restart.

Nothing is allocated, so two Services among many thousands may have the same address. No network uses the addresses of
the control plane, but some clients, such as ``helm install --wait``, wait until a Service has one.
"""

import hashlib
import ipaddress
from typing import Final

from events.kube_objects import KubeObject

_RANGE: Final = ipaddress.IPv4Network("10.128.0.0/9")
_FIELDS: Final = ("clusterIP", "clusterIPs")


def with_cluster_ip(service: KubeObject, cluster: str = "") -> KubeObject:
    """Return a Service with its cluster IP in the member ``cluster`` or, if empty, in the control plane.

    An address in the manifest stays, also ``None`` of a headless Service; an ExternalName has no address.
    """
    spec = service.object_at("spec")
    if spec.get("type") == "ExternalName":
        return service
    address = spec.get("clusterIP") or address_in(_RANGE, cluster, *service.key)
    return service.with_fields({"spec": {**spec, "clusterIP": address, "clusterIPs": [address]}})


def without_cluster_ip(service: KubeObject) -> KubeObject:
    """Return a Service of the control plane without the address that ``with_cluster_ip`` has added."""
    spec = service.object_at("spec")
    if spec.get("clusterIP") != address_in(_RANGE, "", *service.key):
        return service
    return service.with_fields({"spec": {name: item for name, item in spec.items() if name not in _FIELDS}})


def address_in(network: ipaddress.IPv4Network, *names: str) -> str:
    """Return the address in a network that belongs to these names."""
    # The first and the last address of a network belong to no host.
    return str(network[1 + number_of(*names) % (network.num_addresses - 2)])


def number_of(*names: str) -> int:
    """Return a number of 64 bits that depends on these names only."""
    return int.from_bytes(hashlib.blake2b("\0".join(names).encode(), digest_size=8).digest(), "big")
