"""Garbage collection: objects whose owners were deleted are deleted, as in Kubernetes.

An object names its owners in ``metadata.ownerReferences``. It is deleted if none of them exists; if some exist, it only
loses its references to the others. With foreground deletion, an owner is removed after its dependents. With deletion
that keeps (orphans) the dependents, an owner is removed after their references to it. If an owner's kind is not served,
its dependents stay. Every server collects: the first deletion wins, and the others find no such object.
"""

import enum
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Final, NamedTuple

from msgspec import structs

from engine import diagnostics
from engine.controllers import batches
from engine.controllers.controller import Access, Controller
from engine.kubeapi.schema.custom_kinds import DEFINITION
from engine.kubeapi.schema.resources import Resource
from engine.objects import owner_references
from engine.objects.owner_references import Propagation
from engine.writing.edits.objects import Writer
from engine.writing.edits.patching import MERGE_PATCH, Patch
from engine.writing.mutations import Mutation, Target
from engine.writing.object_changes import Change, Preconditions, Removal
from events.json_values import Json, as_text
from events.kube_objects import KubeObject
from events.shapes import WorkloadRef
from projections import changes
from projections import owner_references as references
from projections.port import Rows

MANAGER: Final = "garbage-collector"
_DEFINITIONS: Final = changes.kind_of(*DEFINITION)

_log = diagnostics.logger(__name__)


class _Owner(enum.Enum):
    """State of an owner of an object.

    WAITING: the owner is being deleted and waits for its dependents. UNKNOWN: its kind is not served, or is namespaced
    although the object is cluster-scoped.
    """

    EXISTING = enum.auto()
    WAITING = enum.auto()
    ABSENT = enum.auto()
    UNKNOWN = enum.auto()


class _Changed(NamedTuple):
    """The last sequence number in the views, and the objects to check.

    ``owners`` are objects that may wait for their dependents; ``others`` may have lost their owners.
    """

    number: int
    others: list[WorkloadRef]
    owners: list[WorkloadRef]


