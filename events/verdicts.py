"""What an input does to its partition: a pure fold, the same for owners, views and the verifier.

Whether an input takes effect follows from the records before it in its own partition, and from nothing else
(design section 2). A verdict is ``Taken``, or ``Refused`` with one of four words: *refused* (its form),
*misplaced* (another partition's key), *repeated* (this source and id were seen), *late* (a newer write stands).
"""

import hashlib
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Struct

from events import (
    clusters,
    codec,
    health,
    ids,
    keys,
    limits,
    links,
    objects,
    partitioning,
    policies,
    records,
    shapes,
    specs,
    times,
    topics,
)
from events.envelope import Envelope


class Head(Struct, frozen=True, gc=False):
    """What the fold keeps of one object.

    ``version`` is the home version (offset + 1) of its last write, ``created_ms`` the time of the event that
    created it.
    """

    version: int
    generation: int
    uid: str
    created_ms: int
    digest: str
    api_version: str = ""


class Taken(Struct, frozen=True, gc=False):
    """An input that takes effect. ``head`` and ``manifest`` are there for writes of objects."""

    record: records.StoredRecord
    envelope: Envelope
    data: shapes.Event
    at_ms: int
    head: Head | None = None
    manifest: objects.Manifest | None = None


class Refused(Struct, frozen=True, gc=False):
    """An input without effect, and why; ``envelope`` is absent where not even that could be read."""

    record: records.StoredRecord
    verdict: str
    field: str
    reason: str
    envelope: Envelope | None = None


class Skipped(Struct, frozen=True, gc=False):
    """An event of a type that this release doesn't know."""

    record: records.StoredRecord


Verdict = Taken | Refused | Skipped
Check = Callable[[objects.Manifest, msgspec.Raw], None]
"""Checks the spec of one kind of object; raises ``objects.Refusal``."""


class PartitionState(Struct):
    """The state of the fold over one partition: heads of objects by key, and the ids seen of late."""

    topic: str
    partition: int
    heads: dict[str, Head] = {}
    recent: dict[bytes, int] = {}


_MANIFESTS: Final = (
    specs.TemplateApplied,
    specs.RebalancerApplied,
    policies.PolicyApplied,
    policies.NamespaceApplied,
    policies.InterpreterApplied,
)
_DELETIONS: Final = (
    specs.TemplateDeleted,
    specs.RebalancerDeleted,
    policies.PolicyDeleted,
    policies.NamespaceDeleted,
    policies.InterpreterDeleted,
    clusters.ClusterLeft,
)
_CLUSTER_WRITES: Final = (
    clusters.ClusterLabelled,
    clusters.ClusterDescribed,
    clusters.ClusterTainted,
    clusters.ClusterUntainted,
)


def key_of(data: shapes.Event, manifest: objects.Manifest | None = None) -> str:
    """The key under which an input must stand; raises TypeError for what is no input."""
    if manifest is not None:
        return _key_of_object(data, manifest)
    key = ""
    match data:
        case specs.TemplateDeleted(template=ref):
            key = keys.binding_key(ref.kind, ref.namespace, ref.name)
        case specs.RebalancerDeleted(name=name) | links.RescheduleAnswered(rebalancer=name):
            key = keys.rebalancer_key(name)
        case policies.PolicyDeleted(policy=ref):
            key = keys.object_key(ref.kind, ref.namespace, ref.name)
        case policies.NamespaceDeleted(name=name):
            key = keys.object_key("Namespace", "", name)
        case policies.InterpreterDeleted(name=name):
            key = keys.object_key("ReplicaInterpreter", "", name)
        case health.WorkloadReported(key=key) | health.WorkloadGone(key=key) | links.RescheduleAsked(key=key):
            pass
        case _:
            key = _cluster_key(data)
    return key


def _key_of_object(data: shapes.Event, manifest: objects.Manifest) -> str:
    name, namespace = manifest.metadata.name, manifest.metadata.namespace
    match data:
        case specs.TemplateApplied():
            return keys.binding_key(manifest.kind, namespace, name)
        case specs.RebalancerApplied():
            return keys.rebalancer_key(name)
        case _:
            return keys.object_key(manifest.kind, namespace, name)


def _cluster_key(data: shapes.Event) -> str:
    match data:
        case (
            clusters.ClusterJoined(name=name)
            | clusters.ClusterLeft(name=name)
            | clusters.ClusterLabelled(name=name)
            | clusters.ClusterDescribed(name=name)
            | clusters.ClusterTainted(name=name)
            | clusters.ClusterUntainted(name=name)
            | clusters.CapacityReported(name=name)
            | clusters.ClusterHealthChanged(name=name)
        ):
            return name
        case _:
            message = f"{type(data).__name__} is no input"
            raise TypeError(message)


