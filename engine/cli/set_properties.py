"""Commands that change one property: ``scale``, ``label``, ``taint``, ``untaint``, ``cordon``, ``uncordon``."""

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Annotated, Final

import msgspec
from cyclopts import Parameter, validators

from engine.cli import failures, kube_objects, next_commands, options, results, server_reads
from engine.cli.client import Client
from engine.cli.kube_objects import KubeObjects, Target
from engine.cli.results import Problem, Result
from engine.domain import replica_fields
from engine.kubeapi.values.taints import Effect
from engine.objects import interpreters
from engine.objects.clusters import Taint
from events import limits, vocabulary
from events.json_values import Json
from events.kube_objects import KubeObject
from events.validation import known_kinds as kinds

_CORDON: Final = Taint(key="cluster.karmada.io/unschedulable", effect=Effect.NO_SCHEDULE)
_EFFECTS: Final = (Effect.NO_SCHEDULE, Effect.NO_EXECUTE, Effect.PREFER_NO_SCHEDULE)
_SCALED: Final = frozenset({("apps/v1", "Deployment"), ("apps/v1", "StatefulSet"), ("apps/v1", "ReplicaSet")})

Retaint = Callable[[list[Taint]], list[Taint]]
"""A function from the current taints of a cluster to its new ones."""

Replicas = Annotated[
    int, Parameter(help="Number of replicas.", validator=validators.Number(gte=0, lte=limits.REPLICAS_MAX))
]
Taints = Annotated[str, Parameter(help="KEY=VALUE:EFFECT or KEY:EFFECT; with - at the end to remove it.")]
RemovedTaints = Annotated[str, Parameter(help="KEY:EFFECT, or KEY for all taints with this key.")]
Overwrite = Annotated[bool, Parameter(negative=(), help="Change labels that have another value already.")]


def scale(
    kind: options.Kind,
    name: options.Name = "",
    /,
    *,
    replicas: Replicas,
    scope: options.NamespaceOption = options.NAMESPACE,
    server: options.Server = options.SERVER,
) -> int:
    kind, name = split(kind, name)
    with server.client() as client:
        objects = KubeObjects(client)
        target = objects.target(kind, scope.namespace, name)
        return results.print_results([set_replicas(client, objects, target, replicas)], as_json=server.json)


def label(
    kind: options.Kind,
    name: options.Name,
    /,
    *changes: Annotated[str, Parameter(help="KEY=VALUE to set a label, KEY- to remove it.")],
    overwrite: Overwrite = False,
    scope: options.NamespaceOption = options.NAMESPACE,
    server: options.Server = options.SERVER,
) -> int:
    if "/" in kind:
        kind, name, changes = *split(kind, ""), (name, *changes)
    if not changes:
        raise failures.usage("missing labels", "give KEY=VALUE to set one, KEY- to remove one")
    labels: dict[str, str | None] = {}
    for key, value in map(read_label, changes):
        if (value is None) != (labels.setdefault(key, value) is None):
            raise _conflicting_options(f"label {key}")
        labels[key] = value

    def relabelled(live: KubeObject) -> Json | None:
        present = live.labels
        for key, value in labels.items():
            if not overwrite and value is not None and present.get(key, value) != value:
                raise failures.Failure(
                    f"metadata.labels.{key}: has the value {present[key]!r} already",
                    "use --overwrite to change it",
                )
        if all(present.get(key) == value for key, value in labels.items()):
            return None
        return {"metadata": {"labels": labels}}

    with server.client() as client:
        objects = KubeObjects(client)
        target = objects.target(kind, scope.namespace, name)
        return results.print_results([objects.change(target, "labeled", relabelled)], as_json=server.json)


def taint(
    cluster: options.Cluster,
    /,
    *taints: Taints,
    server: options.Server = options.SERVER,
) -> int:
    cluster, action, compute = tainting(cluster, taints)
    return _retaint(server, [cluster], action, compute)


