"""Mutations of an object through the Kubernetes API: replace, change the status, delete.

An edit sees the object as rendered, with its identity, status and claim labels; these are removed from the
result, so that derived fields are never stored as part of the spec. Refusals are raised as StatusError.
"""

from typing import Final

import msgspec
from msgspec import Struct

from engine.domain import marks
from engine.karmada import rules
from engine.kubeapi.errors import status_objects
from engine.kubeapi.errors.status_objects import StatusError
from engine.kubeapi.patching import managed_fields
from engine.kubeapi.schema.resources import Resource
from engine.kubeapi.values import cluster_ips, job_selectors, resource_versions
from engine.objects import owner_references
from engine.objects.owner_references import Propagation
from engine.writing import cluster_changes, cluster_status
from engine.writing.mutations import Action, Edit, Edited, Mutated, Problem, StoredState, Target, not_found
from events import catalogue, keys, kube_objects, limits, policies, records, shapes, specs, times, vocabulary
from events.json_values import Json, decoded, object_at
from events.kube_objects import KubeObject
from projections.clusters import Cluster
from projections.documents import field_owners
from projections.documents.clusters import cluster_document
from projections.objects import StoredObject

_DERIVED: Final = ("creationTimestamp", "generation", "resourceVersion", "selfLink", "uid")

_DEPTH_MAX: Final = limits.RECORD_DEPTH_MAX - 1
"""Maximum nesting depth of an object; the data of the event that contains it are one level deeper."""

_STATUS_BYTES_MAX: Final = limits.RECORD_BYTES_MAX - 64 * 1024
"""Maximum size of a status with its field owners, in bytes; 64 KiB remain for the rest of the record."""

encode: Final = msgspec.json.Encoder(order="deterministic").encode


class Change(Struct, frozen=True, kw_only=True):
    """Create or replace an object. ``resource`` describes the kind for error messages.

    ``has_status``: write the edited status too. ``begins_with_status``: write it only if the object is created.
    """

    target: Target
    edit: Edit
    resource: Resource | None = None
    has_status: bool = False
    begins_with_status: bool = False

    def apply(self, stored: StoredState) -> Mutated | Problem:
        """Return the edited object, and the event that writes it (or deletes it, if its last finalizer was removed)."""
        if isinstance(stored, Cluster) or self.target.route == "cluster":
            return self._apply_to_cluster(stored if isinstance(stored, Cluster) else None)
        if stored is not None:
            _check_name(self.target, stored)
        live = None if stored is None else self._live(stored)
        edited = self.edit.apply(live)
        raw = manifest(edited.value)
        statuses = self._statuses(stored, edited.value)
        if stored is None or live is None:
            value = edited.value.with_metadata({"generation": 1})
            event = catalogue.BY_ROUTE[self.target.route](manifest=msgspec.Raw(raw), expects=0)
            return _mutated(Action.CREATED, value, edited, event, *statuses)
        is_spec_changed = kube_objects.spec_digest(msgspec.Raw(raw)) != stored.head.digest
        value = edited.value.with_metadata({"generation": _generation(stored) + is_spec_changed})
        # Other producers write the fields of an object in any order.
        if raw == stored.manifest or raw == manifest(live):
            action = Action.CONFIGURED if statuses else Action.UNCHANGED
            return _mutated(action, value, edited, *statuses)
        version = stored.head.version
        # Delete the object with its last finalizer, except namespaces: a controller deletes them once they are empty.
        is_last = edited.value.is_ending and not marks.finalizers(edited.value)
        if self.target.route != "namespace" and is_last:
            return _mutated(Action.DELETED, value, edited, _deleted(self.target, value, version))
        event = catalogue.BY_ROUTE[self.target.route](manifest=msgspec.Raw(raw), expects=version)
        return _mutated(Action.CONFIGURED, value, edited, event, *statuses)

    def _live(self, stored: StoredObject) -> KubeObject:
        live = live_object(self.target, stored)
        return _with_status(live, stored) if self.has_status else live

    def _statuses(self, stored: StoredObject | None, value: KubeObject) -> tuple[shapes.Event, ...]:
        """Return the event that writes the status, if the status is written and has changed."""
        if not self.has_status and not (stored is None and self.begins_with_status):
            return ()
        status = value.object_at("status")
        encoded = _encoded(status)
        if encoded == (b"{}" if stored is None or not stored.status else stored.status):
            return ()
        _check_size(encoded, _STATUS_BYTES_MAX)
        return (_status_written(self.target, status, (), None),)

    def _apply_to_cluster(self, stored: Cluster | None) -> Mutated:
        edited = self.edit.apply(None if stored is None else _live_cluster(stored))
        if stored is not None and cluster_changes.is_released(stored, edited.value):
            return _mutated(Action.DELETED, edited.value, edited, cluster_changes.left_event(stored))
        try:
            spec = cluster_changes.spec_of(edited.value, stored, None if stored else edited.value)
        except ValueError as error:
            raise StatusError(400, "BadRequest", f"the Cluster can't be read: {error}") from None
        events = cluster_changes.events_of(self.target.name, stored, spec)
        action = Action.CREATED if stored is None else Action.CONFIGURED if events else Action.UNCHANGED
        return _mutated(action, edited.value, edited, *events)


