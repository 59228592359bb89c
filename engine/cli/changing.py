"""Commands that change one thing: ``scale``, ``label``, ``taint``, ``untaint``, ``cordon``, ``uncordon``."""

from typing import Annotated

from cyclopts import Parameter, validators

from engine.cli import failures, options, results
from engine.cli.client import Json
from events import forms_kinds as kinds
from events import limits

Replicas = Annotated[int, Parameter(validator=validators.Number(gte=0, lte=limits.REPLICAS_MAX))]
Overwrite = Annotated[bool, Parameter(negative=(), help="Change labels that have another value already.")]


def scale(
    kind: str,
    name: str = "",
    /,
    *,
    replicas: Replicas,
    place: options.Place = options.PLACE,
    server: options.Server = options.SERVER,
) -> int:
    """Set the number of replicas of a Deployment, StatefulSet, Job, or of a kind with a ReplicaInterpreter."""
    kind, name = split(kind, name)
    body: Json = {"kind": kind, "name": name, "namespace": place.namespace, "replicas": replicas}
    return _send(server, "scale", body)


def label(
    kind: str,
    name: str,
    /,
    *changes: str,
    overwrite: Overwrite = False,
    place: options.Place = options.PLACE,
    server: options.Server = options.SERVER,
) -> int:
    """Set labels (KEY=VALUE) or take them away (KEY-)."""
    if "/" in kind:
        kind, name, changes = *split(kind, ""), (name, *changes)
    if not changes:
        raise failures.usage("which labels?", "give KEY=VALUE to set one, KEY- to take one away")
    labels = dict(read_label(change) for change in changes)
    found = kinds.find(kind)
    if found is not None and found.route == "cluster":
        body: Json = {"labels": labels, "overwrite": overwrite}
        return _send(server, f"clusters/{name}/label", body)
    body = {
        "kind": kind,
        "name": name,
        "namespace": place.namespace,
        "labels": labels,
        "overwrite": overwrite,
    }
    return _send(server, "label", body)


def taint(
    cluster: str,
    /,
    *taints: str,
    server: options.Server = options.SERVER,
) -> int:
    """Set taints (KEY=VALUE:EFFECT or KEY:EFFECT) of a cluster, or take them away (with - at the end).

    EFFECT is NoSchedule (nothing new comes), PreferNoSchedule (nothing follows from it) or NoExecute (what runs there
    leaves, unless it tolerates the taint). A taint with the same key and effect is replaced.
    """
    cluster, words = _cluster(cluster, taints)
    if not words:
        raise failures.usage("which taints?", "give KEY=VALUE:EFFECT, or KEY:EFFECT- to take one away")
    added = [read_taint(word) for word in words if not word.endswith("-")]
    removed = [_removed(word.removesuffix("-")) for word in words if word.endswith("-")]
    body: Json = {"taints": added, "removed": removed}
    return _send(server, f"clusters/{cluster}/taint", body)


def untaint(cluster: str, /, *taints: str, server: options.Server = options.SERVER) -> int:
    """Take away taints (KEY:EFFECT, or KEY for all with this key) of a cluster."""
    cluster, words = _cluster(cluster, taints)
    if not words:
        raise failures.usage("which taints?", "give KEY:EFFECT, or KEY")
    body: Json = {"taints": [_removed(word.removesuffix("-")) for word in words]}
    return _send(server, f"clusters/{cluster}/untaint", body)


def cordon(cluster: str, /, server: options.Server = options.SERVER) -> int:
    """Let nothing new onto a cluster; what runs there stays."""
    return _send(server, f"clusters/{cluster}/cordon", {})


def uncordon(cluster: str, /, server: options.Server = options.SERVER) -> int:
    """Let a cluster be chosen again."""
    return _send(server, f"clusters/{cluster}/uncordon", {})


def split(kind: str, name: str) -> tuple[str, str]:
    """``deploy/foo`` means the same as ``deploy foo``; raises Failure where there is no name."""
    if not name:
        kind, _slash, name = kind.partition("/")
    if not name:
        raise failures.usage(f"which {kind}? give a name", f"{kind} NAME, or {kind}/NAME")
    return kind, name


def read_label(change: str) -> tuple[str, str | None]:
    """The label that is set, or with None taken away; raises Failure for what is neither."""
    key, equals, value = change.partition("=")
    if equals and key:
        return key, value
    if change.endswith("-") and len(change) > 1:
        return change[:-1], None
    raise failures.usage(f"{change!r} is no label", "write KEY=VALUE to set one, KEY- to take one away")


def read_taint(word: str) -> Json:
    """The taint that a word means; raises Failure for what is none."""
    named, colon, effect = word.rpartition(":")
    key, _equals, value = named.partition("=")
    if not colon or not key or not effect:
        raise failures.usage(f"{word!r} is no taint", "write KEY=VALUE:EFFECT, or KEY:EFFECT")
    return {"key": key, "value": value, "effect": effect}


def _send(server: options.Server, path: str, body: Json) -> int:
    """Sends a command, tells what became of it; gives the exit code."""
    with server.client() as client:
        return results.tell(client.command(path, body), as_json=server.json)


def _removed(word: str) -> Json:
    """The taint that is taken away; its value doesn't matter."""
    named, colon, effect = word.partition(":")
    key = named.partition("=")[0]
    if not key:
        raise failures.usage(f"{word!r} is no taint", "write KEY:EFFECT, or KEY")
    return {"key": key, "effect": effect if colon else ""}


def _cluster(cluster: str, words: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """``taint clusters member1 …``, as karmadactl writes it, means the same as ``taint member1 …``."""
    if cluster in {"cluster", "clusters"} and words:
        return words[0], words[1:]
    return cluster.removeprefix("cluster/"), words
