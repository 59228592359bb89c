"""Objects that outlive their owner: ReplicaSets of a deleted Deployment, and pods of other workloads.

They become unmanaged objects with an ``origin``. When an owner with the same key is created again, it adopts them.
Members and their recovery share these functions.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from engine.simulation import lists, replica_sets, uids
from engine.simulation.state import PODS_MAX, Origin, Revision, Unmanaged, Workload
from engine.works import templates
from events import shapes
from events.json_values import object_at
from events.kube_objects import KubeObject

DEPLOYMENT: Final = "Deployment"

Index = dict[str, dict[str, None]]
"""Keys of objects by the key of their origin."""


class Adoption(NamedTuple):
    """The replicas that a new owner adopts: groups of (count, created_ms), oldest first, and ``Workload.replaced``."""

    ages: list[tuple[int, int]]
    replaced: dict[int, int]


def record(index: Index, key: str, item: Unmanaged) -> None:
    """Record an object in an index if it has an origin."""
    if item.origin is not None:
        index.setdefault(item.origin.key, {})[key] = None


def forget(index: Index, key: str, item: Unmanaged) -> None:
    """Remove an object from an index."""
    if item.origin is not None and (keys := index.get(item.origin.key)) is not None:
        keys.pop(key, None)
        if not keys:
            del index[item.origin.key]


def replica_sets_of(cluster: str, key: str, deployment: Unmanaged, replicas: int) -> dict[str, Unmanaged]:
    """Return a deleted Deployment's ReplicaSets by key; the last one has the pods, the others are earlier revisions."""
    value = KubeObject.from_json(deployment.manifest)
    result: dict[str, Unmanaged] = {}
    for revision in deployment.revisions:
        count = replicas if revision is deployment.revisions[-1] else 0
        manifest = replica_sets.manifest(
            value, revision.pod_template, revision.digest, count, revision.number
        )
        ref = shapes.WorkloadRef(
            api_version="apps/v1",
            kind=templates.REPLICA_SET,
            name=replica_sets.name(deployment.ref.name, revision.digest),
            namespace=deployment.ref.namespace,
        )
        result[ref.binding_key] = Unmanaged(
            ref=ref,
            manifest=bytes(manifest.raw),
            uid=uids.of_replica_set(cluster, key, revision.digest),
            created_ms=revision.created_ms,
            digest="",
            revisions=(revision,),
            origin=Origin(key, revision.digest),
        )
    return result


def pods_of(cluster: str, workload: Workload, manifest: bytes) -> dict[str, Unmanaged]:
    """Return the pods of a deleted workload by key; those that have ended are deleted with it."""
    template = KubeObject.from_json(manifest).object_at("spec", "template")
    result: dict[str, Unmanaged] = {}
    for pod in lists.pods_of(cluster, workload):
        if pod.phase == lists.SUCCEEDED:
            continue
        ref = shapes.WorkloadRef(api_version="v1", kind=templates.POD, name=pod.name, namespace=pod.namespace)
        named = {**object_at(template, "metadata"), "name": pod.name, "namespace": pod.namespace}
        value = {
            "apiVersion": "v1",
            "kind": templates.POD,
            "metadata": named,
            "spec": object_at(template, "spec"),
        }
        result[ref.binding_key] = Unmanaged(
            ref=ref,
            manifest=msgspec.json.encode(value),
            uid=uids.of_pod(cluster, pod.name, pod.created_ms),
            created_ms=pod.created_ms,
            digest="",
            origin=Origin(workload.object_key, workload.template.digest),
        )
    return result


def adopted(cluster: str, workload: Workload, count: int, pods: Iterable[Unmanaged]) -> Adoption:
    """Return the orphaned ``pods`` that become replicas of a new workload with ``count`` replicas.

    A pod is adopted if it has the name of a replica and the workload's pod template.
    """
    digest = workload.template.digest
    created = {
        pod.ref.name: pod.created_ms
        for pod in pods
        if pod.ref.kind == templates.POD and pod.origin is not None and pod.origin.digest == digest
    }
    if not created:
        return Adoption([], {})
    names = {slot: lists.pod_name(cluster, workload, slot) for slot in range(min(count, PODS_MAX))}
    adopted_pods = {slot: created[name] for slot, name in names.items() if name in created}
    order = sorted(adopted_pods, key=lambda slot: (adopted_pods[slot], slot))
    is_plain = order == list(range(len(order)))
    return Adoption(
        [(1, adopted_pods[slot]) for slot in order],
        {} if is_plain else dict.fromkeys((*order, *(slot for slot in names if slot not in adopted_pods)), 0),
    )


def revisions_of(sets: Iterable[Unmanaged]) -> tuple[Revision, ...]:
    """Return the revisions of a Deployment that is created again, from the ReplicaSets that it adopts."""
    return tuple(
        sorted(
            (revision for item in sets for revision in item.revisions), key=lambda revision: revision.number
        )
    )