class StatusChange(Struct, frozen=True, kw_only=True):
    """Change an object's status; where the engine derives a value, reads still show the derived one."""

    target: Target
    edit: Edit

    def apply(self, stored: StoredState) -> Mutated | Problem:
        """Return the object with its edited status, and the events that write it."""
        if isinstance(stored, Cluster):
            edited = self.edit.apply(_live_cluster(stored))
            _encoded(edited.value.object_at("status"))
            return cluster_status.mutated(self.target, stored, edited)
        if stored is None or not _is_same(self.target, stored):
            self.edit.apply(None)
            return not_found(self.target)
        live = _with_status(live_object(self.target, stored), stored)
        edited = self.edit.apply(_with_status_owners(live, stored))
        status = edited.value.object_at("status")
        owned = field_owners.of_entries(
            [entry for entry in managed_fields.entries(edited.value) if managed_fields.is_of_status(entry)]
        )
        encoded, encoded_owners = _encoded(status), field_owners.encode(owned)
        if (encoded, encoded_owners) == (stored.status or b"{}", stored.owners):
            return _mutated(Action.UNCHANGED, edited.value, edited)
        _check_size(encoded + encoded_owners, _STATUS_BYTES_MAX)
        event = _status_written(self.target, status, owned, stored.head.version)
        return _mutated(Action.CONFIGURED, edited.value, edited, event)


class Preconditions(Struct, frozen=True, kw_only=True):
    """Conditions that a client sets for a deletion: uid and resourceVersion of the object, empty for any.

    ``newest`` is the highest resourceVersion that this server knows.
    """

    resource: Resource
    uid: str = ""
    resource_version: str = ""
    newest: int = 0

    def check(self, live: KubeObject) -> None:
        """Raise StatusError (409) if the object has another uid than required, or was written since the version."""
        required = (
            ("UID", self.uid, live.uid, self.uid == live.uid),
            ("ResourceVersion", self.resource_version, live.resource_version, self._is_current(live)),
        )
        for field, expected, actual, is_met in required:
            if expected and not is_met:
                raise status_objects.unwanted_deletion(self.resource, live.name, field, expected, actual)

    def _is_current(self, live: KubeObject) -> bool:
        """Whether the object was not written after the required version.

        That version may be newer than the last write: a derived status also raises the resourceVersion.
        """
        seen, written = self.resource_version, live.resource_version
        if seen == written:
            return True
        return resource_versions.is_valid(seen) and int(written or 0) < int(seen) <= self.newest


