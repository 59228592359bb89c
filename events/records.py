"""Records: events as bytes in the log, their positions, and the headers that hold their CloudEvents attributes.

Binary content mode has the attributes of CloudEvents 1.0 in ``ce_`` headers, structured mode inside the value (see
``codec``).
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct

from events import limits, tracing

SPEC_VERSION: Final = "1.0"
PREFIX: Final = "ce_"
CONTENT_TYPE: Final = "content-type"
JSON: Final = "application/json"
"""Media type of data in binary mode, and of most HTTP bodies."""

STRUCTURED: Final = "application/cloudevents+json"


class Envelope(Struct, frozen=True, kw_only=True, gc=False):
    """CloudEvents attributes of one event; an empty string means that the attribute is absent.

    ``time`` is RFC 3339. ``correlationid`` is common to all events that follow from one request;
    ``causationid`` is the position of the record that directly caused this one. ``authtype`` and ``authid`` are kind
    and name of the user whose request wrote the event (CloudEvents extension *auth context*).
    """

    id: str
    source: str
    type: str
    subject: str = ""
    time: str = ""
    dataschema: str = ""
    traceparent: str = ""
    tracestate: str = ""
    correlationid: str = ""
    causationid: str = ""
    authtype: str = ""
    authid: str = ""

    @property
    def trace(self) -> tracing.Trace:
        """The W3C trace context of the event, to pass on to the records that follow from it."""
        return tracing.trace(self.traceparent, self.tracestate) if self.traceparent else tracing.NO_TRACE


ATTRIBUTES: Final = Envelope.__struct_fields__
REQUIRED: Final = ("id", "source", "type")


def to_headers(envelope: Envelope) -> dict[str, str]:
    """Return the headers of binary content mode, without absent attributes."""
    headers = {
        "ce_specversion": SPEC_VERSION,
        "ce_id": envelope.id,
        "ce_source": envelope.source,
        "ce_type": envelope.type,
    }
    if envelope.subject:
        headers["ce_subject"] = envelope.subject
    if envelope.time:
        headers["ce_time"] = envelope.time
    if envelope.dataschema:
        headers["ce_dataschema"] = envelope.dataschema
    if envelope.traceparent:
        headers["ce_traceparent"] = envelope.traceparent
    if envelope.tracestate:
        headers["ce_tracestate"] = envelope.tracestate
    if envelope.correlationid:
        headers["ce_correlationid"] = envelope.correlationid
    if envelope.causationid:
        headers["ce_causationid"] = envelope.causationid
    if envelope.authtype:
        headers["ce_authtype"] = envelope.authtype
    if envelope.authid:
        headers["ce_authid"] = envelope.authid
    return headers


def from_attributes(attributes: Mapping[str, object]) -> Envelope:
    """Return the envelope with these CloudEvents attributes, named without prefix; unknown extensions are ignored.

    None means that an attribute is absent. Raises ValueError with the name of an attribute that is missing or not
    text, or with the total size if that is over the limit.
    """
    if attributes.get("specversion") != SPEC_VERSION:
        message = f"specversion: expected {SPEC_VERSION!r}, got {attributes.get('specversion')!r}"
        raise ValueError(message)
    known: dict[str, str] = {}
    for name in ATTRIBUTES:
        value = attributes.get(name)
        if value is None:
            value = ""
        if not isinstance(value, str):
            message = f"{name}: expected text, got {type(value).__name__}"
            raise ValueError(message)  # noqa: TRY004  # callers catch one error type for all faults of form
        known[name] = value
    for name in REQUIRED:
        if not known[name]:
            message = f"{name}: required"
            raise ValueError(message)
    size = sum(len(value.encode()) for value in known.values())
    if size > limits.HEADER_BYTES_MAX:
        message = f"attributes of {size} bytes; at most {limits.HEADER_BYTES_MAX} are taken"
        raise ValueError(message)
    return Envelope(**known)


def is_structured(headers: Mapping[str, str]) -> bool:
    """Whether these are the headers of structured content mode; the attributes are then in the value."""
    media_type = headers.get(CONTENT_TYPE)
    # Media types are case-insensitive.
    return media_type is not None and media_type.lower().startswith(STRUCTURED)


def from_headers(headers: Mapping[str, str]) -> Envelope:
    """Return the envelope in the headers of binary content mode; raises ValueError like ``from_attributes``."""
    get = headers.get
    # Fields are listed one by one for speed: this runs several times for every record of the log.
    head = Envelope(
        id=get("ce_id", ""),
        source=get("ce_source", ""),
        type=get("ce_type", ""),
        subject=get("ce_subject", ""),
        time=get("ce_time", ""),
        dataschema=get("ce_dataschema", ""),
        traceparent=get("ce_traceparent", ""),
        tracestate=get("ce_tracestate", ""),
        correlationid=get("ce_correlationid", ""),
        causationid=get("ce_causationid", ""),
        authtype=get("ce_authtype", ""),
        authid=get("ce_authid", ""),
    )
    if get("ce_specversion") == SPEC_VERSION and head.id and head.source and head.type:
        return head
    attributes = {
        name.removeprefix(PREFIX): value for name, value in headers.items() if name.startswith(PREFIX)
    }
    return from_attributes(attributes)


CHECKSUM_BYTES: Final = 16
headers_json: Final = msgspec.json.Encoder().encode
"""Encodes headers in the form that is hashed and stored."""


class Position(Struct, frozen=True, order=True, gc=False):
    """Position of a record: topic, partition, offset (from 0)."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}/{self.offset}"