def tainting(cluster: str, texts: tuple[str, ...]) -> tuple[str, str, Retaint]:
    """Parse the arguments of ``taint``.

    Return the cluster, the action to report (tainted, untainted, modified), and the function from old taints to new
    ones. Raises Failure for invalid or contradictory texts.
    """
    cluster, texts = _cluster(cluster, texts)
    if not texts:
        raise failures.usage("missing taints", "give KEY=VALUE:EFFECT, or KEY:EFFECT- to remove one")
    added = [read_taint(text) for text in texts if not text.endswith("-")]
    removed = [_removed(text.removesuffix("-")) for text in texts if text.endswith("-")]
    for index, taint in enumerate(added):
        name = f"{taint.key}:{taint.effect}"
        if any(_matches(taint, removal) for removal in removed):
            raise _conflicting_options(f"taint {name}")
        if any(_matches(taint, other) for other in added[:index]):
            raise failures.usage(f"the taint {name} is given twice", "leave out one of the two")
    action = ("modified" if removed else "tainted") if added else "untainted"
    return cluster, action, lambda taints: retainted(cluster, taints, added, removed)


def untaint(
    cluster: options.Cluster, /, *taints: RemovedTaints, server: options.Server = options.SERVER
) -> int:
    cluster, texts = _cluster(cluster, taints)
    if not texts:
        raise failures.usage("missing taints", "give KEY:EFFECT, or KEY")
    removed = [_removed(text.removesuffix("-")) for text in texts]
    return _retaint(server, [cluster], "untainted", lambda taints: retainted(cluster, taints, [], removed))


def cordon(
    cluster: options.Cluster, /, *more_clusters: options.MoreClusters, server: options.Server = options.SERVER
) -> int:
    return _retaint(server, (cluster, *more_clusters), "cordoned", cordoned)


def uncordon(
    cluster: options.Cluster, /, *more_clusters: options.MoreClusters, server: options.Server = options.SERVER
) -> int:
    def uncordoned(taints: list[Taint]) -> list[Taint]:
        return [taint for taint in taints if taint.key != _CORDON.key]

    return _retaint(server, (cluster, *more_clusters), "uncordoned", uncordoned)


def cordoned(taints: list[Taint]) -> list[Taint]:
    """The taints of a cluster after ``cordon``."""
    return retainted("", taints, [_CORDON], [])


def change_taints(objects: KubeObjects, cluster: str, action: str, compute: Retaint) -> Result:
    """Change a cluster's taints with a function of its current ones; return the result."""

    def changed(live: KubeObject) -> Json | None:
        taints = msgspec.convert(live.list_at("spec", "taints"), list[Taint])
        desired = compute(taints)
        return None if desired == taints else {"spec": {"taints": msgspec.to_builtins(desired)}}

    return objects.change(Target(kinds.CLUSTER, "", cluster), action, changed)


def retainted(
    cluster: str, taints: list[Taint], added: Sequence[Taint], removed: Sequence[Taint]
) -> list[Taint]:
    """The taints without ``removed`` and with ``added``; raises Failure if one to remove is absent.

    An added taint replaces the taint with the same key and effect; if the value is the same too, nothing changes. A
    taint in ``removed`` without an effect matches all taints with its key.
    """
    for removal in removed:
        if not any(_matches(taint, removal) for taint in taints):
            text = f"{removal.key}:{removal.effect}" if removal.effect else removal.key
            raise failures.Failure(
                f'spec.taints: taint "{text}" not found on {cluster}',
                next_commands.hint("see", f"get clusters {cluster}"),
            )
    kept = [taint for taint in taints if not any(_matches(taint, removal) for removal in removed)]
    for taint in added:
        if any(_matches(other, taint) and other.value == taint.value for other in kept):
            continue
        kept = [*(other for other in kept if not _matches(other, taint)), taint]
    return kept


def split(kind: str, name: str) -> tuple[str, str]:
    """Split ``deploy/foo`` into kind and name; raises Failure if there is no name, or a second one."""
    if name and "/" in kind:
        raise failures.usage(f"unexpected argument: {name}", "name one object: KIND NAME, or KIND/NAME")
    if not name:
        kind, _slash, name = kind.partition("/")
    if not kind:
        raise failures.usage(
            "missing kind", f"KIND {name}, or KIND/{name}" if name else "KIND NAME, or KIND/NAME"
        )
    if not name and kinds.find(kind) is None:
        raise failures.usage(
            f'missing kind or name: "{kind}" is not both', f"for example: deploy {kind}, or deploy/{kind}"
        )
    if not name:
        raise failures.usage(f"missing name of the {kind}", f"{kind} NAME, or {kind}/NAME")
    return kind, name


def split_all(kind: str, *names: str) -> list[tuple[str, str]]:
    """Split ``deploy foo bar`` or ``deploy/foo deploy/bar`` into pairs of kind and name; raises Failure."""
    if "/" in kind or not names:
        return [split(word, "") for word in (kind, *names)]
    return [(kind, name) for name in names]


