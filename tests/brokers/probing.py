"""Which brokers a broker knows to be alive, asked in Kafka's own protocol: one Metadata request, version 1.

By hand, since it is asked while the brokers start, when clients only wait and retry.
"""

import socket
import struct
from typing import BinaryIO, Final

_ANSWER_S_MAX: Final = 2.0
_METADATA: Final = 3
_VERSION: Final = 1
_CORRELATION: Final = 7
_CLIENT: Final = b"tests"


class NoAnswerError(Exception):
    """The broker does not answer, or not to the point."""


def alive(port: int) -> set[int]:
    """The numbers of the brokers that the one at this port lists; raises NoAnswerError."""
    # No topics are asked for: an empty array, not a null one.
    body = struct.pack(f">hhih{len(_CLIENT)}si", _METADATA, _VERSION, _CORRELATION, len(_CLIENT), _CLIENT, 0)
    try:
        with socket.create_connection(("127.0.0.1", port), _ANSWER_S_MAX) as link:
            link.sendall(struct.pack(">i", len(body)) + body)
            with link.makefile("rb") as answer:
                _size, _correlation, count = _read(answer, ">iii")
                return {_broker(answer) for _ in range(count)}
    except (OSError, struct.error) as error:
        raise NoAnswerError(f"port {port}: {error}") from None


def _broker(answer: BinaryIO) -> int:
    """The number of the next broker; host, port and rack are passed over."""
    number, host_bytes = _read(answer, ">ih")
    answer.read(host_bytes)
    _port, rack_bytes = _read(answer, ">ih")
    answer.read(max(rack_bytes, 0))
    return number


def _read(answer: BinaryIO, form: str) -> tuple[int, ...]:
    return struct.unpack(form, answer.read(struct.calcsize(form)))
