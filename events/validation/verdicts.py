"""Verdicts on inputs: a pure fold over one partition, the same for owners, projections and the verifier.

Whether an input takes effect depends only on earlier records of its own partition. A verdict is ``Taken``, ``Skipped``,
or ``Refused`` as *refused* (invalid form), *misplaced* (wrong topic, key or partition), *repeated* (source and id were
seen before) or *late* (the stored version is not the expected one).
"""

import hashlib
from collections.abc import Callable
from sys import intern
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from events import (
    clusters,
    codec,
    ids,
    keys,
    kube_objects,
    limits,
    policies,
    records,
    shapes,
    specs,
    times,
    topics,
)
from events.limits import quoted, shortened
from events.records import Envelope
from events.validation import event_fields, known_kinds
from events.validation.recent_ids import DIGEST_BYTES, RecentIds


class Head(Struct, frozen=True, gc=False):
    """State of one object in the fold.

    ``version`` is the write version (offset + 1) of the last write, ``created_ms`` the time of the event that
    created it. Two objects may have the same key; ``api_version``, ``kind`` and ``name`` identify the stored
    one.
    """

    version: int
    generation: int
    uid: str
    created_ms: int
    digest: str
    api_version: str = ""
    kind: str = ""
    name: str = ""


class Heads(Protocol):
    """The heads of the objects in a partition, by key: a dictionary, or a table of which only a part is in memory."""

    def get(self, key: str, /) -> Head | None: ...

    def __setitem__(self, key: str, head: Head, /) -> None: ...

    def __delitem__(self, key: str, /) -> None: ...


class Taken(Struct, frozen=True, gc=False):
    """An input that takes effect; ``head`` and ``manifest`` are set for writes of objects.

    ``is_new``: nothing was stored under its key.
    """

    record: records.StoredRecord
    envelope: Envelope
    data: shapes.Event
    at_ms: int
    head: Head | None = None
    manifest: kube_objects.Manifest | None = None
    is_new: bool = False


class Refused(Struct, frozen=True, gc=False):
    """An input without effect, and the reason; ``envelope`` is None if it could not be read."""

    record: records.StoredRecord
    verdict: str
    field: str
    reason: str
    envelope: Envelope | None = None


class Skipped(Struct, frozen=True, gc=False):
    """An event of a type that this release does not know."""

    record: records.StoredRecord


Verdict = Taken | Refused | Skipped
Check = Callable[[kube_objects.Manifest, msgspec.Raw], None]
"""Function that checks the spec of an object; raises ``kube_objects.Refusal``."""


class PartitionState(Struct):
    """State of the fold over one partition: heads of objects by key, and recently seen ids.

    ``recent`` holds the digest of each (source, id); it depends only on the records at the last
    ``limits.RECENT_IDS`` offsets.
    """

    topic: str
    partition: int
    heads: dict[str, Head] = {}
    recent: RecentIds = msgspec.field(default_factory=RecentIds)


_CLUSTER: Final = kube_objects.Manifest()
"""An empty manifest for clusters, which have none and are identified by their key alone."""


def key_of(data: shapes.Event, manifest: kube_objects.Manifest | None = None) -> str:
    """Return the key that an input must have; raises TypeError for an event that is not an input."""
    if manifest is None or not isinstance(data, shapes.ObjectApplied):
        return data.record_key
    head = manifest.metadata
    return known_kinds.record_key(data.route, manifest.kind, head.namespace, head.name)


