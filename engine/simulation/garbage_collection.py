"""Deletions in a member, and its garbage collector, which deletes objects whose owners were deleted.

A namespace that is being deleted stays as long as an object in it has a finalizer.

The collector handles only objects that clients wrote; derived objects, such as pods, disappear with the objects from
which they are derived. The collector's writes are recorded like those of clients.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from engine.objects import owner_references
from engine.objects.owner_references import Propagation
from engine.simulation import lists, owner_index, uids
from engine.simulation.state import UNMANAGED, MemberState, Unmanaged
from engine.works import templates
from events import clusters, keys, shapes, times, vocabulary
from events.json_values import Json, list_at
from events.kube_objects import KubeObject

_CLAIM: Final = "PersistentVolumeClaim"
_CRON_JOB: Final = "CronJob"
_BUILT_IN: Final = frozenset({("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")})
_FINALIZERS: Final = "finalizers"
_DELETED: Final = "deletionTimestamp"
_MARKS: Final = (owner_references.FIELD.encode(), owner_references.FOREGROUND.encode())
_DERIVED_KINDS: Final = frozenset(
    {"ControllerRevision", "EndpointSlice", "Endpoints", "Event", "Namespace", "Node"}
)
"""Kinds whose objects a member derives from other objects; an owner of such a kind is assumed to exist."""

_SOURCES: Final = {"Job": "CronJob", "ReplicaSet": "Deployment"}
"""Kinds of workloads, by the kind of the objects derived from them; a derived name is the workload's with a suffix."""

_WRITES_MAX: Final = 1_000
"""Number of writes in a turn after which the remaining objects wait for the next turn."""


class Deletion(NamedTuple):
    """The writes of a client's deletion of an object.

    ``marked`` is the object with its deletionTimestamp, to be stored if the deletion must wait for finalizers; None if
    it is final or has begun already. ``is_final``: the object is deleted at once. ``is_managed``: the control plane
    propagates it. ``warning`` is set if dependents are deleted although the request asked to orphan them; otherwise
    it is empty.
    """

    writes: list[clusters.MemberWrite]
    marked: KubeObject | None = None
    is_final: bool = False
    is_managed: bool = False
    warning: str = ""


def deletion(
    state: MemberState,
    ref: shapes.WorkloadRef,
    live: KubeObject,
    now_ms: int,
    *,
    propagation: Propagation,
) -> Deletion:
    """Return the deletion of an object; ``live`` is the object as it is stored.

    An orphaning deletion keeps the dependents, a foreground deletion deletes them first. After any other, the garbage
    collector deletes them.
    """
    is_orphaning = propagation is Propagation.ORPHAN
    cluster, key, uid = state.spec.name, ref.binding_key, live.uid
    is_managed = state.managed(key) is not None
    owned = dependents(state, key, uid)
    result: list[clusters.MemberWrite] = []
    if is_orphaning:
        result += [without(cluster, item, uid) for item in owned]
    finalizers = live.list_at("metadata", _FINALIZERS)
    foreground = owner_references.FOREGROUND
    if owned and propagation is Propagation.FOREGROUND and foreground not in finalizers:
        finalizers = [*finalizers, foreground]
    warning = ""
    if is_orphaning and not is_managed and (ref.kind == _CRON_JOB or finalizers or key in state.workloads):
        warning = _deletes_dependents(cluster, ref)
    if is_managed or not (finalizers or _is_held(state, ref)):
        result.append(clusters.MemberObjectDeleted(name=cluster, object=ref, orphans=is_orphaning))
        return Deletion(result, is_final=True, is_managed=is_managed, warning=warning)
    kept: Json = {_FINALIZERS: finalizers} if finalizers else {}
    marked = _marked(live.with_metadata(kept), times.to_seconds_text(now_ms))
    return Deletion(result, None if live.is_ending else marked, warning=warning)


def _is_held(state: MemberState, ref: shapes.WorkloadRef) -> bool:
    """Whether objects in a namespace have finalizers, so that its deletion must wait for them.

    False in a ``modelled`` cluster, which has no collector to delete it later.
    """
    return not state.spec.modelled and any(
        list_at(_value(item).metadata, _FINALIZERS) for item in _contents(state, ref)
    )


def _contents(state: MemberState, ref: shapes.WorkloadRef) -> list[Unmanaged]:
    """Return the objects that clients wrote in the namespace ``ref``; none if ``ref`` is not a namespace."""
    if (ref.api_version, ref.kind) != vocabulary.NAMESPACE:
        return []
    return [item for item in state.unmanaged.values() if item.ref.namespace == ref.name]