def read_label(change: str) -> tuple[str, str | None]:
    """Parse KEY=VALUE, or KEY- as (key, None) for removal; raises Failure for anything else."""
    key, equals, value = change.partition("=")
    if equals and key:
        return key, value
    if change.endswith("-") and len(change) > 1:
        return change[:-1], None
    raise failures.usage(f"{change!r} is not a label", "write KEY=VALUE to set one, KEY- to remove one")


def read_taint(text: str) -> Taint:
    """Parse a taint; raises Failure if it is invalid."""
    named, colon, effect = text.rpartition(":")
    key, _equals, value = named.partition("=")
    if not colon or not key or not effect:
        raise failures.usage(f"{text!r} is not a taint", "write KEY=VALUE:EFFECT, or KEY:EFFECT")
    if effect not in _EFFECTS:
        raise failures.usage(
            f"{effect!r} is not the effect of a taint", f"write one of {', '.join(_EFFECTS)}"
        )
    return Taint(key=key, value=value, effect=effect)


def _conflicting_options(subject: str) -> failures.Failure:
    return failures.usage(f"cannot both set and remove the {subject}", "leave out one of the two")


def _retaint(server: options.Server, clusters: Sequence[str], action: str, compute: Retaint) -> int:
    with server.client() as client:
        objects = KubeObjects(client)
        outcomes = (
            change_taints(objects, cluster.removeprefix("cluster/"), action, compute) for cluster in clusters
        )
        return results.print_results(results.carry_out(outcomes, as_json=server.json), as_json=server.json)


def _matches(taint: Taint, named: Taint) -> bool:
    return taint.key == named.key and named.effect in ("", taint.effect)


def set_replicas(client: Client, objects: KubeObjects, target: Target, replicas: int) -> Result:
    """Set the number of replicas of an object, by its scale subresource or the field of its kind; return the result."""
    resource = target.resource
    name = resource.api_version, resource.kind
    if name in _SCALED:
        reply = objects.patch(target, {"spec": {"replicas": replicas}}, part="scale")
        return kube_objects.result(target, "scaled", reply)
    path = "spec.parallelism" if name == vocabulary.JOB else _interpreted(client, resource)
    if not path:
        # A custom kind may have a scale subresource; if it has none, the server responds 404.
        reply = objects.patch(target, {"spec": {"replicas": replicas}}, part="scale")
        if reply.code == HTTPStatus.NOT_FOUND:
            if objects.get(target) is None:
                return kube_objects.not_found(target)
            remedy = "create a ReplicaInterpreter for this kind" if "." in resource.api_version else None
            reason = f"a {resource.kind} has no replicas"
            problem = Problem(verdict=kube_objects.REFUSED, field="kind", reason=reason, remedy=remedy)
            return kube_objects.refused(target, [problem])
        return kube_objects.result(target, "scaled", reply)
    patch = replica_fields.with_field({}, replica_fields.path_of("", "", path), replicas)
    return kube_objects.result(target, "scaled", objects.patch(target, patch))


def _interpreted(client: Client, resource: kinds.Kind) -> str:
    """The path of the replica count in objects of a kind, from the kind's interpreter; empty if the kind has none."""
    kind = resource.api_version, resource.kind
    built_in = interpreters.built_in().get(kind)
    path = built_in.replicas_path if built_in else ""
    for interpreter in server_reads.objects(client, "objects", kind="ReplicaInterpreter"):
        spec = msgspec.convert(interpreter.at("spec"), interpreters.Interpretation)
        if (spec.target.api_version, spec.target.kind) == kind:
            path = spec.replicas_path
    return path


def _removed(text: str) -> Taint:
    """Parse a taint to remove; its value is ignored."""
    named, colon, effect = text.partition(":")
    key = named.partition("=")[0]
    if not key:
        raise failures.usage(f"{text!r} is not a taint", "write KEY:EFFECT, or KEY")
    return Taint(key=key, effect=effect if colon else "")


def _cluster(cluster: str, texts: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Return the cluster and the taints, from ``taint member1 …`` or karmadactl's ``taint clusters member1 …``."""
    if cluster in {"cluster", "clusters"} and texts:
        return texts[0], texts[1:]
    return cluster.removeprefix("cluster/"), texts
