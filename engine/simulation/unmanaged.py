"""Objects that clients of a member write there, beside those that the control plane propagates.

An unmanaged object with replicas runs like a propagated one. An object that the control plane manages keeps its
desired state: labels, annotations and a status that clients add stay, other changes are undone, and a deleted
object is created again.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec import structs

from engine.domain import marks, namespaces
from engine.kubeapi.values import quantity
from engine.objects import workloads
from engine.simulation import (
    autoscaler_index,
    disruption_budgets,
    garbage_collection,
    kept_fields,
    orphans,
    owner_index,
    quotas,
    replicas,
)
from engine.simulation.state import (
    UNMANAGED,
    Conflict,
    KeptFields,
    MemberState,
    Revision,
    Unmanaged,
    Workload,
)
from engine.works import budgets, templates
from events import kube_objects, shapes, works
from events.kube_objects import KubeObject

_REVISED: Final = ("Deployment", "StatefulSet", "DaemonSet")
REVISIONS_MAX: Final = 11
"""Revisions of a workload that are kept: ten beside the current one, as Kubernetes does by default."""

NODE: Final = ("v1", "Node")
_BUDGET: Final = budgets.KIND[1]


def running(state: MemberState, key: str) -> Workload | None:
    """Return the workload that runs the unmanaged object with this key; None if it has no replicas."""
    return state.workloads.get(UNMANAGED + key)


def workload_of(key: str, item: Unmanaged) -> Workload:
    """Return a workload for an unmanaged object; it runs nothing yet."""
    return Workload(
        origin="" if item.origin is None else item.origin.key,
        key=UNMANAGED + key,
        ref=item.ref,
        version=(0, 0),
        known=(0, 0),
        created_ms=item.created_ms,
        uid=item.uid,
        generation=item.generation,
        is_unmanaged=True,
    )


def apply(state: MemberState, manifest: bytes, uid: str, at_ms: int) -> None:
    """Apply an object as a client of the member wrote it; ``uid`` is used if the object is new."""
    ref = kube_objects.read_head(msgspec.Raw(manifest)).reference
    key = ref.binding_key
    workload = state.managed(key)
    if workload is not None:
        _keep(state, workload, kept_fields.read(manifest), at_ms)
        return
    old = state.unmanaged.get(key)
    kept = orphans_of(state, key) if old is None else []
    item = revised(old or _from_preserved(state, key), manifest, uid, at_ms, orphans.revisions_of(kept))
    if old is None:
        _count_pod(state, item, 1)
        quotas.touch(state, ref.namespace)
    state.unmanaged[key] = item
    garbage_collection.record(state, key, item)
    if kept:
        take_orphans(state, workload_of(key, item))
    workload = run(state, key, item, at_ms)
    if workload is not None and kept:
        resume_orphans(state, workload, kept)


def delete(
    state: MemberState, ref: shapes.WorkloadRef, at_ms: int, *, keeps_pods: bool = False
) -> list[Conflict]:
    """Delete an object (a namespace with its contents); return the works that were in conflict with deleted objects.

    ``keeps_pods``: the ReplicaSets of a Deployment and the pods of other workloads stay (``orphans``).
    """
    key = ref.binding_key
    workload = state.managed(key)
    if workload is not None:
        owner_index.touch(state, key)
        workload.created_ms, workload.uid = at_ms, ""
        workload.replicas = workload.desired
        workload.kept = kept_fields.retained(workload, KeptFields(), workload.template)
        if keeps_pods and workload.replicas is not None:
            replicas.run(state, workload, workload.replicas, workload.template, at_ms)
        else:
            replicas.restart(state, workload, workload.desired or 0, at_ms)
        state.dirty[key] = None
        return []
    if keeps_pods:
        _orphan(state, key, at_ms)
    waiting: list[Conflict] = []
    for deleted_key in (key, *contained(_owned(state), ref)):
        _forget(state, deleted_key)
        conflict = state.conflicts.pop(deleted_key, None)
        if conflict is not None:
            waiting.append(conflict)
    return waiting


def revised(
    old: Unmanaged | None,
    manifest: bytes,
    uid: str,
    at_ms: int,
    revisions: tuple[Revision, ...] = (),
) -> Unmanaged:
    """Return an object after a write at ``at_ms``; ``old`` is the object before it, None if the write creates it.

    ``uid`` and ``revisions`` are used for a new object only; an existing object keeps its own, and its creation time.
    """
    raw = msgspec.Raw(manifest)
    ref, digest = kube_objects.read_head(raw).reference, kube_objects.spec_digest(raw)
    before = old or Unmanaged(
        ref=ref,
        manifest=manifest,
        uid=uid,
        created_ms=at_ms,
        digest="",
        changed_ms=at_ms,
        revisions=revisions,
    )
    is_changed = digest != before.digest and bool(before.digest)
    is_ended = _is_ending(manifest) and not _is_ending(before.manifest)
    return structs.replace(
        before,
        ref=ref,
        manifest=manifest,
        digest=digest,
        generation=before.generation + (is_changed or is_ended),
        changed_ms=before.changed_ms if digest == before.digest else at_ms,
        revisions=_revisions(before.revisions, manifest, at_ms) if ref.kind in _REVISED else before.revisions,
    )


def _is_ending(manifest: bytes) -> bool:
    # Searching the bytes first avoids decoding nearly every object.
    return b"deletionTimestamp" in manifest and KubeObject.from_json(manifest).is_ending


def _revisions(old: tuple[Revision, ...], manifest: bytes, at_ms: int) -> tuple[Revision, ...]:
    """Return the revisions with the manifest's pod template last; a template that was used before moves to the end."""
    digest = templates.read(manifest).digest
    if old and old[-1].digest == digest:
        return old
    template = KubeObject.from_json(manifest).object_at("spec", "template")
    first_ms = next((revision.created_ms for revision in old if revision.digest == digest), at_ms)
    number = old[-1].number + 1 if old else 1
    current = Revision(number, msgspec.json.encode(template), digest, first_ms)
    return (*(revision for revision in old if revision.digest != digest), current)[-REVISIONS_MAX:]