class GarbageCollection(Controller):
    """Follows the views and deletes objects without owners; call ``run`` once.

    Requests use the other methods: ``prepared`` before the deletion of an object, and, in plans, ``delete_dependents``
    after it.
    """

    SOURCE = "/reballast/garbage-collector"
    ACTIVITY = "garbage collection"

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        self._blocked: dict[WorkloadRef, frozenset[int]] = {}
        """Owners that wait for dependents, with the key ids of these; a change of one may release the owner."""

        self._unresolved: dict[WorkloadRef, None] = {}
        """Objects with an owner in state UNKNOWN; a new definition may serve its kind."""

    async def turn(self, after: int) -> int:
        """Check the objects that changed after a sequence number (negative: all), and the dependents of deleted ones.

        Return the sequence number up to which changes are processed. Raises LogError and ProjectionError.
        """
        if after < 0:
            self._blocked, self._unresolved = {}, {}
        waiting, unresolved = dict(self._blocked), tuple(self._unresolved)
        number, others, owners = await self._reads.peek(partial(_read, after, waiting, unresolved))
        await batches.gather(self._check, others)
        for ref in owners:
            await self._check(ref)
        return number

    async def prepared(self, removal: Removal, live: KubeObject, *, is_immediate: bool) -> Removal:
        """Return the removal of an object with the propagation that its dependents require.

        If the dependents are kept (orphaned), the removal only marks the object: if they lost their references to it
        before the mark, a controller could adopt them again. With ``is_immediate`` remove the references now, unless
        the removal would be refused. Raises StatusError, LogError and ProjectionError.
        """
        uid = live.uid
        propagation = owner_references.resolved(removal.propagation, live.list_at("metadata", "finalizers"))
        if propagation is Propagation.BACKGROUND:
            return removal
        owned = await self._reads.read(partial(references.dependents, owner=uid))
        if propagation is Propagation.FOREGROUND and not owned:
            return structs.replace(removal, propagation=Propagation.BACKGROUND)
        if propagation is not Propagation.ORPHAN or not owned:
            return removal
        if not is_immediate:
            return structs.replace(removal, propagation=propagation, has_dependents=True)
        if await self._write_api.check(removal) is None:
            await batches.gather(partial(self._release, uids={uid}), owned)
        return removal

    async def delete_dependents(self, uid: str) -> None:
        """In a plan, delete the direct and indirect dependents that have no other owner; in a server, turns do this."""
        absent, uids = {uid}, [uid]
        while uids:
            owned = await self._reads.peek(partial(references.dependents, owner=uids.pop()))
            for ref in owned:
                uids += await self._check(ref, absent)
                absent.update(uids)

    async def _check(self, ref: WorkloadRef, absent: Collection[str] = ()) -> list[str]:
        """Delete an object if it has no owner left; return its uid if it was deleted.

        ``absent`` are the uids of objects that are deleted already, although the views still have them.
        """
        self._unresolved.pop(ref, None)
        resource, value = await self._live(ref)
        if resource is None or value is None:
            self._blocked.pop(ref, None)
            return []
        if owner_references.is_waiting(value):
            await self._finish(ref, resource, value)
            return []
        if owner_references.is_orphaning(value):
            await self._orphan(ref, resource, value)
            return []
        if value.is_ending or not (owners := owner_references.owners(value)):
            return []
        states = {as_text(owner.get("uid")): await self._state(owner, value, absent) for owner in owners}
        if _Owner.UNKNOWN in states.values():
            self._unresolved[ref] = None
            return []
        lost = {uid for uid, state in states.items() if state is not _Owner.EXISTING}
        if not lost:
            return []
        if len(lost) < len(states):
            await self._release(ref, lost)
            return []
        is_after_others = _Owner.WAITING in states.values()
        return (
            [value.uid] if await self._delete(ref, resource, value, is_after_others=is_after_others) else []
        )

    async def _state(self, owner: Json, value: KubeObject, absent: Collection[str]) -> _Owner:
        """Return the state of an owner of an object; a namespaced owner is in the object's namespace."""
        api_version, kind, name, uid = (
            as_text(owner.get(field)) for field in ("apiVersion", "kind", "name", "uid")
        )
        resource = (await self._objects.catalogue()).of_kind(api_version, kind)
        if resource is None or (resource.namespaced and not value.namespace):
            return _Owner.UNKNOWN
        namespace = value.namespace if resource.namespaced else ""
        live = await self._objects.current(resource, namespace, name)
        if live is None or live.uid != uid or uid in absent:
            return _Owner.ABSENT
        return _Owner.WAITING if owner_references.is_waiting(live) else _Owner.EXISTING

    async def _delete(
        self, ref: WorkloadRef, resource: Resource, value: KubeObject, *, is_after_others: bool
    ) -> bool:
        """Delete an object without owners; return whether this was accepted.

        With ``is_after_others`` an owner waits for this object. Then this object waits for its own dependents too,
        unless one of them is waiting already, since the two could wait for each other.
        """
        owned = (
            await self._reads.peek(partial(references.dependents, owner=value.uid)) if is_after_others else []
        )
        is_foreground = bool(owned) and not await self._is_any_waiting(owned)
        propagation = Propagation.FOREGROUND if is_foreground else Propagation.UNSET
        same = Preconditions(resource=resource, uid=value.uid, resource_version=value.resource_version)

        def removal(writer: Writer) -> Removal:
            required = structs.replace(same, newest=writer.newest)
            return Removal(
                target=_target(ref),
                now_ms=self._clock_ms(),
                preconditions=required,
                propagation=propagation,
            )

        return await self._write(ref, resource, removal, "object without owners not deleted")

    async def _finish(self, ref: WorkloadRef, resource: Resource, value: KubeObject) -> None:
        """Check the dependents of an object that waits for them; remove its finalizer if none of them blocks it."""
        owned = await self._reads.peek(partial(references.dependents, owner=value.uid))
        others = [other for other in owned if other != ref]
        await batches.gather(self._check, others)
        blocking = [
            other
            for other in others
            if (live := (await self._live(other))[1]) is not None
            and owner_references.is_blocking(live, value.uid)
        ]
        if blocking:
            self._blocked[ref] = frozenset(await self._reads.peek(partial(references.ids, owner=value.uid)))
            return
        self._blocked.pop(ref, None)
        finalizers = [str(name) for name in value.list_at("metadata", "finalizers")]
        kept = owner_references.without_collector_finalizers(finalizers)
        await self._patch(ref, resource, value, {"finalizers": kept or None}, "deletion not finished")

    async def _orphan(self, ref: WorkloadRef, resource: Resource, value: KubeObject) -> None:
        """Remove the dependents' references to an object that is deleted without them, then delete the object."""
        owned = await self._reads.read(partial(references.dependents, owner=value.uid))
        await batches.gather(partial(self._release, uids={value.uid}), owned)
        left = await self._reads.read(partial(references.ids, owner=value.uid))
        if left:
            # Other clients have changed these dependents meanwhile, so their references remain; the next turn tries
            # again.
            self._blocked[ref] = frozenset(left)
            return
        self._blocked.pop(ref, None)
        # Do not remove the finalizer earlier: because of it, this deletion keeps a template's workload in its clusters.
        await self._delete(ref, resource, value, is_after_others=False)

    async def _release(self, ref: WorkloadRef, uids: Collection[str]) -> None:
        """Remove an object's references to owners with these uids."""
        resource, value = await self._live(ref)
        if resource is None or value is None:
            return
        kept = owner_references.without(value, uids)
        fields: Json = {owner_references.FIELD: kept or None}
        await self._patch(ref, resource, value, fields, "references to owners not removed")

    async def _patch(
        self, ref: WorkloadRef, resource: Resource, value: KubeObject, fields: Json, refused: str
    ) -> None:
        """Change metadata of an object, unless another client has changed it meanwhile."""
        same = {"uid": value.uid, "resourceVersion": value.resource_version}
        patch = {"metadata": {**fields, **same}}

        def change(writer: Writer) -> Change:
            return Change(target=_target(ref), edit=Patch(writer, MERGE_PATCH, patch), resource=resource)

        await self._write(ref, resource, change, refused)

    async def _write(
        self, ref: WorkloadRef, resource: Resource, mutation: Callable[[Writer], Mutation], refused: str
    ) -> bool:
        """Carry out a mutation of an object; log ``refused`` and return False if it is refused."""
        reason = await self.carry_out(resource, _target(ref), MANAGER, mutation)
        # Do not log a refusal if another server or a client has deleted the object meanwhile.
        if reason and (await self._live(ref))[1] is not None:
            _log.info(refused, kind=ref.kind, namespace=ref.namespace, object=ref.name, reason=reason)
        return not reason

    async def _live(self, ref: WorkloadRef) -> tuple[Resource | None, KubeObject | None]:
        """Return the kind of an object, and the object; None for what does not exist."""
        resource = (await self._objects.catalogue()).of_kind(ref.api_version, ref.kind)
        if resource is None:
            return None, None
        return resource, await self._objects.current(resource, ref.namespace, ref.name)

    async def _is_any_waiting(self, refs: Iterable[WorkloadRef]) -> bool:
        """Whether any of these objects is being deleted and waits for its dependents."""
        for ref in refs:
            _, value = await self._live(ref)
            if value is not None and owner_references.is_waiting(value):
                return True
        return False


