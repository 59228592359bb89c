"""The CloudEvents attributes of records in binary and in structured content mode."""

from collections.abc import Mapping

from msgspec import structs

from events import codec, records
from events.records import StoredRecord


def of(record: StoredRecord) -> Mapping[str, str]:
    """Return the attributes of a record by name; empty for a structured record whose value cannot be read."""
    if not records.is_structured(record.headers):
        return {
            name.removeprefix(records.PREFIX): text
            for name, text in record.headers.items()
            if name.startswith(records.PREFIX)
        }
    decoded = codec.decode(record)
    if isinstance(decoded, codec.Malformed):
        return {}
    return {name: text for name, text in structs.asdict(decoded.envelope).items() if text}


def get(record: StoredRecord, name: str) -> str:
    """Return one attribute of a record; empty if it is absent."""
    if records.is_structured(record.headers):
        return of(record).get(name, "")
    return record.headers.get(f"{records.PREFIX}{name}", "")
