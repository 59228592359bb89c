"""Records: events in bytes, as in the log, with their position."""

import hashlib
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct

CHECKSUM_BYTES: Final = 16
_encode_headers = msgspec.json.Encoder().encode


class Position(Struct, frozen=True, order=True, gc=False):
    """Position of a record: topic, partition, offset (from 0)."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}/{self.offset}"


class Record(Struct, frozen=True, gc=False):
    """A record to append; create it with ``record``.

    ``headers`` are those of the CloudEvents binding for Kafka (``ce_type`` …, ``content-type``);
    ``headers_json`` is the form that is hashed and stored.
    """

    topic: str
    partition: int
    key: str
    headers: Mapping[str, str]
    value: bytes
    headers_json: bytes
    checksum: bytes


class StoredRecord(Struct, frozen=True, gc=False):
    """A record that was appended.

    ``number`` is its sequence number, the resourceVersion; ``checksum`` was computed when it was appended.
    ``key`` is valid Unicode: a log replaces invalid bytes with U+FFFD.
    """

    topic: str
    partition: int
    offset: int
    number: int
    key: str
    headers: Mapping[str, str]
    value: bytes
    checksum: bytes

    @property
    def position(self) -> Position:
        return Position(self.topic, self.partition, self.offset)


def renumbered(record: StoredRecord, number: int) -> StoredRecord:
    """Return the record with its sequence number, for logs that assign it later than the offset."""
    return StoredRecord(
        record.topic,
        record.partition,
        record.offset,
        number,
        record.key,
        record.headers,
        record.value,
        record.checksum,
    )


def headers_json(headers: Mapping[str, str]) -> bytes:
    """Return the headers in the form that is hashed and stored."""
    return _encode_headers(headers)


def has_headers_over(headers: Mapping[str, str], limit: int) -> bool:
    """Whether the headers as JSON have more bytes than a limit."""
    texts = "".join([*headers, *headers.values()])
    # JSON writes an ASCII character as six bytes at most, and at most six around each header: only few are encoded.
    if texts.isascii() and 6 * (len(texts) + len(headers)) < limit:
        return False
    return len(headers_json(headers)) > limit


def record(topic: str, partition: int, key: str, headers: Mapping[str, str], value: bytes) -> Record:
    """Return a record with its checksum."""
    blob = _encode_headers(headers)
    return Record(topic, partition, key, headers, value, blob, checksum(topic, partition, key, blob, value))


def stored(record: Record, offset: int, number: int) -> StoredRecord:
    """Return the stored form of an appended record."""
    return StoredRecord(
        record.topic,
        record.partition,
        offset,
        number,
        record.key,
        record.headers,
        record.value,
        record.checksum,
    )


def checksum(topic: str, partition: int, key: str, headers: bytes, value: bytes) -> bytes:
    """Return the digest of a record's content, without the offset, which is unknown before the append."""
    # The key may contain any character, so its length precedes it; JSON headers contain no zero byte.
    start = f"{topic}\0{partition}\0{len(key)}\0{key}\0".encode()
    # A single update with the joined bytes takes half the time of one update per part.
    return hashlib.blake2b(b"".join((start, headers, b"\0", value)), digest_size=CHECKSUM_BYTES).digest()
