"""Parquet files by pyarrow, an optional package: ``pip install 'reballast[export]'``."""

# pyarrow has no annotations.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from engine import private_files
from engine.exports import attributes
from events import records
from events.records import StoredRecord

_ATTRIBUTES: Final = ("time", "type", "source", "subject", "id", "correlationid", "causationid")


def write(path: Path, batch: Sequence[StoredRecord]) -> None:
    """Write records as rows, with the most used attributes in columns. Raises ImportError without pyarrow."""
    import pyarrow as pa  # noqa: PLC0415  # an optional package
    import pyarrow.parquet as files  # noqa: PLC0415

    text = pa.string()
    columns = {
        "number": pa.array([each.number for each in batch], pa.int64()),
        "topic": pa.array([each.topic for each in batch], text),
        "partition": pa.array([each.partition for each in batch], pa.int32()),
        "offset": pa.array([each.offset for each in batch], pa.int64()),
        "key": pa.array([each.key for each in batch], text),
        "headers": pa.array([records.headers_json(each.headers).decode() for each in batch], text),
        "value": pa.array([each.value for each in batch], pa.binary()),
        "checksum": pa.array([each.checksum for each in batch], pa.binary()),
    }
    own = [attributes.of(each) for each in batch]
    for name in _ATTRIBUTES:
        columns[name] = pa.array([each.get(name) for each in own], text)
    with private_files.opened(path) as file:
        files.write_table(pa.table(columns), file, compression="zstd")
