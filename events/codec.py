"""Encoding of events to records, and decoding.

``encode`` writes CloudEvents in binary content mode. ``decode`` accepts both content modes, enforces the size
limits and never raises: an unreadable record becomes ``Malformed`` with the field and the reason, an unknown
event type ``Unknown``. Upcasters convert the data of an old version to the next one. Every superseded version needs
one; ``tests/golden`` holds a sample of each version ever written.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from events import catalogue, limits, records, shapes
from events.json_values import canonical_json
from events.records import Envelope

Upcaster = Callable[[dict[str, object]], dict[str, object]]
Registry = Mapping[str, tuple[str, Upcaster]]

UPCASTERS: Final[Registry] = {}
"""Upcaster and type of the next version, by CloudEvents type; empty while every type is at its first version."""

_DECODERS: Final[dict[str, msgspec.json.Decoder[shapes.Event]]] = {
    entry.type: msgspec.json.Decoder(entry.struct) for entry in catalogue.EVENT_TYPES
}
_MESSAGE_CHARS_MAX: Final = 64 * 1024
"""Length above which a decoder's error message is cut. Rejections in older logs quote shorter ones in full."""

_PART_CHARS: Final = 400
_MESSAGE: Final = re.compile(
    r"(?:Object missing required field `(?P<missing>.*?)`|(?P<reason>.*?))"
    r"(?: - at `(?:key in )?\$\.?(?P<path>.*)`)?",
    re.DOTALL,
)


class Decoded(Struct, frozen=True, gc=False):
    envelope: Envelope
    data: shapes.Event


class Malformed(Struct, frozen=True, gc=False):
    """A record that is not an event, with the field and the reason; ``envelope`` is None if it could not be read."""

    field: str
    reason: str
    envelope: Envelope | None = None


class Unknown(Struct, frozen=True, gc=False):
    """An event of a type or version that this release does not know; readers keep, count and skip it."""

    envelope: Envelope


def encode_data(data: shapes.Event) -> bytes:
    """Return the JSON of an event's data; equal data gives equal bytes.

    Replay compares these bytes, so fields with a non-empty default need enum values (see ``enums``).
    """
    return canonical_json(data)


def encode(data: shapes.Event, head: Envelope, *, partition: int, key: str) -> records.Record:
    """Return the record of an event; its type and topic are those of its struct, not ``head.type``."""
    entry = data.event_type
    headers = records.to_headers(head)
    headers["ce_type"] = entry.type
    return records.record(entry.topic, partition, key, headers, encode_data(data))


def decode(
    record: records.Record | records.StoredRecord, registry: Registry = UPCASTERS
) -> Decoded | Malformed | Unknown:
    """Return the event in a record, converted to its newest version by the upcasters in ``registry``."""
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
            return Decoded(head, _decode_upcast(head.type, data, registry))
        return Decoded(head, _DECODERS[head.type].decode(data))
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
        field, reason = _field_and_reason(_plain(error))
        return Malformed(field, reason, head)


def event_of(record: records.Record | records.StoredRecord) -> shapes.Event | None:
    """Return the event in a record as ``decode`` does; None if it is malformed or of an unknown type."""
    decoded = decode(record)
    return decoded.data if isinstance(decoded, Decoded) else None


def _open(record: records.Record | records.StoredRecord) -> tuple[Envelope, bytes | msgspec.Raw]:
    if not records.is_structured(record.headers):
        return records.from_headers(record.headers), record.value
    attributes = msgspec.json.decode(record.value, type=dict[str, msgspec.Raw])
    known = {name: attributes[name] for name in ("specversion", *records.ATTRIBUTES) if name in attributes}
    head = records.from_attributes({name: msgspec.json.decode(value) for name, value in known.items()})
    if "data_base64" in attributes:
        return head, msgspec.json.decode(attributes["data_base64"], type=bytes)
    return head, attributes.get("data", msgspec.Raw(b"null"))


def _decode_upcast(event_type: str, data: bytes | msgspec.Raw, registry: Registry) -> shapes.Event:
    newest, lifted = upcast(event_type, msgspec.json.decode(data, type=dict[str, object]), registry)
    # Convert via JSON, so that manifests stay raw bytes.
    return _DECODERS[newest].decode(msgspec.json.encode(lifted))


def _plain(error: Exception) -> str:
    """Return the message of an error; if it quotes a huge value, only the message's beginning and end."""
    message = "nested too deeply" if isinstance(error, RecursionError) else str(error)
    if len(message) <= _MESSAGE_CHARS_MAX:
        return message
    return f"{message[:_PART_CHARS]} ... {message[-_PART_CHARS:]}"


def _field_and_reason(message: str) -> tuple[str, str]:
    """Return the field path and the reason in a decoder's error message."""
    match = _MESSAGE.fullmatch(message)
    if match is None:
        return "data", message
    path = (match["path"] or "").replace("[...]", "[]")
    if match["missing"]:
        return f"{path}.{match['missing']}".removeprefix("."), "required"
    return path or "data", match["reason"]


def upcast(
    event_type: str,
    data: dict[str, object],
    registry: Registry = UPCASTERS,
) -> tuple[str, dict[str, object]]:
    """Return the newest type and the data converted to it; unchanged if there is no newer type.

    An upcaster may raise KeyError, TypeError, AttributeError or ValueError for data that its version never
    had; the caller treats the event as malformed.
    """
    while event_type in registry:
        event_type, upcast = registry[event_type]
        data = upcast(data)
    return event_type, data