class Removal(Struct, frozen=True, kw_only=True):
    """Delete an object; if it has finalizers, only mark it as terminating. Removing its last finalizer then deletes it.

    Without ``is_final`` a namespace is only marked. With ``is_final``, only a marked object without finalizers is
    deleted. ``propagation`` ``FOREGROUND`` adds a finalizer that the garbage collector removes after it has
    deleted the dependents. ``ORPHAN`` keeps a template's workloads in the clusters; a template that is only marked gets
    the finalizer ``orphan`` for this, as in Kubernetes. With ``ORPHAN`` and ``has_dependents`` any object is only
    marked: the garbage collector releases the dependents, then deletes the object.
    """

    target: Target
    now_ms: int
    preconditions: Preconditions | None = None
    is_final: bool = False
    propagation: Propagation = Propagation.UNSET
    has_dependents: bool = False

    def apply(self, stored: StoredState) -> Mutated | Problem:
        """Return the object, deleted or marked, with the event for that; unchanged if there is nothing to do."""
        if isinstance(stored, Cluster):
            return self._apply_to_cluster(stored)
        if stored is None or not _is_same(self.target, stored):
            return not_found(self.target)
        before = live_object(self.target, stored)
        self._check(before)
        version, is_marked = stored.head.version, before.is_ending
        live = self._with_finalizer(before)
        stays = self.has_dependents or _is_awaited(live)
        stays = stays or (self.target.route == "namespace" and not self.is_final)
        if (stays and is_marked and live == before) or (self.is_final and (stays or not is_marked)):
            return Mutated(action=Action.UNCHANGED, value=live)
        if not stays:
            event = _deleted(self.target, live, version)
            return Mutated(action=Action.DELETED, value=live, events=(event,))
        marks_of_deletion = {
            "deletionTimestamp": times.to_seconds_text(self.now_ms),
            **({} if self.target.route == "namespace" else {"deletionGracePeriodSeconds": 0}),
            "generation": _generation(stored) + 1,
        }
        value = live if is_marked else live.with_metadata(marks_of_deletion)
        event = catalogue.BY_ROUTE[self.target.route](manifest=msgspec.Raw(manifest(value)), expects=version)
        return Mutated(action=Action.MARKED, value=value, events=(event,))

    def _with_finalizer(self, live: KubeObject) -> KubeObject:
        """Return the object with the finalizer for this ``propagation``; that of an earlier deletion is removed."""
        own = marks.finalizers(live)
        finalizers = owner_references.finalizers_during_deletion(own, self.propagation)
        # There is nothing to orphan: only templates have workloads in the clusters.
        if self.target.route != "template" and not self.has_dependents:
            finalizers = [name for name in finalizers if name != owner_references.ORPHAN or name in own]
        return live if finalizers == own else live.with_metadata({"finalizers": finalizers})

    def _apply_to_cluster(self, stored: Cluster) -> Mutated:
        """Start a cluster's departure; it stays until its workloads have been removed."""
        self._check(_live_cluster(stored))
        if stored.leaving_ms is not None:
            return Mutated(action=Action.UNCHANGED, value=cluster_document(stored, managed=True))
        leaving = msgspec.structs.replace(stored, leaving_ms=self.now_ms)
        value = cluster_document(leaving, managed=True)
        return Mutated(action=Action.MARKED, value=value, events=(cluster_changes.leaving(stored),))

    def _check(self, live: KubeObject) -> None:
        """Raise StatusError if a precondition is not met, or the object is protected against deletion."""
        if self.preconditions is not None:
            self.preconditions.check(live)
        # The final deletion of a namespace skips this check, which passed when the namespace was marked.
        if not self.is_final:
            rules.check_deletion(live)


def _deleted(target: Target, value: KubeObject, expects: int) -> shapes.Event:
    """The event that deletes an object."""
    match target.route:
        case "template":
            orphans = owner_references.ORPHAN in marks.finalizers(value)
            return specs.TemplateDeleted(template=target.reference, expects=expects, orphans=orphans)
        case "configuration":
            return policies.ConfigurationDeleted(object=target.reference, expects=expects)
        case "rebalancer":
            return specs.RebalancerDeleted(name=target.name, expects=expects)
        case "namespace":
            return policies.NamespaceDeleted(name=target.name, expects=expects)
        case "interpreter":
            return policies.InterpreterDeleted(name=target.name, expects=expects)
        case _:
            policy = shapes.PolicyRef(kind=target.kind, name=target.name, namespace=target.namespace)
            return policies.PolicyDeleted(policy=policy, expects=expects)


def _status_written(
    target: Target, status: Json, owned: tuple[shapes.FieldsOwner, ...], expects: int | None
) -> shapes.Event:
    """The event that writes an object's status; only templates and configuration have a writable status."""
    fields = msgspec.json.decode(encode(status), type=shapes.Object)
    if target.route == "configuration":
        return policies.ConfigurationStatusWritten(
            object=target.reference, status=fields, managed_fields=owned, expects=expects
        )
    return specs.TemplateStatusWritten(
        template=target.reference, status=fields, managed_fields=owned, expects=expects
    )


def _mutated(action: Action, value: KubeObject, edited: Edited, *events: shapes.Event) -> Mutated:
    return Mutated(action=action, value=value, events=events, warnings=edited.warnings)


def live_object(target: Target, stored: StoredObject) -> KubeObject:
    """The stored object with derived values: uid, resourceVersion, generation, creation time, cluster IP, selector."""
    head = stored.head
    metadata = {
        "name": target.name,
        "uid": head.uid,
        "resourceVersion": str(stored.number),
        "generation": _generation(stored),
        "creationTimestamp": times.to_seconds_text(head.created_ms),
    }
    value = stored.content.with_metadata(metadata)
    if value.type_meta == vocabulary.SERVICE:
        return cluster_ips.with_cluster_ip(value)
    if value.type_meta == vocabulary.JOB:
        return job_selectors.shown(value)
    return marks.with_policy_marks(head.uid, value)


