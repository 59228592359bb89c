"""Decoder of request bodies in Kubernetes' protobuf encoding, into the same objects as JSON.

An envelope (4 magic bytes and the message ``Unknown``) names the kind; the inner message is decoded by the
kind's type table. Unknown field numbers are skipped. Kinds without a table are refused; clients send JSON for
them. Responses are never protobuf.

Of the wire types only those that Kubernetes uses are read: varints, 64-bit, 32-bit and length-delimited values; groups
are refused.
"""

import base64
import datetime as dt
from collections.abc import Iterator
from typing import Final, cast

import msgspec

from engine.kubeapi.schema.schemas import Field, Fields, ListOf, MapOf, Scalar, Schema, WireField
from engine.kubeapi.schema.types.parsing import resolved
from events.json_values import DECODING_ERRORS, Json
from events.limits import shortened

_VARINT_BYTES_MAX: Final = 10
_NUMBER_MAX: Final = 2**29 - 1
_SIGN: Final = 1 << 63
_RANGE: Final = 1 << 64

Value = int | bytes
"""A varint as a signed 64-bit integer; any other value as its bytes."""


class ProtobufError(ValueError):
    """A body that cannot be decoded; ``field`` is its JSON path, empty for errors of the envelope."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}" if field else reason)
        self.field = field
        self.reason = reason


def values(message: bytes, path: str = "") -> Iterator[tuple[int, Value]]:
    """Yield number and value of each field in order; raises ProtobufError if the message at ``path`` is malformed."""
    position, end = 0, len(message)
    while position < end:
        key, position = _varint(message, position, path)
        number, form = key >> 3, key & 7
        if not 0 < number <= _NUMBER_MAX:
            raise ProtobufError(path, f"a field has the number {number}")
        match form:
            case 0:
                value, position = _varint(message, position, path)
                yield number, value - _RANGE if value & _SIGN else value
                continue
            case 1:
                size = 8
            case 2:
                size, position = _varint(message, position, path)
            case 5:
                size = 4
            case _:
                raise ProtobufError(
                    path, f"field {number} has the wire type {form}, which Kubernetes does not use"
                )
        # Slicing beyond the end would silently return a shorter value.
        if size > end - position:
            raise ProtobufError(
                path, f"field {number} reaches {size - (end - position)} bytes beyond the end"
            )
        yield number, message[position : position + size]
        position += size


def _varint(message: bytes, position: int, path: str) -> tuple[int, int]:
    value = shift = 0
    for byte in message[position : position + _VARINT_BYTES_MAX]:
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004  # the top bit is set if more bytes follow
            if value >= _RANGE:
                raise ProtobufError(path, "a number has over 64 bits")
            return value, position
        shift += 7
    raise ProtobufError(path, "a number does not end")


MAGIC: Final = b"k8s\0"
MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"

_FIELDS_MAX: Final = 200_000
"""Maximum number of values per body. It bounds memory, because a value may take only two bytes of a body."""

_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_SECONDS_MIN: Final = -62_135_596_800
_SECONDS_MAX: Final = 253_402_300_799
_NANOS_MAX: Final = 999_999_999
_STRING: Final = 1
"""Protobuf ``type`` of an int-or-string that is a string; 0 is an integer."""


def kind_of(body: bytes) -> tuple[str, str]:
    """Return apiVersion and kind of an envelope; raises ProtobufError."""
    api_version, kind, _raw = _envelope(body)
    return api_version, kind


def decode(body: bytes, schema: Schema, *, depth_max: int) -> Json:
    """Decode the object in an envelope by the schema; raises ProtobufError.

    ``depth_max`` limits the nesting of messages.
    """
    api_version, kind, raw = _envelope(body)
    fields = resolved(schema)
    if not isinstance(fields, Fields) or not fields.wire:
        raise ProtobufError("", f"{kind} of {api_version} has no protobuf form; send JSON")
    result = _Reader().message(raw, fields, "", depth_max)
    return {"apiVersion": api_version, "kind": kind, **result}


def _envelope(body: bytes) -> tuple[str, str, bytes]:
    if not body.startswith(MAGIC):
        raise ProtobufError(
            "", "the body does not begin with k8s and a zero byte, as Kubernetes' protobuf does"
        )
    parts = _parts(body[len(MAGIC) :], "")
    names = _parts(_bytes(parts.get(1, b""), ""), "")
    if parts.get(3, b""):
        raise ProtobufError("", "the body has a content encoding of its own, which is not taken")
    api_version = _text(names.get(1, b""), "apiVersion")
    kind = _text(names.get(2, b""), "kind")
    return api_version, kind, _bytes(parts.get(2, b""), "")


def _parts(message: bytes, path: str) -> dict[int, Value]:
    """Return the last value of each field number."""
    return dict(values(message, path))


class _Reader:
    """Decoder of one body; counts values against ``_FIELDS_MAX``."""

    def __init__(self) -> None:
        self._left = _FIELDS_MAX

    def message(self, message: bytes, fields: Fields, path: str, depth: int) -> Json:
        """Decode a message into its JSON object."""
        if depth <= 0:
            raise ProtobufError(path, "nested too deeply")
        result: Json = {}
        for number, value in values(message, path):
            self._left -= 1
            if self._left < 0:
                raise ProtobufError(path, f"more than {_FIELDS_MAX} values in one body")
            known = fields.wire.get(number)
            if known is not None:
                self._add(result, known, value, path, depth)
        # Go's JSON encoding omits zero values; both encodings of an object must decode to the same value.
        for known in fields.wire.values():
            if known.name in result and not _is_included(result[known.name], known):
                del result[known.name]
        return result

    def _add(self, decoded: Json, known: WireField, value: Value, path: str, depth: int) -> None:
        schema = resolved(known.field.schema)
        where = f"{path}.{known.name}".strip(".")
        match schema:
            case Fields() if not known.name:
                decoded.update(self.message(_bytes(value, where), schema, path, depth - 1))
            case ListOf():
                items = cast("list[object]", decoded.setdefault(known.name, []))
                items.append(self._value(value, schema.item, f"{where}[{len(items)}]", depth))
            case MapOf():
                name, item = self._entry(value, schema, where, depth)
                cast("Json", decoded.setdefault(known.name, {}))[name] = item
            case _:
                decoded[known.name] = self._value(value, schema, where, depth)

    def _entry(self, value: Value, schema: MapOf, path: str, depth: int) -> tuple[str, object]:
        parts = _parts(_bytes(value, path), path)
        name = _text(parts.get(1, b""), path)
        item = resolved(schema.value)
        where = f"{path}.{shortened(name)}"
        if isinstance(item, ListOf):
            # A map value cannot be a list in protobuf; Kubernetes wraps it in a message.
            wire = {1: WireField(name="items", field=Field(schema=item))}
            wrapped = Fields(name="items", fields={}, wire=wire)
            entries = self.message(_bytes(parts.get(2, b""), where), wrapped, where, depth - 1)
            return name, entries.get("items", [])
        absent: Value = 0 if isinstance(item, Scalar) and item.form in {"int", "bool"} else b""
        return name, self._value(parts.get(2, absent), item, where, depth)

    def _value(self, value: Value, schema: Schema, path: str, depth: int) -> object:
        match resolved(schema):
            case Scalar(form=form):
                return _scalar(value, form, path)
            case Fields() as fields:
                return self.message(_bytes(value, path), fields, path, depth - 1)
            case _:
                return _raw(value, path)


def _raw(value: Value, path: str) -> object:
    """Decode an untyped field: a message whose first field contains JSON."""
    raw = _bytes(_parts(_bytes(value, path), path).get(1, b"null"), path)
    try:
        return msgspec.json.decode(raw)
    except DECODING_ERRORS:
        raise ProtobufError(path, "is not JSON, or is nested too deeply") from None


def _is_included(value: object, known: WireField) -> bool:
    """Whether JSON includes the value: zero values are omitted unless the field is a pointer or required."""
    if value is None:
        return False
    if known.field.pointer or known.field.required:
        return True
    return value not in ("", 0, False) or isinstance(value, dict | list)


def _scalar(value: Value, form: str, path: str) -> object:
    match form:
        case "str":
            return _text(value, path)
        case "int":
            return _integer(value, path)
        case "bool":
            return _integer(value, path) != 0
        case "bytes":
            return base64.b64encode(_bytes(value, path)).decode()
        case "quantity":
            return _text(_parts(_bytes(value, path), path).get(1, b"0"), path)
        case "intstr":
            return _int_or_text(_bytes(value, path), path)
        case _:
            return _time(_bytes(value, path), path, precise=form == "micro")


def _integer(value: Value, path: str) -> int:
    if isinstance(value, bytes):
        raise ProtobufError(path, "is not a number on the wire")
    return value


def _bytes(value: Value, path: str) -> bytes:
    if isinstance(value, int):
        raise ProtobufError(path, "is a number on the wire, where text or a message belongs")
    return value


def _text(value: Value, path: str) -> str:
    try:
        return _bytes(value, path).decode()
    except UnicodeDecodeError:
        raise ProtobufError(path, "is not UTF-8") from None


def _int_or_text(message: bytes, path: str) -> object:
    parts = _parts(message, path)
    if parts.get(1, 0) == _STRING:
        return _text(parts.get(3, b""), path)
    return _integer(parts.get(2, 0), path)


def _time(message: bytes, path: str, *, precise: bool) -> str | None:
    """Decode a Timestamp into RFC 3339 UTC; None for an empty message."""
    if not message:
        return None
    parts = _parts(message, path)
    seconds, nanos = _integer(parts.get(1, 0), path), _integer(parts.get(2, 0), path)
    if not (_SECONDS_MIN <= seconds <= _SECONDS_MAX and 0 <= nanos <= _NANOS_MAX):
        raise ProtobufError(path, "is not a time in the years 1 to 9999")
    moment = _EPOCH + dt.timedelta(seconds=seconds, microseconds=nanos // 1000 if precise else 0)
    return moment.isoformat(timespec="microseconds" if precise else "seconds").replace("+00:00", "Z")
