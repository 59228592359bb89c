"""Parquet files by pyarrow, an optional package: ``pip install 'reballast[export]'``."""

# pyarrow has no annotations.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from engine import private_files
from events import attributes, records
from events.records import StoredRecord

_ATTRIBUTES: Final = (
    "time",
    "type",
    "source",
    "subject",
    "id",
    "correlationid",
    "causationid",
    "authtype",
    "authid",
)


def write(path: Path, batch: Sequence[StoredRecord]) -> None:
    """Write records as rows, with the most used attributes in columns. Raises ImportError without pyarrow."""
    import pyarrow as pa  # noqa: PLC0415  # an optional package
    import pyarrow.parquet as files  # noqa: PLC0415

    text = pa.string()
    columns = {
        "number": pa.array([record.number for record in batch], pa.int64()),
        "topic": pa.array([record.topic for record in batch], text),
        "partition": pa.array([record.partition for record in batch], pa.int32()),
        "offset": pa.array([record.offset for record in batch], pa.int64()),
        "key": pa.array([record.key for record in batch], text),
        "headers": pa.array([records.headers_json(record.headers).decode() for record in batch], text),
        "value": pa.array([record.value for record in batch], pa.binary()),
        "checksum": pa.array([record.checksum for record in batch], pa.binary()),
    }
    own = [attributes.of(record) for record in batch]
    for name in _ATTRIBUTES:
        columns[name] = pa.array([fields.get(name) for fields in own], text)
    with private_files.open_empty(path) as file:
        files.write_table(pa.table(columns), file, compression="zstd")
