"""The protobuf wire format: a message as numbered values, within bounds.

Only reading, and only what Kubernetes' messages use: variable-length integers, 64 and 32 bits, and lengths of
bytes. Groups, which proto3 has given up, are refused. What the numbers mean is not known here.
"""

from collections.abc import Iterator
from typing import Final

_VARINT_BYTES_MAX: Final = 10
_NUMBER_MAX: Final = 2**29 - 1
_SIGN: Final = 1 << 63
_RANGE: Final = 1 << 64

Value = int | bytes
"""A varint as a signed 64-bit integer; everything else as its bytes."""


class WireError(ValueError):
    """Bytes that are no protobuf message; the words say what is wrong, without the bytes themselves."""


def values(message: bytes) -> Iterator[tuple[int, Value]]:
    """Field number and value of each field of a message, in its order; raises WireError where it is broken."""
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
