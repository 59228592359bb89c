"""Operations of the Kubernetes API on one object: replace, change the status, delete.

They are pure and are computed again if they came too late. The computation sees the object as rendered, with
its identity, status and claim labels; these are removed from the result, so that derived fields are never
stored as part of the spec. Refusals are raised as StatusError.
"""

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Struct

from engine.kubeapi.errors.status_objects import StatusError
from engine.kubeapi.schema.resources import Resource
from engine.writing import cluster_changes as members
from engine.writing import cluster_status
from engine.writing import null_fields as admission
from engine.writing import operations as asks
from engine.writing import targets as wishes
from engine.writing.results import Result
from engine.writing.stored_objects import StoredObject
from events import limits, objects, times
from events.json_values import Json, as_list, as_object
from projections.clusters import Cluster
from projections.documents import field_owners
from projections.documents import objects as documents_objects
from projections.documents.clusters import cluster_document

Compute = Callable[[Json | None], Json]
"""Compute the new object from the current one (None if it does not exist); raises StatusError."""

Precheck = Callable[[Json], None]
"""Check the object that is to be deleted, such as its preconditions; raises StatusError."""

_DERIVED: Final = ("creationTimestamp", "generation", "resourceVersion", "selfLink", "uid")
_POLICY_IDS: Final = {
    "PropagationPolicy": "propagationpolicy.karmada.io/permanent-id",
    "ClusterPropagationPolicy": "clusterpropagationpolicy.karmada.io/permanent-id",
}
MARKS: Final = frozenset(
    {
        *_POLICY_IDS.values(),
        "propagationpolicy.karmada.io/name",
        "propagationpolicy.karmada.io/namespace",
        "clusterpropagationpolicy.karmada.io/name",
    }
)
"""Labels and annotations that the engine adds to show claims and policy ids; never stored with the object."""


class Change(Struct, kw_only=True):
    """Create or replace an object.

    ``outcome`` is the object as last computed. ``held`` is the stored object after the write, unless another
    client wrote it since. ``resource`` describes the kind for error messages, ``body_bytes`` is the size of
    the request body.
    """

    target: wishes.Target
    compute: Compute
    outcome: Json = {}
    stored: StoredObject | None = None
    resource: Resource | None = None
    body_bytes: int = 0

    def decide(self, stored: asks.StoredState) -> asks.Write | Result:
        if isinstance(stored, Cluster) or self.target.route == "cluster":
            return self._decide_cluster(stored if isinstance(stored, Cluster) else None)
        _check_name(self.target, stored)
        live = None if stored is None else live_object(self.target, stored)
        desired = self.compute(live)
        manifest = _manifest(desired)
        raw = _encoded(manifest)
        self.outcome = _with_generation(desired, stored, raw)
        if stored is not None and raw == stored.manifest:
            return asks.done("unchanged", stored)
        version = stored.head.version if stored else 0
        # A namespace is deleted by the namespace controller once it is empty, not by a client's last
        # finalizer.
        if stored is not None and self.target.route != "namespace" and _is_finalized(desired):
            return asks.Write(action="deleted", events=(asks.deletion(self.target, version),))
        event = asks.applied(self.target, raw, version)
        return asks.Write(action="configured" if stored else "created", events=(event,))

    def _decide_cluster(self, stored: Cluster | None) -> asks.Write | Result:
        desired = self.compute(None if stored is None else cluster_document(stored, managed=True))
        self.outcome = desired
        if stored is not None and members.is_released(stored, desired):
            return asks.Write(action="deleted", events=(members.left(stored),))
        status = as_object(desired.get("status")) or {}
        try:
            facts = members.spec_of(desired, stored, {} if stored else status)
        except ValueError as error:
            raise StatusError(400, "BadRequest", f"the Cluster can't be read: {error}") from None
        return members.changed(self.target, stored, facts)


class StatusChange(Struct, kw_only=True):
    """Change an object's status; values that the engine derives are still rendered over it.

    Fields as in ``Change``.
    """

    target: wishes.Target
    compute: Compute
    outcome: Json = {}
    stored: StoredObject | None = None
    body_bytes: int = 0

    def decide(self, stored: asks.StoredState) -> asks.Write | Result:
        if isinstance(stored, Cluster):
            self.outcome = self.compute(cluster_document(stored, managed=True))
            return cluster_status.changed(self.target, stored, self.outcome)
        current = stored if stored is not None and _is_same(self.target, stored) else None
        live = None if current is None else live_object(self.target, current)
        if live is not None and current is not None and current.status:
            live = {**live, "status": documents_objects.decoded(current.status)}
        if live is not None and current is not None:
            live = _with_status_owners(live, current)
        self.outcome = self.compute(live)
        if current is None:
            return asks.not_found(self.target)
        status = as_object(self.outcome.get("status")) or {}
        owned = field_owners.of_entries(
            [each for each in _entries(self.outcome) if field_owners.is_of_status(each)]
        )
        if (_encoded(status), field_owners.encode(owned)) == (current.status or b"{}", current.owners):
            return asks.done("unchanged", current)
        event = asks.status_written(self.target, status, owned, current.head.version)
        return asks.Write(action="configured", events=(event,))


