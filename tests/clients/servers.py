"""A server that is stopped or killed, and restarted on the same ports."""

# The library's annotations say too little.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from pathlib import Path

from kubernetes.client import ApiClient

from tests.brokers.processes import free_ports
from tests.processes import Server


def on_fixed_port(directory: Path) -> Server:
    """Return a server that is not started yet; its Kubernetes API has the same port at each start."""
    return Server(directory, "--kube-port", str(free_ports(1)[0]))


def disconnect(api: ApiClient) -> None:
    """Close a client's connections, which the library leaves to the garbage collector."""
    api.rest_client.pool_manager.clear()
    api.close()