def _deletes_dependents(cluster: str, ref: shapes.WorkloadRef) -> str:
    return (
        f"the simulation of {cluster} cannot orphan pods and Jobs of a CronJob, of an object with finalizers, or of one"
        f" that the control plane left in the cluster: those of {ref.kind} {ref.name} are deleted with it"
    )


def record(state: MemberState, key: str, item: Unmanaged) -> None:
    """Index an object that a client wrote by the owners in its manifest."""
    if key in state.owners or any(mark in item.manifest for mark in _MARKS):
        owner_index.record(state, key, _owner_keys(state, item))
    elif item.ref.kind == vocabulary.NAMESPACE[1]:
        state.to_collect[key] = None


def forget(state: MemberState, key: str, item: Unmanaged) -> None:
    """Remove a deleted object from the index, and queue its namespace, whose deletion may wait for it."""
    owner_index.forget(state, key)
    namespace = keys.binding_key(vocabulary.NAMESPACE[1], "", item.ref.namespace)
    if namespace in state.unmanaged:
        state.to_collect[namespace] = None


def dependents(state: MemberState, key: str, uid: str) -> list[Unmanaged]:
    """Return the objects that refer to an object as their owner."""
    owned = (state.unmanaged[owned_key] for owned_key in state.owned.get(key, ()))
    return [item for item in owned if owner_references.names(_value(item), uid)]


def without(cluster: str, item: Unmanaged, uid: str) -> clusters.MemberObjectApplied:
    """Return the write that removes the owner with this uid from an object's owner references."""
    value = _value(item)
    return _written(cluster, value, owner_references.without(value, {uid}))


def writes(state: MemberState, at_ms: int) -> list[clusters.MemberWrite]:
    """Check the queued objects; return the writes that delete them or remove their references to deleted owners."""
    result: list[clusters.MemberWrite] = []
    while state.to_collect and len(result) < _WRITES_MAX:
        key = next(iter(state.to_collect))
        del state.to_collect[key]
        if (item := state.unmanaged.get(key)) is not None:
            result += _collected(state, item, at_ms)
            result += _foreground_writes(state, key, item)
            result += _namespace_writes(state, item)
    return result


def _collected(state: MemberState, item: Unmanaged, at_ms: int) -> Iterator[clusters.MemberWrite]:
    """Yield the write that deletes an object without remaining owners, or removes its references to deleted owners."""
    value = _value(item)
    owners = owner_references.owners(value)
    kept = [owner for owner in owners if _exists(state, item.ref.namespace, owner)]
    if len(kept) == len(owners):
        return
    cluster, metadata = state.spec.name, value.metadata
    if kept:
        yield _written(cluster, value, kept)
    elif not list_at(metadata, _FINALIZERS):
        yield clusters.MemberObjectDeleted(name=cluster, object=item.ref)
    elif _DELETED not in metadata:
        yield _applied(cluster, _marked(value, times.to_seconds_text(at_ms)))


def _foreground_writes(state: MemberState, key: str, item: Unmanaged) -> Iterator[clusters.MemberWrite]:
    """Yield the writes of a foreground deletion: delete an object's dependents, then the object if none blocks it."""
    value = _value(item)
    finalizers = list_at(value.metadata, _FINALIZERS)
    if not owner_references.is_waiting(value):
        return
    cluster, is_blocked = state.spec.name, False
    for dependent_item in dependents(state, key, item.uid):
        dependent = _value(dependent_item)
        is_blocked = is_blocked or owner_references.is_blocking(dependent, item.uid)
        yield from _deleted(cluster, dependent_item, str(value.metadata[_DELETED]))
    if is_blocked:
        return
    others = [finalizer for finalizer in finalizers if finalizer != owner_references.FOREGROUND]
    if others:
        yield _applied(cluster, value.with_metadata({_FINALIZERS: others}))
    else:
        yield clusters.MemberObjectDeleted(name=cluster, object=item.ref)


def _namespace_writes(state: MemberState, item: Unmanaged) -> Iterator[clusters.MemberWrite]:
    """Yield the writes that delete the contents of a namespace that is being deleted, then the empty namespace."""
    value = _value(item)
    if (item.ref.api_version, item.ref.kind) != vocabulary.NAMESPACE or not value.is_ending:
        return
    cluster, contents = state.spec.name, _contents(state, item.ref)
    for content in contents:
        yield from _deleted(cluster, content, str(value.metadata[_DELETED]))
    if not contents and not list_at(value.metadata, _FINALIZERS):
        yield clusters.MemberObjectDeleted(name=cluster, object=item.ref)


