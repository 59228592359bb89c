"""File formats of an export: each writes records to one file."""

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import Struct

from engine import private_files
from engine.exports import parquet
from events import attributes, codec, records
from events.json_values import Json
from events.records import Record, StoredRecord

Format = Literal["jsonl", "cloudevents", "parquet"]
SUFFIXES: Final[dict[Format, str]] = {
    "jsonl": "jsonl",
    "cloudevents": "cloudevents.jsonl",
    "parquet": "parquet",
}


class ExportError(Exception):
    """A log cannot be exported or imported; the message contains the reason."""


class MissingPackageError(ExportError):
    """A format needs a package that is not installed."""


class _Line(Struct, frozen=True, omit_defaults=True):
    """All fields of a record; the value as text, or in base64 if it is not UTF-8."""

    number: int
    topic: str
    partition: int
    offset: int
    key: str
    headers: dict[str, str]
    checksum: str
    value: str | None = None
    value_base64: str | None = None


def write(path: Path, batch: Sequence[StoredRecord], form: Format) -> int:
    """Write a file of records; return the number of records in it.

    The format cloudevents omits records that are not CloudEvents. Raises ExportError if a package is missing.
    """
    match form:
        case "jsonl":
            lines = [encode_line(record) for record in batch]
        case "cloudevents":
            # Other systems may append records that are not CloudEvents.
            own = (record for record in batch if not isinstance(codec.decode(record), codec.Malformed))
            events = (_one_line(msgspec.json.encode(_event(record))) for record in own)
            lines = [line for line in events if line is not None]
        case "parquet":
            try:
                parquet.write(path, batch)
            except ImportError:
                raise MissingPackageError("Parquet needs the package pyarrow") from None
            return len(batch)
    with private_files.open_empty(path) as file:
        file.write(b"".join(line + b"\n" for line in lines))
    return len(lines)


def read(content: bytes) -> list[tuple[StoredRecord, Record]]:
    """Return the records of a file in the format jsonl, as stored records and as records to append.

    Raises ExportError for a line that is not a record or does not match its checksum.
    """
    result: list[tuple[StoredRecord, Record]] = []
    for count, text in enumerate(content.splitlines(), 1):
        try:
            line = msgspec.json.decode(text, type=_Line)
            value = base64.b64decode(line.value_base64 or "") if line.value is None else line.value.encode()
            checksum = bytes.fromhex(line.checksum)
        except ValueError as error:
            raise ExportError(f"line {count} is not a record: {error}") from None
        record = records.record(line.topic, line.partition, line.key, line.headers, value)
        if record.checksum != checksum:
            raise ExportError(
                f"line {count} (number {line.number}) is not what was exported: its checksum differs"
            )
        result.append((records.stored(record, line.offset, line.number), record))
    return result


def encode_line(record: StoredRecord) -> bytes:
    """Return a record as a line of the format jsonl, without a line end."""
    text, encoded = _text(record.value)
    line = _Line(
        record.number,
        record.topic,
        record.partition,
        record.offset,
        record.key,
        dict(record.headers),
        record.checksum.hex(),
        text,
        encoded,
    )
    return msgspec.json.encode(line)


def _text(value: bytes) -> tuple[str | None, str | None]:
    try:
        return value.decode(), None
    except UnicodeDecodeError:
        return None, base64.b64encode(value).decode()


def _one_line(content: bytes) -> bytes | None:
    """Return JSON without line breaks between values; None if it is not JSON in UTF-8."""
    try:
        content.decode()
        return msgspec.json.format(content, indent=-1)
    except (ValueError, RecursionError):
        return None


def _event(record: StoredRecord) -> dict[str, object]:
    """Return a record as a CloudEvent in structured mode; extension attributes have its position in the log."""
    location: Json = {
        "reballasttopic": record.topic,
        "reballastpartition": record.partition,
        "reballastoffset": record.offset,
        "reballastnumber": record.number,
        "reballastkey": record.key,
    }
    if records.is_structured(record.headers):
        return {**msgspec.json.decode(record.value, type=dict[str, msgspec.Raw]), **location}
    own = attributes.of(record)
    if _one_line(record.value) is None:
        # Only the data of known event types was validated; data of other types may be no JSON.
        media_type = record.headers.get(records.CONTENT_TYPE) or "application/octet-stream"
        return {**own, "datacontenttype": media_type, **location, "data_base64": record.value}
    return {**own, "datacontenttype": records.JSON, **location, "data": msgspec.Raw(record.value)}
