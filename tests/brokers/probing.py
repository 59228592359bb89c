"""A broker's view of its cluster, by one request of Kafka's protocol: Metadata, version 1.

Encoded by hand, because client libraries only wait and retry while brokers start.
"""

import socket
import struct
from collections.abc import Mapping
from typing import BinaryIO, Final

from msgspec import Struct

_ANSWER_S_MAX: Final = 2.0
_METADATA: Final = 3
_VERSION: Final = 1
_CORRELATION: Final = 7
_CLIENT: Final = b"tests"
_ALL: Final = -1
"""Length of a null array, which requests all topics."""


class NoAnswerError(Exception):
    """The broker does not answer, or answers incompletely."""


class BrokersState(Struct, frozen=True):
    """Numbers of the live brokers, the leader of each partition, and the partitions with replicas out of sync."""

    alive: frozenset[int]
    leaders: Mapping[tuple[str, int], int]
    lagging: frozenset[tuple[str, int]]


def ask(port: int) -> BrokersState:
    """Query the broker at this loopback port; raises NoAnswerError."""
    body = struct.pack(
        f">hhih{len(_CLIENT)}si", _METADATA, _VERSION, _CORRELATION, len(_CLIENT), _CLIENT, _ALL
    )
    try:
        with socket.create_connection(("127.0.0.1", port), _ANSWER_S_MAX) as link:
            link.sendall(struct.pack(">i", len(body)) + body)
            with link.makefile("rb") as answer:
                _size, _correlation, brokers = _read(answer, ">iii")
                alive = frozenset(_broker(answer) for _ in range(brokers))
                _controller, topics = _read(answer, ">ii")
                partitions = [partition for _ in range(topics) for partition in _partitions(answer)]
                return BrokersState(
                    alive,
                    {topic_partition: leader for topic_partition, leader, _is_lagging in partitions},
                    frozenset(
                        topic_partition for topic_partition, _leader, is_lagging in partitions if is_lagging
                    ),
                )
    except (OSError, struct.error) as error:
        raise NoAnswerError(f"port {port}: {error}") from None


def _broker(answer: BinaryIO) -> int:
    """Decode the next broker and return its number."""
    (number,) = _read(answer, ">i")
    _text(answer)
    _read(answer, ">i")
    _text(answer)
    return number


def _partitions(answer: BinaryIO) -> list[tuple[tuple[str, int], int, bool]]:
    """Decode the next topic; return each partition, its leader, and whether replicas are out of sync."""
    _read(answer, ">h")
    topic = _text(answer)
    _internal, partitions = _read(answer, ">bi")
    entries: list[tuple[tuple[str, int], int, bool]] = []
    for _ in range(partitions):
        _error, partition, leader, replicas = _read(answer, ">hiii")
        _read(answer, f">{replicas}i")
        (in_sync,) = _read(answer, ">i")
        _read(answer, f">{in_sync}i")
        entries.append(((topic, partition), leader, in_sync < replicas))
    return entries


def _text(answer: BinaryIO) -> str:
    (size,) = _read(answer, ">h")
    return answer.read(max(size, 0)).decode()


def _read(answer: BinaryIO, form: str) -> tuple[int, ...]:
    return struct.unpack(form, answer.read(struct.calcsize(form)))
