"""The one door between bytes and events.

``encode`` gives CloudEvents in binary content mode. ``decode`` takes both content modes, after limits, and
never raises: what can't be read comes back as ``Malformed`` with the field and the reason, what is of a type
that nobody here knows as ``Unknown``.
"""

import re
from typing import Final

import msgspec
from msgspec import Struct

from events import catalogue, envelope, limits, records, shapes, upcasters
from events.envelope import Envelope

_ENCODER: Final = msgspec.json.Encoder(order="deterministic")
_DECODERS: Final[dict[str, msgspec.json.Decoder[shapes.Event]]] = {
    entry.type: msgspec.json.Decoder(entry.struct) for entry in catalogue.EVENT_TYPES
}
_MESSAGE: Final = re.compile(
    r"(?:Object missing required field `(?P<missing>.*?)`|(?P<reason>.*?))"
    r"(?: - at `(?:key in )?\$\.?(?P<path>.*)`)?",
    re.DOTALL,
)


class Decoded(Struct, frozen=True, gc=False):
    """An event that was read."""

    envelope: Envelope
    data: shapes.Event


class Malformed(Struct, frozen=True, gc=False):
    """A record that is no event: which field, and why; ``envelope`` is there where that could be read."""

    field: str
    reason: str
    envelope: Envelope | None = None


class Unknown(Struct, frozen=True, gc=False):
    """An event of a type or version that this release doesn't know; it is kept, counted and skipped."""

    envelope: Envelope


def encode_data(data: shapes.Event) -> bytes:
    """The JSON of an event's data; equal data gives equal bytes."""
    return _ENCODER.encode(data)


def encode(data: shapes.Event, head: Envelope, *, partition: int, key: str) -> records.Record:
    """The record of an event; its type and topic come from the catalogue, whatever ``head.type`` says."""
    entry = catalogue.BY_STRUCT[type(data)]
    headers = envelope.to_headers(head)
    headers["ce_type"] = entry.type
    return records.record(entry.topic, partition, key, headers, encode_data(data))


def type_of(data: shapes.Event) -> str:
    """The CloudEvents type of an event's data."""
    return catalogue.BY_STRUCT[type(data)].type


def decode(
    record: records.Record | records.StoredRecord, registry: upcasters.Registry = upcasters.UPCASTERS
) -> Decoded | Malformed | Unknown:
    """The event in a record, lifted to its newest version by ``registry``."""
    if len(record.value) > limits.RECORD_BYTES_MAX:
        return Malformed("data", f"{len(record.value)} bytes; at most {limits.RECORD_BYTES_MAX} are taken")
    try:
        if (size := len(record.key.encode())) > limits.KEY_BYTES_MAX:
            return Malformed("key", f"{size} bytes; at most {limits.KEY_BYTES_MAX} are taken")
        if (size := len(records.headers_json(record.headers))) > limits.HEADER_BYTES_MAX:
            return Malformed("headers", f"{size} bytes; at most {limits.HEADER_BYTES_MAX} are taken")
        head, data = _open(record)
    except (ValueError, RecursionError) as error:
        return Malformed("envelope", _plain(error))
    if head.type not in catalogue.BY_TYPE and head.type not in registry:
        return Unknown(head)
    try:
        if head.type in registry:
            return Decoded(head, _lifted(head.type, data, registry))
        return Decoded(head, _DECODERS[head.type].decode(data))
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
        field, reason = _place(_plain(error))
        return Malformed(field, reason, head)


def _open(record: records.Record | records.StoredRecord) -> tuple[Envelope, bytes | msgspec.Raw]:
    # Media types know no case.
    if not record.headers.get(envelope.CONTENT_TYPE, "").lower().startswith(envelope.STRUCTURED):
        return envelope.from_headers(record.headers), record.value
    attributes = msgspec.json.decode(record.value, type=dict[str, msgspec.Raw])
    known = {name: attributes[name] for name in ("specversion", *envelope.ATTRIBUTES) if name in attributes}
    head = envelope.from_attributes({name: msgspec.json.decode(value) for name, value in known.items()})
    if "data_base64" in attributes:
        return head, msgspec.json.decode(attributes["data_base64"], type=bytes)
    return head, attributes.get("data", msgspec.Raw(b"null"))


def _lifted(event_type: str, data: bytes | msgspec.Raw, registry: upcasters.Registry) -> shapes.Event:
    newest, lifted = upcasters.lift(event_type, msgspec.json.decode(data, type=dict[str, object]), registry)
    # By way of JSON, since manifests are kept as they were written.
    return _DECODERS[newest].decode(msgspec.json.encode(lifted))


def _plain(error: Exception) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def _place(message: str) -> tuple[str, str]:
    """The field and the reason in a decoder's message."""
    found = _MESSAGE.fullmatch(message)
    if found is None:
        return "data", message
    path = (found["path"] or "").replace("[...]", "[]")
    if found["missing"]:
        return f"{path}.{found['missing']}".removeprefix("."), "required"
    return path or "data", found["reason"]