def replicas_of(ref: shapes.WorkloadRef, manifest: bytes) -> int | None:
    """Return an unmanaged object's replicas (0 if negative); None if its kind has none or the manifest is malformed."""
    if workloads.is_single(ref.api_version, ref.kind):
        return None
    try:
        count = workloads.size(ref.api_version, ref.kind, manifest).replicas
    except (msgspec.MsgspecError, quantity.QuantityError, RecursionError):
        return None
    return None if count is None else max(count, 0)


def count_of(ref: shapes.WorkloadRef, manifest: bytes, nodes: int) -> int:
    """Return how many pods an unmanaged object has in a member with this many nodes, without regard to quotas."""
    if ref.kind in templates.COUNTED_BY_MEMBERS:
        return nodes if ref.kind == "DaemonSet" else max(templates.read(manifest).count, 0)
    return replicas_of(ref, manifest) or 0


def contained(objects: Iterable[shapes.WorkloadRef], ref: shapes.WorkloadRef) -> list[str]:
    """Return the keys of those objects that are in the namespace ``ref``; none if ``ref`` is not a namespace."""
    if (ref.api_version, ref.kind) != namespaces.KIND:
        return []
    return [item.binding_key for item in objects if item.namespace == ref.name]


def _owned(state: MemberState) -> Iterator[shapes.WorkloadRef]:
    """Yield the objects that the control plane does not manage: those that clients wrote, and preserved ones."""
    yield from (item.ref for item in state.unmanaged.values())
    yield from (workload.ref for workload in state.workloads.values() if workload.preserved)


def keeps_namespace(state: MemberState, ref: shapes.WorkloadRef) -> bool:
    """Whether a propagated namespace was edited by clients or has objects that the control plane does not manage.

    False for a namespace that a client created.
    """
    own = state.unmanaged.get(ref.binding_key)
    if own is not None:
        return marks.WORK_NAME in KubeObject.from_json(own.manifest).annotations
    return bool(contained(_owned(state), ref))


def take_over(state: MemberState, work: works.WorkApplied) -> bool:
    """Take over the object of a work if a client has written it; return False if the work may not overwrite it.

    The object keeps its uid, its age and its running replicas.
    """
    own = state.unmanaged.get(work.key)
    if own is None:
        return True
    if not work.overwrites:
        return False
    del state.unmanaged[work.key]
    _forget_indexed(state, work.key, own)
    state.conflicts.pop(work.key, None)
    workload = state.workloads.pop(UNMANAGED + work.key, None) or workload_of(work.key, own)
    workload.is_unmanaged = False
    _rename(state, workload, work.key)
    workload.kept = kept_fields.taken_over(own)
    workload.generation = own.generation
    state.workloads[work.key] = workload
    return True


def _keep(state: MemberState, workload: Workload, kept: KeptFields, at_ms: int) -> None:
    workload.kept = kept = kept_fields.retained(workload, kept, workload.template)
    if kept.replicas is not None and workload.replicas is not None:
        workload.generation += kept.replicas != workload.replicas
        workload.replicas = kept.replicas
        replicas.run(state, workload, kept.replicas, workload.template, at_ms)
    state.dirty[workload.key] = None


def _from_preserved(state: MemberState, key: str) -> Unmanaged | None:
    """Turn a workload that the control plane no longer manages into an unmanaged object; None without a workload."""
    workload = state.workloads.pop(key, None)
    if workload is None:
        return None
    workload.is_unmanaged, workload.preserved, workload.kept = True, False, KeptFields()
    _rename(state, workload, UNMANAGED + key)
    if workload.replicas is not None:
        state.workloads[workload.key] = workload
    return Unmanaged(
        ref=workload.ref, manifest=b"{}", uid=workload.uid, created_ms=workload.created_ms, digest=""
    )