def _generation(stored: StoredObject) -> int:
    """The generation of an object as rendered: the number of its specs, plus one if it is terminating."""
    return stored.head.generation + is_ending(stored)


def _live_cluster(stored: Cluster) -> KubeObject:
    """The Cluster with the resourceVersion of its last write, since later reports must not cause conflicts."""
    return cluster_document(msgspec.structs.replace(stored, number=stored.written), managed=True)


def _with_status(live: KubeObject, stored: StoredObject) -> KubeObject:
    """Return the object with the status that clients wrote."""
    return live.with_fields({"status": decoded(stored.status)}) if stored.status else live


def _with_status_owners(live: KubeObject, stored: StoredObject) -> KubeObject:
    written = [*managed_fields.entries(live), *field_owners.entries(field_owners.decode(stored.owners))]
    return live.with_metadata({"managedFields": written}) if written else live


def is_ending(stored: StoredObject) -> bool:
    """Whether an object has a deletionTimestamp."""
    # Searching the bytes first avoids decoding nearly every object.
    if b"deletionTimestamp" not in stored.manifest:
        return False
    return stored.content.is_ending


def _is_same(target: Target, stored: StoredObject) -> bool:
    """Whether the stored object is the target, in any version of its API group.

    Two objects can share a key: binding keys have no group, so a Deployment of another group collides.
    """
    head = stored.head
    group, other = keys.group_of(target.api_version), keys.group_of(head.api_version)
    return (group, target.kind, target.name) == (other, head.kind, head.name)


def _check_name(target: Target, stored: StoredObject) -> None:
    if not _is_same(target, stored):
        head = stored.head
        message = (
            f'{target.resource} "{target.name}" can\'t be written: its binding would have the name of the binding of '
            f"{head.api_version} {head.kind} {head.name}; delete this one first, or use another name"
        )
        raise StatusError(409, "Conflict", message)


def is_finalized(value: KubeObject) -> bool:
    """Whether an object is being deleted and has no finalizers except ``orphan``."""
    return value.is_ending and not _is_awaited(value)


def _is_awaited(value: KubeObject) -> bool:
    """Whether an object has finalizers other than ``orphan``, so that its deletion must wait."""
    return any(name != owner_references.ORPHAN for name in marks.finalizers(value))


def manifest(value: KubeObject) -> bytes:
    """The bytes of an object to store: without derived values, claim labels, the status and its field owners."""
    metadata = {
        name: item for name, item in value.metadata.items() if name not in _DERIVED and item is not None
    }
    for name in ("labels", "annotations"):
        texts = object_at(metadata.pop(name, None))
        kept = {mark: text for mark, text in texts.items() if mark not in marks.CLAIMS}
        if kept:
            metadata[name] = kept
    if metadata.pop("finalizers", None) is not None and (own := marks.finalizers(value)):
        metadata["finalizers"] = own
    if "managedFields" in metadata:
        # Field owners of the status are stored with the status.
        kept_entries = [
            entry for entry in managed_fields.entries(value) if not managed_fields.is_of_status(entry)
        ]
        metadata.pop("managedFields")
        metadata |= {"managedFields": kept_entries} if kept_entries else {}
    if value.type_meta == vocabulary.SERVICE:
        value = cluster_ips.without_cluster_ip(value)
    elif value.type_meta == vocabulary.JOB:
        value = job_selectors.stored(value)
    return _encoded(value.without_fields("status").with_fields({"metadata": metadata}).document)


def _encoded(value: object) -> bytes:
    """The value as JSON; raises StatusError: 400 if it cannot be encoded or is nested too deeply, 413 if too large."""
    try:
        raw = encode(value)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as error:
        raise StatusError(400, "BadRequest", f"the object can't be written as JSON: {error}") from None
    _check_size(raw, limits.OBJECT_BYTES_MAX)
    return raw


def _check_size(raw: bytes, bytes_max: int) -> None:
    """Raise StatusError if the fold would refuse (a part of) an object: 413 if too large, 400 if nested too deeply.

    Otherwise the event would be in the log without effect, and the client would get a conflict instead of this reason.
    """
    if len(raw) > bytes_max:
        message = f"the object has {len(raw)} bytes; at most {bytes_max} are allowed"
        raise StatusError(413, "RequestEntityTooLarge", message)
    if records.is_deeper(raw, _DEPTH_MAX):
        message = f"the object, with its managedFields, is nested deeper than {_DEPTH_MAX} levels"
        raise StatusError(400, "BadRequest", message)
