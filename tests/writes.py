"""Writes as the command line makes them, for tests that need no process per command."""

import msgspec

from engine.cli import apply as cli_apply
from engine.cli import set_properties
from engine.cli.client import Client
from engine.cli.kube_objects import KubeObjects
from events.json_values import Json


def apply(client: Client, content: bytes | Json) -> list[Json]:
    """Apply YAML or an object; return the result of each object."""
    return cli_apply.apply_files(KubeObjects(client), [("", _bytes(content))], "default")


def delete(client: Client, content: bytes | Json) -> list[Json]:
    """Delete the objects of YAML or an object; return the result of each object."""
    return cli_apply.delete_files(KubeObjects(client), [("", _bytes(content))], "default")


def taint(client: Client, cluster: str, key: str, value: str) -> list[Json]:
    """Add a NoExecute taint to a cluster."""
    added: list[Json] = [{"key": key, "value": value, "effect": "NoExecute"}]
    return _retainted(client, cluster, added, [])


def untaint(client: Client, cluster: str, key: str) -> list[Json]:
    """Remove the taints with a key from a cluster."""
    return _retainted(client, cluster, [], [{"key": key, "effect": ""}])


def _retainted(client: Client, cluster: str, added: list[Json], removed: list[Json]) -> list[Json]:
    def compute(taints: list[Json]) -> list[Json]:
        return set_properties.retainted(cluster, taints, added, removed)

    return [set_properties.change_taints(KubeObjects(client), cluster, "tainted", compute)]


def _bytes(content: bytes | Json) -> bytes:
    return content if isinstance(content, bytes) else msgspec.json.encode(content)
