"""CloudEvents 1.0 attributes of an event, converted to and from record headers.

Binary content mode has them in ``ce_`` headers, structured mode inside the value (see ``codec``).
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from events import limits, tracing

SPEC_VERSION: Final = "1.0"
PREFIX: Final = "ce_"
CONTENT_TYPE: Final = "content-type"
JSON: Final = "application/json"
STRUCTURED: Final = "application/cloudevents+json"


class Envelope(Struct, frozen=True, kw_only=True, gc=False):
    """CloudEvents attributes of one event; an empty string means that the attribute is absent.

    ``time`` is RFC 3339. ``correlationid`` is common to all events that follow from one request;
    ``causationid`` is the position of the record that directly caused this one.
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
    return headers


def from_attributes(attributes: Mapping[str, object]) -> Envelope:
    """Return the envelope of CloudEvents attributes, by their plain names; unknown extensions are ignored.

    An attribute that is None counts as absent. Raises ValueError with the name of an attribute that is
    missing or not text, or with the total size if that is over the limit.
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
    )
    if get("ce_specversion") == SPEC_VERSION and head.id and head.source and head.type:
        return head
    attributes = {
        name.removeprefix(PREFIX): value for name, value in headers.items() if name.startswith(PREFIX)
    }
    return from_attributes(attributes)