class Record(Struct, frozen=True, gc=False):
    """A record to append; create it with ``record``.

    ``headers`` are those of the CloudEvents binding for Kafka (``ce_type`` …, ``content-type``);
    ``headers_json`` is the form that is hashed and stored.
    """

    topic: str
    partition: int
    key: str
    headers: Mapping[str, str]
    value: bytes
    headers_json: bytes
    checksum: bytes


class StoredRecord(Struct, frozen=True, gc=False):
    """A record that was appended.

    ``number`` is its sequence number, the resourceVersion; ``checksum`` was computed when it was appended.
    ``key`` is valid Unicode: a log replaces invalid bytes with U+FFFD.
    """

    topic: str
    partition: int
    offset: int
    number: int
    key: str
    headers: Mapping[str, str]
    value: bytes
    checksum: bytes

    @property
    def position(self) -> Position:
        return Position(self.topic, self.partition, self.offset)


def record(topic: str, partition: int, key: str, headers: Mapping[str, str], value: bytes) -> Record:
    """Return a record with its checksum."""
    blob = headers_json(headers)
    return Record(topic, partition, key, headers, value, blob, checksum(topic, partition, key, blob, value))


def stored(record: Record, offset: int, number: int) -> StoredRecord:
    """Return the stored form of an appended record."""
    return StoredRecord(
        record.topic,
        record.partition,
        offset,
        number,
        record.key,
        record.headers,
        record.value,
        record.checksum,
    )


def checksum(topic: str, partition: int, key: str, headers: bytes, value: bytes) -> bytes:
    """Return the digest of a record's content, without the offset, which is unknown before the append."""
    # The key may contain any character, so its length precedes it; JSON headers contain no zero byte.
    start = f"{topic}\0{partition}\0{len(key)}\0{key}\0".encode()
    # A single update with the joined bytes takes half the time of one update per part.
    return hashlib.blake2b(b"".join((start, headers, b"\0", value)), digest_size=CHECKSUM_BYTES).digest()


# A string without a closing quote matches up to the end of the input, so each byte is scanned only once.
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_BRACKETS: Final = bytes.maketrans(b"{}", b"[]")
_OTHERS: Final = bytes(byte for byte in range(256) if byte not in b"[]{}")


def is_deeper(value: bytes, levels: int) -> bool:
    """Return whether arrays and objects are nested more than ``levels`` deep, in JSON that need not be valid.

    JSON decoders fail where the interpreter's stack ends, which differs between processes; a verdict must be the same
    in all of them. So the depth is counted before a record is decoded, in a few passes over the bytes.
    """
    if value.count(b"[") + value.count(b"{") <= levels:
        return False
    left = _STRING.sub(b"", value).translate(_BRACKETS, _OTHERS)
    for level in range(levels):
        # Each pass removes all innermost pairs of brackets, which is one level.
        inner = left.replace(b"[]", b"")
        if len(inner) == len(left):
            return level + left.count(b"[") > levels
        left = inner
    return b"[" in left
