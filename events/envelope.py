"""The envelope round an event: CloudEvents 1.0 attributes, to and from record headers.

Binary content mode carries them as ``ce_`` headers, structured mode inside the value (see ``codec``).
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
    """Who said it, when, about what, and why.

    ``time`` is RFC 3339. ``correlationid`` names the whole story, ``causationid`` the direct parent (the
    position of the record that caused this one). Empty text means that the attribute is absent.
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
        """The trace that the event belongs to, for what follows from it."""
        return tracing.trace(self.traceparent, self.tracestate) if self.traceparent else tracing.NO_TRACE


ATTRIBUTES: Final = Envelope.__struct_fields__
REQUIRED: Final = ("id", "source", "type")


def to_headers(envelope: Envelope) -> dict[str, str]:
    """The headers of binary content mode, absent attributes left out."""
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
    """The envelope of CloudEvents attributes by their plain names; unknown extensions are left aside.

    An attribute that is None counts as absent. Raises ValueError which names the attribute that is missing,
    not text, or too long together with the others.
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
            raise ValueError(message)  # noqa: TRY004  # one kind of error for whatever is wrong with the form
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
    """The envelope of binary content mode's headers; raises ValueError like ``from_attributes``."""
    get = headers.get
    # Spelled out, since this is done for every record of the log, several times.
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
