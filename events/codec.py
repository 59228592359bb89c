"""The one door between bytes and events.

``encode`` gives CloudEvents in binary content mode. ``decode`` takes both content modes, after limits, and
never raises: what can't be read comes back as ``Malformed`` with the field and the reason, what is of a type
that nobody here knows as ``Unknown``.
"""

from typing import Final

import msgspec
from msgspec import Struct

from events import catalogue, envelope, limits, records, shapes, upcasters
from events.envelope import Envelope

_ENCODER: Final = msgspec.json.Encoder(order="deterministic")
_DECODERS: Final[dict[str, msgspec.json.Decoder[shapes.Event]]] = {
    entry.type: msgspec.json.Decoder(entry.struct) for entry in catalogue.EVENT_TYPES
}


class Decoded(Struct, frozen=True, gc=False):
    """An event that was read."""

    envelope: Envelope
    data: shapes.Event


class Malformed(Struct, frozen=True, gc=False):
    """A record that is no event: which field, and why."""

    field: str
    reason: str


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


def decode(record: records.Record | records.StoredRecord) -> Decoded | Malformed | Unknown:
    """The event in a record."""
    if len(record.value) > limits.RECORD_BYTES_MAX:
        return Malformed("data", f"{len(record.value)} bytes; at most {limits.RECORD_BYTES_MAX} are taken")
    try:
        head, data = _open(record)
    except (ValueError, RecursionError) as error:
        return Malformed("envelope", str(error) or "nested too deeply")
    entry = catalogue.BY_TYPE.get(head.type)
    if entry is None and head.type not in upcasters.UPCASTERS:
        return Unknown(head)
    try:
        return _read(head, data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        return Malformed("data", _plain(error))


def _open(record: records.Record | records.StoredRecord) -> tuple[Envelope, bytes | msgspec.Raw]:
    if not record.headers.get(envelope.CONTENT_TYPE, "").startswith(envelope.STRUCTURED):
        return envelope.from_headers(record.headers), record.value
    attributes = msgspec.json.decode(record.value, type=dict[str, msgspec.Raw])
    data = attributes.pop("data", msgspec.Raw(b"null"))
    known = {name: attributes[name] for name in ("specversion", *envelope.ATTRIBUTES) if name in attributes}
    plain = {name: msgspec.json.decode(value) for name, value in known.items()}
    return envelope.from_attributes(plain), data


def _read(head: Envelope, data: bytes | msgspec.Raw) -> Decoded | Malformed | Unknown:
    if head.type in upcasters.UPCASTERS:
        newest, lifted = upcasters.lift(head.type, msgspec.json.decode(data, type=dict[str, object]))
        entry = catalogue.BY_TYPE[newest]
        return Decoded(head, msgspec.convert(lifted, entry.struct))
    return Decoded(head, _DECODERS[head.type].decode(data))


def _plain(error: Exception) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)
