"""Conversion of an event into a record for the log: key, partition, id and a check of its form.

Nothing is sent here. The check runs the fold that readers run, so it refuses an event whose form they would refuse.
Checks that depend on earlier records (expected versions, repeated ids) are left to readers.
"""

import hashlib
from typing import Final

from msgspec import Struct

from events import codec, keys, kube_objects, records, shapes, times, topics
from events.limits import quoted
from events.records import Envelope
from events.validation import manifests, verdicts

INPUT_TOPICS: Final = (topics.SPECS, topics.POLICIES, topics.CLUSTERS, topics.HEALTH)
"""The topics that producers write; the engine writes all others."""

_ID_BYTES: Final = 16


class Statement(Struct, frozen=True, kw_only=True):
    """An event to append, with the optional fields of its envelope.

    ``id``, together with the source, identifies the event forever; ``at_ms`` is when it happened
    (milliseconds since 1970, UTC). With ``at_ms`` but no id, the id is derived from source, type, key, time
    and data, so a producer that repeats the event after a crash uses the same id. With neither, every call
    makes a new event.
    """

    data: shapes.Event
    id: str = ""
    at_ms: shapes.Instant | None = None
    subject: str = ""
    correlation_id: str = ""
    traceparent: str = ""
    tracestate: str = ""


def record_of(statement: Statement, source: str, now_ms: int, new_id: str) -> records.Record:
    """Return the record of a statement, with the right key and partition.

    ``now_ms`` is used if the statement has no time, ``new_id`` if it has neither a time nor an id. Raises
    kube_objects.Refusal for an event that every reader would refuse or that has no form as a record, and TypeError for
    an event that only the engine writes.
    """
    try:
        return _record_of(statement, source, now_ms, new_id)
    except UnicodeEncodeError as error:
        text = quoted(str(error.object))
        raise kube_objects.Refusal("data", f"{text} has a surrogate, which UTF-8 cannot encode") from None


def _record_of(statement: Statement, source: str, now_ms: int, new_id: str) -> records.Record:
    data = statement.data
    entry = data.event_type
    if entry.topic not in INPUT_TOPICS:
        message = f"{type(data).__name__} is for the topic {entry.topic}, which only the engine writes"
        raise TypeError(message)
    manifest = kube_objects.read_head(data.manifest) if isinstance(data, shapes.ObjectApplied) else None
    key = verdicts.key_of(data, manifest)
    time = _time(now_ms if statement.at_ms is None else statement.at_ms)
    event_id = statement.id or (
        new_id
        if statement.at_ms is None
        else derived_id(source, entry.type, key, time, codec.encode_data(data))
    )
    head = Envelope(
        id=event_id,
        source=source,
        type=entry.type,
        subject=statement.subject,
        time=time,
        correlationid=statement.correlation_id,
        traceparent=statement.traceparent,
        tracestate=statement.tracestate,
    )
    partition = keys.partition_of(key, topics.TOPICS[entry.topic].partitions)
    record = codec.encode(data, head, partition=partition, key=key)
    _check(record, data, manifest)
    return record


def _time(at_ms: int) -> str:
    """Return a time as RFC 3339; raises Refusal outside of the years 1 to 9999, such as for a time in microseconds."""
    try:
        return times.to_text(at_ms)
    except OverflowError:
        reason = f"{at_ms} is outside of the years 1 to 9999; give milliseconds since 1970"
        raise kube_objects.Refusal("at_ms", reason) from None


def derived_id(source: str, event_type: str, key: str, time: str, data: bytes) -> str:
    """Return the id derived from the content of an event: 32 hex digits."""
    digest = hashlib.blake2b(f"{source}\0{event_type}\0{key}\0{time}\0".encode(), digest_size=_ID_BYTES)
    digest.update(data)
    return digest.hexdigest()


def _check(record: records.Record, data: shapes.Event, manifest: kube_objects.Manifest | None) -> None:
    """Raise Refusal if readers would refuse the record for a reason other than its expected version."""
    state = verdicts.PartitionState(record.topic, record.partition)
    expects: int | None = getattr(data, "expects", None)
    head = None if expects == 0 else _head(data, manifest, expects or 1)
    if head is not None:
        state.heads[record.key] = head
    verdict = verdicts.PartitionFold(state, manifests.check).take(records.stored(record, expects or 1, 1))
    if isinstance(verdict, verdicts.Refused):
        raise kube_objects.Refusal(verdict.field, verdict.reason)


def _head(data: shapes.Event, manifest: kube_objects.Manifest | None, version: int) -> verdicts.Head | None:
    """Return the fold state of the event's object as if it were stored with this write version.

    None if no object can have the identity that the event names.
    """
    written = manifest or kube_objects.Manifest()
    head = verdicts.Head(version, 1, "", 0, "", written.api_version, written.kind, written.metadata.name)
    return verdicts.head_named(data, head)
