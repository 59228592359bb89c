"""Records of the log as JSON: position, envelope, and data as recorded."""

import base64

import msgspec
from msgspec import Struct

from events import codec, tracing
from events.json_values import DECODING_ERRORS
from events.records import StoredRecord


class Entry(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One record. ``content`` holds the data in base64 if they are not JSON; ``fault`` says why it can't be decoded.

    ``cause`` is the causation id: the position of the record that led to this one. ``story`` is the correlation id,
    which all records of a chain of causes share. ``trace`` is the record's ``traceparent``, ``plan`` the id of the
    plan whose change caused the record.
    """

    number: int
    position: str
    key: str
    type: str = ""
    id: str = ""
    source: str = ""
    time: str = ""
    subject: str = ""
    cause: str = ""
    story: str = ""
    trace: str = ""
    plan: str = ""
    fault: str = ""
    data: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    content: str = ""


def entry(record: StoredRecord) -> Entry:
    """Convert a record to its JSON form, also a malformed one or one of an unknown type."""
    number, position, key = record.number, str(record.position), record.key
    data, content = _data(record.value)
    decoded = codec.decode(record)
    if isinstance(decoded, codec.Malformed):
        fault = f"{decoded.field}: {decoded.reason}"
        return Entry(number=number, position=position, key=key, fault=fault, data=data, content=content)
    head = decoded.envelope
    return Entry(
        number=number,
        position=position,
        key=key,
        type=head.type,
        id=head.id,
        source=head.source,
        time=head.time,
        subject=head.subject,
        cause=head.causationid,
        story=head.correlationid,
        trace=head.traceparent,
        plan=tracing.plan_of(head.trace),
        fault="" if isinstance(decoded, codec.Decoded) else "unknown event type in this release",
        data=data,
        content=content,
    )


def _data(value: bytes) -> tuple[msgspec.Raw | msgspec.UnsetType, str]:
    try:
        msgspec.json.decode(value)
    except DECODING_ERRORS:
        return msgspec.UNSET, base64.b64encode(value).decode()
    return msgspec.Raw(value), ""