def run(state: MemberState, key: str, item: Unmanaged, at_ms: int) -> Workload | None:
    """Run the replicas of an unmanaged object; return None if its kind has none."""
    ref = item.ref
    template = templates.read(item.manifest)
    count = replicas.desired(state, ref, replicas_of(ref, item.manifest), template)
    if count is None:
        replicas.record_content(state, key, ref, template)
        if ref.kind == _BUDGET:
            disruption_budgets.record_unmanaged(state, key, ref.namespace, template.budget)
        if (ref.api_version, ref.kind) == NODE:
            state.nodes[ref.name] = item
            state.capacity_freed = True
        return None
    workload = running(state, key) or workload_of(key, item)
    state.workloads[workload.key] = workload
    workload.replicas = count
    replicas.run(state, workload, count, template, at_ms)
    state.dirty[workload.key] = None
    return workload


def _forget(state: MemberState, key: str) -> None:
    item = state.unmanaged.pop(key, None)
    if item is not None:
        _forget_indexed(state, key, item)
    state.definitions.pop(key, None)
    autoscaler_index.forget(state, key)
    for stored_key in (UNMANAGED + key, key):
        workload = state.workloads.get(stored_key)
        if workload is not None and (workload.is_unmanaged or workload.preserved):
            replicas.discard(state, workload)


def _forget_indexed(state: MemberState, key: str, item: Unmanaged) -> None:
    """Remove an object that clients wrote from the indexes of such objects."""
    _count_pod(state, item, -1)
    orphans.forget(state.orphans, key, item)
    garbage_collection.forget(state, key, item)
    quotas.forget(state, key, item.ref.namespace)
    quotas.touch(state, item.ref.namespace)
    if item.ref.kind == _BUDGET:
        disruption_budgets.forget_unmanaged(state, key, item.ref.namespace)
    if item.ref.kind == templates.PRIORITY_CLASS:
        state.ranks.pop(item.ref.name, None)


def _orphan(state: MemberState, key: str, at_ms: int) -> None:
    """Keep the ReplicaSets or pods of an object that is about to be deleted."""
    item, workload = state.unmanaged.get(key), running(state, key)
    if item is None or workload is None:
        return
    if item.ref.kind == orphans.DEPLOYMENT:
        orphaned = orphans.replica_sets_of(state.spec.name, key, item, workload.replicas or 0)
        last = next(reversed(orphaned))
        _hand_over(state, workload, workload_of(last, orphaned[last]))
    else:
        orphaned = orphans.pods_of(state.spec.name, workload, item.manifest)
    for orphan_key, orphan in orphaned.items():
        state.unmanaged[orphan_key] = orphan
        orphans.record(state.orphans, orphan_key, orphan)
        _count_pod(state, orphan, 1)
        run(state, orphan_key, orphan, at_ms)


def orphans_of(state: MemberState, key: str) -> list[Unmanaged]:
    """Return the ReplicaSets or pods that outlived the deleted object with this key."""
    return [state.unmanaged[orphan_key] for orphan_key in state.orphans.get(key, ())]


def take_orphans(state: MemberState, owner: Workload) -> None:
    """Move the running replicas of the newest orphaned ReplicaSet to a workload that is created again.

    Then delete all orphans of this workload. Read ``orphans_of`` before, if ``resume_orphans`` needs the orphaned pods.
    """
    orphaned = list(state.orphans.get(owner.object_key, ()))
    workload = running(state, orphaned[-1]) if orphaned else None
    if workload is not None:
        _hand_over(state, workload, owner)
    for key in orphaned:
        _forget(state, key)


def resume_orphans(state: MemberState, workload: Workload, pods: list[Unmanaged]) -> None:
    """Let a workload adopt ``pods``, the orphans of a deleted workload with its key, as running replicas."""
    adoption = orphans.adopted(state.spec.name, workload, workload.replicas or 0, pods)
    if adoption.ages:
        workload.replaced = adoption.replaced
        replicas.resume(state, workload, adoption.ages, sum(count for count, _ in adoption.ages))


def _hand_over(state: MemberState, source: Workload, target: Workload) -> None:
    """Move the current replicas of ``source`` to ``target``, which replaces it; remove those of former templates."""
    replicas.end_rollout(state, source)
    del state.workloads[source.key]
    state.workloads[target.key] = target
    target.template, target.replicas, target.cohorts = source.template, source.replicas, source.cohorts
    target.pending, target.pending_since_ms = source.pending, source.pending_since_ms
    target.replaced = source.replaced
    _follow_key(state, source.key, target)


def _count_pod(state: MemberState, item: Unmanaged, count: int) -> None:
    """Count a bare Pod that was created (1) or deleted (-1); pods of workloads are counted with their replicas."""
    if workloads.is_single(item.ref.api_version, item.ref.kind):
        quotas.count(state, item.ref.namespace, templates.read(item.manifest), count)


def _rename(state: MemberState, workload: Workload, key: str) -> None:
    """Give a workload another key."""
    disruption_budgets.forget(state, workload)
    former, workload.key = workload.key, key
    _follow_key(state, former, workload)


def _follow_key(state: MemberState, former: str, workload: Workload) -> None:
    """Move a workload's entries in the queues for capacity and its timers to its new key."""
    for waiting in (state.unplaced, state.waiting):
        if waiting.pop(former, False) is None:
            waiting[workload.key] = None
    replicas.set_timers(state, workload)