class PartitionFold:
    """Folds the records of one input partition, in order, into verdicts.

    ``check`` looks at the spec of an object whose kind is known; it must be pure.
    """

    def __init__(self, state: PartitionState, check: Check) -> None:
        self.state = state
        self._check = check

    def take(self, record: records.StoredRecord) -> Verdict:
        """The verdict on the next record; the state moves on."""
        decoded = codec.decode(record)
        match decoded:
            case codec.Unknown():
                return Skipped(record)
            case codec.Malformed(field=field, reason=reason):
                return Refused(record, "refused", field, reason)
            case codec.Decoded(envelope=head, data=data):
                try:
                    return self._judge(record, head, data)
                except objects.Refusal as refusal:
                    return Refused(record, "refused", refusal.field, refusal.reason, head)

    def _judge(self, record: records.StoredRecord, envelope: Envelope, data: shapes.Event) -> Verdict:
        entry_topic = codec.catalogue.BY_STRUCT[type(data)].topic
        if entry_topic != record.topic:
            return Refused(record, "misplaced", "type", f"belongs to the topic {entry_topic}", envelope)
        if self._repeated(envelope, record.offset):
            return Refused(record, "repeated", "id", "this source has said this id already", envelope)
        at_ms = _time_of(envelope)
        manifest = objects.read(data.manifest) if isinstance(data, _MANIFESTS) else None
        key = key_of(data, manifest)
        home = partitioning.partition_of(key, topics.TOPICS[record.topic].partitions)
        if record.key != key or home != record.partition:
            return Refused(record, "misplaced", "key", f"must be {key!r}, in partition {home}", envelope)
        return self._write(record, envelope, data, at_ms, manifest)

    def _write(
        self,
        record: records.StoredRecord,
        envelope: Envelope,
        data: shapes.Event,
        at_ms: int,
        manifest: objects.Manifest | None,
    ) -> Verdict:
        key = record.key
        head = self.state.heads.get(key)
        expects: int | None = getattr(data, "expects", None)
        if expects is not None and expects != (head.version if head else 0):
            now = f"version {head.version} stands" if head else "there is none"
            return Refused(record, "late", "expects", f"written for version {expects}, but {now}", envelope)
        if isinstance(data, _DELETIONS):
            if head is None:
                return Refused(record, "refused", "name", f"{key} does not exist", envelope)
            del self.state.heads[key]
            return Taken(record, envelope, data, at_ms, head)
        if manifest is not None and isinstance(data, _MANIFESTS):
            self._check(manifest, data.manifest)
            digest = objects.spec_digest(data.manifest)
            head = self._advance(record, envelope, at_ms, digest, manifest.api_version)
        elif isinstance(data, clusters.ClusterJoined):
            head = self._advance(record, envelope, at_ms, str(record.offset), "")
        elif record.topic == topics.CLUSTERS and head is None:
            return Refused(record, "refused", "name", f"cluster {key} is no member; join it first", envelope)
        elif isinstance(data, _CLUSTER_WRITES):
            head = self._advance(record, envelope, at_ms, str(record.offset), "")
        return Taken(record, envelope, data, at_ms, head, manifest)

    def _advance(
        self, record: records.StoredRecord, envelope: Envelope, at_ms: int, digest: str, api_version: str
    ) -> Head:
        old = self.state.heads.get(record.key)
        if old is not None and old.api_version != api_version:
            raise objects.Refusal(
                "apiVersion", f"{old.api_version} has an object with this binding name; delete that one first"
            )
        if old is None:
            uid = ids.object_uid(envelope.source, envelope.id, record.key)
            new = Head(record.offset + 1, 1, uid, at_ms, digest, api_version)
        else:
            generation = old.generation + (digest != old.digest)
            new = Head(record.offset + 1, generation, old.uid, old.created_ms, digest, api_version)
        self.state.heads[record.key] = new
        return new

    def _repeated(self, envelope: Envelope, offset: int) -> bool:
        recent = self.state.recent
        seen = hashlib.blake2b(f"{envelope.source}\0{envelope.id}".encode(), digest_size=16).digest()
        while recent and recent[oldest := next(iter(recent))] <= offset - limits.RECENT_IDS:
            del recent[oldest]
        if seen in recent:
            return True
        recent[seen] = offset
        return False


def _time_of(envelope: Envelope) -> int:
    """The event's own time; 0 where a producer gave none, so that the fold needs no clock."""
    if not envelope.time:
        return 0
    try:
        return times.from_text(envelope.time)
    except ValueError as error:
        raise objects.Refusal("time", str(error)) from None
