"""Writes as the command line makes them, for tests that need no process per command."""

import msgspec

from engine.cli import apply as cli_apply
from engine.cli import set_properties
from engine.cli.client import Client
from engine.cli.kube_objects import KubeObjects
from engine.cli.results import Result
from engine.objects.clusters import Taint
from events.json_values import Json


def apply(client: Client, content: bytes | Json) -> list[Result]:
    """Apply YAML or an object; return the result of each object."""
    return list(cli_apply.apply_files(KubeObjects(client), [("", _bytes(content))], "default"))


def delete(client: Client, content: bytes | Json) -> list[Result]:
    """Delete the objects of YAML or an object; return the result of each object."""
    return list(cli_apply.delete_files(KubeObjects(client), [("", _bytes(content))], "default"))


def taint(client: Client, cluster: str, key: str, value: str) -> list[Result]:
    """Add a NoExecute taint to a cluster."""
    return _retainted(client, cluster, [Taint(key=key, value=value, effect="NoExecute")], [])


def untaint(client: Client, cluster: str, key: str) -> list[Result]:
    """Remove the taints with a key from a cluster."""
    return _retainted(client, cluster, [], [Taint(key=key, effect="")])


def _retainted(client: Client, cluster: str, added: list[Taint], removed: list[Taint]) -> list[Result]:
    def compute(taints: list[Taint]) -> list[Taint]:
        return set_properties.retainted(cluster, taints, added, removed)

    return [set_properties.change_taints(KubeObjects(client), cluster, "tainted", compute)]


def _bytes(content: bytes | Json) -> bytes:
    return content if isinstance(content, bytes) else msgspec.json.encode(content)