def _deleted(cluster: str, item: Unmanaged, deleted: str) -> Iterator[clusters.MemberWrite]:
    """Yield the write that deletes an object, or marks it once as deleted if it has finalizers."""
    value = _value(item)
    if not list_at(value.metadata, _FINALIZERS):
        yield clusters.MemberObjectDeleted(name=cluster, object=item.ref)
    elif not value.is_ending:
        yield _applied(cluster, _marked(value, deleted))


def _owner_keys(state: MemberState, item: Unmanaged) -> Iterator[str]:
    for owner in owner_references.owners(_value(item)):
        kind, name = str(owner.get("kind")), str(owner.get("name"))
        yield from _keys(kind, item.ref.namespace, name)
        derived = _source(state, kind, item.ref.namespace, name)
        if derived is not None:
            yield derived


def _keys(kind: str, namespace: str, name: str) -> tuple[str, str]:
    """Return the keys that an owner may have: as a namespaced or as a cluster-scoped object."""
    return keys.binding_key(kind, namespace, name), keys.binding_key(kind, "", name)


def _source(state: MemberState, kind: str, namespace: str, name: str) -> str | None:
    """Return the key of the workload from which a pod, a ReplicaSet or a Job is derived; None if there is none."""
    if kind == templates.POD:
        found_pod = lists.find_pod(state, namespace, name)
        return None if found_pod is None else found_pod.workload.object_key
    if kind in _SOURCES:
        return keys.binding_key(_SOURCES[kind], namespace, name.rpartition("-")[0])
    return None


def _exists(state: MemberState, namespace: str, owner: Json) -> bool:
    kind, name, uid = (str(owner.get(field)) for field in ("kind", "name", "uid"))
    for key in _keys(kind, namespace, name):
        item, workload = state.unmanaged.get(key), state.workloads.get(key)
        if item is not None and item.uid == uid:
            return True
        if workload is not None and uids.of_object(state.spec.name, workload) == uid:
            return True
    return (
        kind in _DERIVED_KINDS or (kind, name) in _BUILT_IN or _is_derived(state, namespace, kind, name, uid)
    )


def _is_derived(state: MemberState, namespace: str, kind: str, name: str, uid: str) -> bool:
    cluster = state.spec.name
    if kind == templates.POD and (found_pod := lists.find_pod(state, namespace, name)) is not None:
        return uids.of_pod(cluster, name, found_pod.pod.created_ms) == uid
    source = _source(state, kind, namespace, name)
    if kind not in _SOURCES or source is None:
        return kind == _CLAIM and _is_claimed(state, namespace, name)
    workload = state.workloads.get(UNMANAGED + source) or state.workloads.get(source)
    item = state.unmanaged.get(source)
    if kind == "Job":
        return workload is not None or item is not None
    digests = {revision.digest for revision in item.revisions} if item is not None else set[str]()
    digests |= {workload.template.digest} if workload is not None else set()
    return any(uids.of_replica_set(cluster, source, digest) == uid for digest in digests)


def _is_claimed(state: MemberState, namespace: str, name: str) -> bool:
    """Whether a StatefulSet's pod may have a PersistentVolumeClaim of this name."""
    return any(
        f"-{workload.ref.name}-" in name
        for workload in state.workloads.values()
        if workload.ref.kind == "StatefulSet" and workload.ref.namespace == namespace
    )


def _value(item: Unmanaged) -> KubeObject:
    return KubeObject.from_json(item.manifest)


def _marked(value: KubeObject, deleted: str) -> KubeObject:
    """Return the object with the time of its deletion."""
    return value.with_metadata({_DELETED: deleted, "deletionGracePeriodSeconds": 0})


def _applied(cluster: str, value: KubeObject) -> clusters.MemberObjectApplied:
    return clusters.MemberObjectApplied(name=cluster, manifest=value.raw)


def _written(cluster: str, value: KubeObject, owners: list[Json]) -> clusters.MemberObjectApplied:
    plain = value.without_metadata(owner_references.FIELD)
    return _applied(cluster, plain.with_metadata({owner_references.FIELD: owners}) if owners else plain)