class PartitionFold:
    """Folds the records of one input partition, in order, into verdicts.

    ``check`` validates the spec of objects of known kinds and must be pure. ``heads``, if given, replaces the heads in
    ``state``. Every record, however malformed, ends in a verdict, never in an exception.
    """

    def __init__(self, state: PartitionState, check: Check, heads: Heads | None = None) -> None:
        self.state = state
        self._check = check
        self._heads = state.heads if heads is None else heads

    def take(self, record: records.StoredRecord) -> Verdict:
        """Return the verdict on the next record and advance the state."""
        if records.is_deeper(record.value, limits.RECORD_DEPTH_MAX):
            reason = f"nested deeper than {limits.RECORD_DEPTH_MAX} levels"
            return Refused(record, "refused", "data", reason)
        decoded = codec.decode(record)
        match decoded:
            case codec.Unknown():
                return Skipped(record)
            case codec.Malformed(field=field, reason=reason, envelope=head):
                return Refused(record, "refused", field, reason, head)
            case codec.Decoded(envelope=head, data=data):
                try:
                    return self._judge(record, head, data)
                except kube_objects.Refusal as refusal:
                    return Refused(record, "refused", refusal.field, refusal.reason, head)

    def _judge(self, record: records.StoredRecord, envelope: Envelope, data: shapes.Event) -> Verdict:
        entry_topic = data.event_type.topic
        if entry_topic != record.topic:
            return Refused(record, "misplaced", "type", f"belongs to the topic {entry_topic}", envelope)
        # Record the id before the checks below, so that a refused event uses up its id too: another order
        # would change verdicts on existing logs.
        if self._repeated(envelope, record.offset):
            return Refused(record, "repeated", "id", "this source has said this id already", envelope)
        at_ms = _time_of(envelope)
        manifest = _manifest_of(data)
        key = key_of(data, manifest)
        if record.key != key:
            return Refused(record, "misplaced", "key", f"must be {quoted(key)}", envelope)
        partition = keys.partition_of(key, topics.TOPICS[record.topic].partitions)
        if partition != record.partition:
            return Refused(record, "misplaced", "key", f"belongs in partition {partition}", envelope)
        return self._write(record, envelope, data, at_ms, manifest)

    def _write(
        self,
        record: records.StoredRecord,
        envelope: Envelope,
        data: shapes.Event,
        at_ms: int,
        manifest: kube_objects.Manifest | None,
    ) -> Verdict:
        key = record.key
        head = self._heads.get(key)
        is_new = head is None
        expects: int | None = getattr(data, "expects", None)
        if expects is not None and expects != (head.version if head else 0):
            now = f"version {head.version} stands" if head else "there is none"
            return Refused(record, "late", "expects", f"written for version {expects}, but {now}", envelope)
        if isinstance(data, shapes.ObjectDeleted):
            if head is None or head_named(data, head) != head:
                return Refused(record, "refused", "name", f"{key} does not exist", envelope)
            del self._heads[key]
            return Taken(record, envelope, data, at_ms, head)
        if isinstance(data, specs.TemplateEvent | policies.ConfigurationEvent):
            if head is None or head_named(data, head) != head:
                raise kube_objects.Refusal("name", f"{key} does not exist")
            return self._take_about_object(record, envelope, data, at_ms, head)
        if manifest is not None and isinstance(data, shapes.ObjectApplied):
            self._check(manifest, data.manifest)
            digest = kube_objects.spec_digest(data.manifest)
            head = self._advance(record, envelope, at_ms, digest, manifest)
        elif record.topic == topics.LINKS:
            event_fields.check_link(data)
        elif record.topic == topics.POLICIES:
            event_fields.check_priority_class(data)
        elif record.topic == topics.CLUSTERS:
            event_fields.check_cluster_event(data)
            if head is None:
                self._check_join(data)
            if isinstance(data, clusters.ClusterWrite):
                head = self._advance(record, envelope, at_ms, str(record.offset))
        return Taken(record, envelope, data, at_ms, head, manifest, is_new)

    def _take_about_object(
        self,
        record: records.StoredRecord,
        envelope: Envelope,
        data: specs.TemplateEvent | policies.ConfigurationEvent,
        at_ms: int,
        head: Head,
    ) -> Verdict:
        """Return the verdict on an event about an existing object. Only a status write changes the object's version."""
        if isinstance(data, specs.TemplateStatusWritten | policies.ConfigurationStatusWritten):
            kube_objects.check_status(data.status)
            head = self._heads[record.key] = msgspec.structs.replace(head, version=record.offset + 1)
            return Taken(record, envelope, data, at_ms, head)
        if isinstance(data, specs.DeletionAllowed):
            event_fields.check_clusters((data.cluster,), "cluster")
        return Taken(record, envelope, data, at_ms)

    def _check_join(self, data: shapes.Event) -> None:
        """Raise Refusal unless the event is a join, and fewer than ``CLUSTERS_MAX`` clusters are members."""
        if not isinstance(data, clusters.ClusterJoined):
            raise kube_objects.Refusal("name", "the cluster is no member; join it first")
        if len(self.state.heads) >= limits.CLUSTERS_MAX:
            raise kube_objects.Refusal(
                "name", f"there are {limits.CLUSTERS_MAX} clusters; one has to leave first"
            )

    def _advance(
        self,
        record: records.StoredRecord,
        envelope: Envelope,
        at_ms: int,
        digest: str,
        manifest: kube_objects.Manifest = _CLUSTER,
    ) -> Head:
        old = self._heads.get(record.key)
        name = manifest.metadata.name
        if old is not None and (old.api_version, old.kind, old.name) != (
            manifest.api_version,
            manifest.kind,
            name,
        ):
            field = "apiVersion" if old.api_version != manifest.api_version else "metadata.name"
            raise kube_objects.Refusal(
                field, f"{old.api_version} {old.kind} {old.name} has this binding name; delete that one first"
            )
        offset, generation, uid, created_ms = record.offset, 1, "", at_ms
        # Derived from the record alone, so that every reader computes the same uid and generation.
        if old is None:
            uid = ids.object_uid(envelope.source, envelope.id, record.key)
        else:
            uid, created_ms = old.uid, old.created_ms
            generation = old.generation + (digest != old.digest)
        new = Head(
            offset + 1,
            generation,
            uid,
            created_ms,
            digest,
            intern(manifest.api_version),
            intern(manifest.kind),
            name,
        )
        self._heads[record.key] = new
        return new

    def _repeated(self, envelope: Envelope, offset: int) -> bool:
        text = f"{envelope.source}\0{envelope.id}"
        return self.state.recent.add(
            hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES).digest(), offset
        )


