"""From what a producer says to the record that a log takes: key, partition, id, and the verdict on its form.

Nothing is sent here. The form is judged by the same fold that every reader uses, so that what would end in
``rejections`` is told to whoever says it, before it is sent; what depends on the records before it is not.
"""

import hashlib
from typing import Final

import msgspec
from msgspec import Struct

from events import (
    catalogue,
    codec,
    forms,
    objects,
    partitioning,
    policies,
    records,
    shapes,
    specs,
    times,
    topics,
    verdicts,
)
from events.envelope import Envelope

INPUT_TOPICS: Final = (topics.SPECS, topics.POLICIES, topics.CLUSTERS, topics.HEALTH)
"""The topics that producers write to; the engine writes the others."""

_POLICY_API: Final = "policy.karmada.io/v1alpha1"
_ID_BYTES: Final = 16


class Statement(Struct, frozen=True, kw_only=True):
    """An event to be said, with what its envelope may tell of it.

    ``id`` names the event for ever, together with the source; ``at_ms`` is when it happened (milliseconds since
    1970, UTC). Without an id, but with ``at_ms``, the id follows from source, type, key, time and data: who says
    the same again after a crash says it under the same id. With neither, the event is new each time.
    """

    data: shapes.Event
    id: str = ""
    at_ms: shapes.Instant | None = None
    subject: str = ""
    correlation_id: str = ""
    traceparent: str = ""
    tracestate: str = ""


def record_of(said: Statement, source: str, now_ms: int, new_id: str) -> records.Record:
    """The record of a statement, of the right key and in the right partition.

    ``now_ms`` and ``new_id`` stand in where the statement has no time, and neither time nor id. Raises
    objects.Refusal for what no log would take, and TypeError for an event that only the engine writes.
    """
    data = said.data
    entry = catalogue.BY_STRUCT[type(data)]
    if entry.topic not in INPUT_TOPICS:
        message = f"{type(data).__name__} is for the topic {entry.topic}, which only the engine writes"
        raise TypeError(message)
    raw = getattr(data, "manifest", None)
    manifest = objects.read(raw) if isinstance(raw, msgspec.Raw) else None
    key = verdicts.key_of(data, manifest)
    time = times.to_text(now_ms if said.at_ms is None else said.at_ms)
    event_id = said.id or (
        new_id if said.at_ms is None else derived_id(source, entry.type, key, time, codec.encode_data(data))
    )
    head = Envelope(
        id=event_id,
        source=source,
        type=entry.type,
        subject=said.subject,
        time=time,
        correlationid=said.correlation_id,
        traceparent=said.traceparent,
        tracestate=said.tracestate,
    )
    partition = partitioning.partition_of(key, topics.TOPICS[entry.topic].partitions)
    record = codec.encode(data, head, partition=partition, key=key)
    _check(record, data, manifest)
    return record


def derived_id(source: str, event_type: str, key: str, time: str, data: bytes) -> str:
    """The id that follows from all that an event says: 32 hex digits."""
    digest = hashlib.blake2b(f"{source}\0{event_type}\0{key}\0{time}\0".encode(), digest_size=_ID_BYTES)
    digest.update(data)
    return digest.hexdigest()


def _check(record: records.Record, data: shapes.Event, manifest: objects.Manifest | None) -> None:
    """Raises Refusal if the record would be refused even where everything stands that it builds on."""
    state = verdicts.PartitionState(record.topic, record.partition)
    expects: int | None = getattr(data, "expects", None)
    if expects != 0:
        state.heads[record.key] = _head(data, manifest, expects or 1)
    verdict = verdicts.PartitionFold(state, forms.check).take(records.stored(record, expects or 1, 1))
    if isinstance(verdict, verdicts.Refused):
        raise objects.Refusal(verdict.field, verdict.reason)


def _head(data: shapes.Event, manifest: objects.Manifest | None, version: int) -> verdicts.Head:
    """The object that must stand for the event to have its effect."""
    api_version = kind = name = ""
    match data:
        case specs.TemplateDeleted(template=ref):
            api_version, kind, name = ref.api_version, ref.kind, ref.name
        case policies.PolicyDeleted(policy=ref):
            api_version, kind, name = _POLICY_API, ref.kind, ref.name
        case _ if manifest is not None:
            api_version, kind, name = manifest.api_version, manifest.kind, manifest.metadata.name
        case _:
            pass
    return verdicts.Head(version, 1, "", 0, "", api_version, kind, name)