class Removal(Struct, kw_only=True):
    """Delete an object; one with finalizers is only marked, and is removed with the last of them.

    ``is_kept`` marks the object in any case. ``is_final`` deletes only an object that is marked already and
    has no finalizers. ``is_marked`` is an output: whether the object still exists after this operation.
    """

    target: wishes.Target
    precheck: Precheck
    now_ms: int
    outcome: Json = {}
    is_marked: bool = False
    is_kept: bool = False
    is_final: bool = False

    def decide(self, stored: asks.StoredState) -> asks.Write | Result:
        if stored is None:
            return asks.not_found(self.target)
        if isinstance(stored, Cluster):
            self.outcome = cluster_document(stored, managed=True)
            self.precheck(self.outcome)
            self.is_marked = True
            leaving = msgspec.structs.replace(stored, leaving_ms=stored.leaving_ms or self.now_ms)
            self.outcome = cluster_document(leaving, managed=True)
            return members.Leave(target=self.target).decide(stored)
        if not _is_same(self.target, stored):
            return asks.not_found(self.target)
        live = live_object(self.target, stored)
        self.outcome = live
        self.precheck(live)
        metadata = as_object(live.get("metadata")) or {}
        version = stored.head.version
        self.is_marked = self.is_kept or bool(as_list(metadata.get("finalizers")))
        if self.is_final and (self.is_marked or "deletionTimestamp" not in metadata):
            return asks.done("unchanged", stored)
        if not self.is_marked:
            return asks.Write(action="deleted", events=(asks.deletion(self.target, version),))
        if "deletionTimestamp" in metadata:
            return asks.done("unchanged", stored)
        stamp = times.to_seconds_text(self.now_ms)
        marked = {**metadata, "deletionTimestamp": stamp, "deletionGracePeriodSeconds": 0}
        self.outcome = {**live, "metadata": marked}
        raw = wishes.encode(_manifest(self.outcome))
        return asks.Write(action="marked", events=(asks.applied(self.target, raw, version),))


def live_object(target: wishes.Target, stored: StoredObject) -> Json:
    """The stored object with the metadata that is derived: uid, resourceVersion, generation, creation time."""
    value = asks.decoded(stored.manifest)
    head = stored.head
    metadata = {
        **(as_object(value.get("metadata")) or {}),
        "name": target.name,
        "uid": head.uid,
        "resourceVersion": str(stored.number),
        "generation": head.generation,
        "creationTimestamp": times.to_seconds_text(head.created_ms),
    }
    if label := _POLICY_IDS.get(target.kind):
        metadata["labels"] = {**(as_object(metadata.get("labels")) or {}), label: head.uid}
    return {**value, "metadata": metadata}


def _with_status_owners(live: Json, stored: StoredObject) -> Json:
    metadata = as_object(live.get("metadata")) or {}
    written = [*_entries(live), *field_owners.entries(field_owners.decode(stored.owners))]
    return {**live, "metadata": {**metadata, **({"managedFields": written} if written else {})}}


def _entries(value: Json) -> list[Json]:
    listed = as_list((as_object(value.get("metadata")) or {}).get("managedFields")) or []
    return [entry for each in listed if (entry := as_object(each)) is not None]


def is_ending(stored: StoredObject) -> bool:
    """Whether an object has a deletionTimestamp."""
    # Searching the bytes first spares decoding nearly every object.
    if b"deletionTimestamp" not in stored.manifest:
        return False
    return "deletionTimestamp" in (as_object(asks.decoded(stored.manifest).get("metadata")) or {})


def _is_same(target: wishes.Target, stored: StoredObject) -> bool:
    """Whether the stored object is the target, in any version of its API group.

    Two objects can share a key: binding keys have no group, so a Deployment of another group collides.
    """
    head = stored.head
    group, other = (
        api.partition("/")[0] if "/" in api else "" for api in (target.api_version, head.api_version)
    )
    return (group, target.kind, target.name) == (other, head.kind, head.name)


def _check_name(target: wishes.Target, stored: StoredObject | None) -> None:
    if stored is not None and not _is_same(target, stored):
        head = stored.head
        message = (
            f'{target.resource} "{target.name}" can\'t be written: its binding would have the name of that of '
            f"{head.api_version} {head.kind} {head.name}; delete that one first, or take another name"
        )
        raise StatusError(409, "Conflict", message)


def _is_finalized(value: Json) -> bool:
    metadata = as_object(value.get("metadata")) or {}
    return "deletionTimestamp" in metadata and not as_list(metadata.get("finalizers"))


def _manifest(value: Json) -> Json:
    """The part of an object that is stored: all but derived metadata, engine labels, status and its field owners."""
    unfiltered = as_object(value.get("metadata")) or {}
    metadata = {name: item for name, item in unfiltered.items() if name not in _DERIVED and item is not None}
    for name in ("labels", "annotations"):
        marks = as_object(metadata.pop(name, None)) or {}
        kept = {mark: text for mark, text in marks.items() if mark not in MARKS}
        if kept:
            metadata[name] = kept
    if "managedFields" in metadata:
        # Field owners of the status are stored with the status.
        kept_entries = [each for each in _entries(value) if not field_owners.is_of_status(each)]
        metadata.pop("managedFields")
        metadata |= {"managedFields": kept_entries} if kept_entries else {}
    fields = admission.without_nulls_of_kubernetes(value)
    return {**{name: item for name, item in fields.items() if name != "status"}, "metadata": metadata}


def _encoded(manifest: Json) -> bytes:
    try:
        raw = wishes.encode(manifest)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as error:
        raise StatusError(400, "BadRequest", f"the object can't be written as JSON: {error}") from None
    if len(raw) > limits.OBJECT_BYTES_MAX:
        message = f"the object has {len(raw)} bytes; at most {limits.OBJECT_BYTES_MAX} are kept"
        raise StatusError(413, "RequestEntityTooLarge", message)
    return raw


def _with_generation(desired: Json, stored: StoredObject | None, raw: bytes) -> Json:
    """The object with the generation that this write will give it."""
    metadata = dict(as_object(desired.get("metadata")) or {})
    if stored is None:
        metadata["generation"] = 1
    else:
        changed = objects.spec_digest(msgspec.Raw(raw)) != stored.head.digest
        metadata["generation"] = stored.head.generation + changed
    return {**desired, "metadata": metadata}