def _manifest_of(data: shapes.Event) -> kube_objects.Manifest | None:
    """Return the head of the object in the event; raises Refusal if its kind needs another type of event."""
    if not isinstance(data, shapes.ObjectApplied):
        return None
    manifest = kube_objects.read_head(data.manifest)
    route = known_kinds.route_of(manifest.api_version, manifest.kind)
    if route != data.route:
        kind, api_version = shortened(manifest.kind), shortened(manifest.api_version)
        raise kube_objects.Refusal("kind", f"a {kind} of {api_version} is a {route}")
    return manifest


def head_named(data: shapes.Event, head: Head) -> Head | None:
    """Return ``head`` with the identity that an event names; None if no object can have that identity.

    The result equals ``head`` if the event names the stored object.
    """
    match data:
        case specs.TemplateEvent(template=ref) | policies.ConfigurationEvent(object=ref):
            return msgspec.structs.replace(head, api_version=ref.api_version, kind=ref.kind, name=ref.name)
        case policies.PolicyDeleted(policy=ref):
            api_version = known_kinds.POLICY_GROUP
            if known_kinds.route_of(api_version, ref.kind) != "policy":
                return None
            return msgspec.structs.replace(head, api_version=api_version, kind=ref.kind, name=ref.name)
        case clusters.ClusterLeft(uid=uid) if uid:
            return msgspec.structs.replace(head, uid=uid)
        case _:
            return head


def _time_of(envelope: Envelope) -> int:
    """Return the event's own time in milliseconds; 0 if the producer set none, so that the fold needs no clock."""
    if not envelope.time:
        return 0
    try:
        return times.from_text(envelope.time)
    except ValueError as error:
        raise kube_objects.Refusal("time", str(error)) from None
