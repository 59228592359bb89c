"""Decoder of the protobuf wire format: a message as numbered values, with bounds checks.

Reads only the wire types that Kubernetes uses: varints, 64-bit, 32-bit and length-delimited values; groups
are refused. The meaning of the field numbers is in the type tables.
"""

from collections.abc import Iterator
from typing import Final

_VARINT_BYTES_MAX: Final = 10
_NUMBER_MAX: Final = 2**29 - 1
_SIGN: Final = 1 << 63
_RANGE: Final = 1 << 64

Value = int | bytes
"""A varint as a signed 64-bit integer; any other value as its bytes."""


class WireError(ValueError):
    """Bytes that are not a protobuf message; the message does not quote them."""


def values(message: bytes) -> Iterator[tuple[int, Value]]:
    """Yield number and value of each field in order; raises WireError if the message is malformed."""
    place, end = 0, len(message)
    while place < end:
        key, place = _varint(message, place)
        number, form = key >> 3, key & 7
        if not 0 < number <= _NUMBER_MAX:
            raise WireError(f"a field has the number {number}")
        match form:
            case 0:
                value, place = _varint(message, place)
                yield number, value - _RANGE if value & _SIGN else value
                continue
            case 1:
                size = 8
            case 2:
                size, place = _varint(message, place)
            case 5:
                size = 4
            case _:
                raise WireError(f"field {number} has the wire type {form}, which Kubernetes does not use")
        # Slicing beyond the end would silently return a shorter value.
        if size > end - place:
            raise WireError(f"field {number} reaches {size - (end - place)} bytes beyond the end")
        yield number, message[place : place + size]
        place += size


def _varint(message: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    for byte in message[place : place + _VARINT_BYTES_MAX]:
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004  # the top bit says that more bytes follow
            if value >= _RANGE:
                raise WireError("a number has over 64 bits")
            return value, place
        shift += 7
    raise WireError("a number does not end")