def _target(ref: WorkloadRef) -> Target:
    return Target(api_version=ref.api_version, kind=ref.kind, namespace=ref.namespace, name=ref.name)


def _read(
    after: int,
    blocked: dict[WorkloadRef, frozenset[int]],
    unresolved: Collection[WorkloadRef],
    rows: Rows,
) -> _Changed:
    """Return the objects to check: those that changed after a number, and those that a change of others concerns.

    The latter are dependents of deleted objects, owners in ``blocked`` and, after a change of a definition, objects in
    ``unresolved``. If the number is negative or its changes are no longer kept, all objects are returned.
    """
    number = changes.checkpoint(rows)
    span = (after, number) if after >= 0 and changes.is_kept(after, number) else None
    others = dict.fromkeys(references.changed_dependents(rows, span))
    finalizers = tuple(f'"{name}"' for name in (owner_references.FOREGROUND, owner_references.ORPHAN))
    owners = dict.fromkeys(references.containing(rows, finalizers, span))
    if span is not None and references.is_any(rows):
        for value in references.deleted(rows, span):
            others |= dict.fromkeys(references.dependents(rows, value.uid))
    if span is not None and blocked:
        changed = references.changed_ids(rows, span)
        owners |= dict.fromkeys(owner for owner, ids in blocked.items() if not ids.isdisjoint(changed))
    if unresolved and changes.may_have_changed(rows, [_DEFINITIONS], after, number):
        others |= dict.fromkeys(unresolved)
    return _Changed(number, [ref for ref in others if ref not in owners], list(owners))
