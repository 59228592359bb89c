"""Export: files of records in number order, and a manifest with their digests.

The manifest is replaced after each file, so an interrupted export continues after the last whole file, and a
later export appends the new records.
"""

import asyncio
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, structs

from engine import private_files
from engine.exports import formats
from engine.exports.errors import ExportError
from engine.exports.formats import Format
from engine.log import port
from events import keys, times
from events.records import StoredRecord

MANIFEST: Final = "manifest.json"
_FORMAT: Final = "reballast-export-1"
_FILE_RECORDS: Final = 50_000
_FILE_BYTES: Final = 64 * 1_048_576
_READ: Final = 1_000

Progress = Callable[[int, int], None]
"""Called with the number of the last record read, and the number of records exported so far."""


class Filters(Struct, frozen=True, kw_only=True):
    """The records to export: of these topics and namespaces (empty: all), from ``since_ms`` to ``until_ms``."""

    topics: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    since_ms: int | None = None
    until_ms: int | None = None

    def take(self, record: StoredRecord) -> bool:
        """Whether a record is exported."""
        if self.topics and record.topic not in self.topics:
            return False
        if self.namespaces and _namespace_of(record) not in self.namespaces:
            return False
        if self.since_ms is None and self.until_ms is None:
            return True
        try:
            at_ms = times.from_text(record.headers.get("ce_time", ""))
        except ValueError:
            return False
        return (self.since_ms or 0) <= at_ms and (self.until_ms is None or at_ms < self.until_ms)


EVERYTHING: Final = Filters()


class ExportedFile(Struct, frozen=True, kw_only=True):
    """A file of an export: records with numbers from ``first`` to ``last``."""

    name: str
    first: int
    last: int
    records: int
    bytes: int
    sha256: str


class Manifest(Struct, frozen=True, kw_only=True):
    """The files of an export; all records up to ``number`` have been judged by the filters."""

    format: str = _FORMAT
    records: Format
    filters: Filters
    number: int = 0
    files: tuple[ExportedFile, ...] = ()


async def export(
    log: port.NumberedLog, directory: Path, form: Format, filters: Filters, progress: Progress
) -> Manifest:
    """Export the records that are in the log but not in the directory.

    Raises ExportError, OSError or port.LogError.
    """
    manifest = await asyncio.to_thread(_begin, directory, form, filters)
    until = log.last_number()
    after, taken, size = manifest.number, list[StoredRecord](), 0
    count = sum(file.records for file in manifest.files)
    while after < until and (batch := await log.read_all(after, _READ)):
        for record in batch:
            if filters.take(record):
                taken.append(record)
                size += len(record.value)
        after = batch[-1].number
        progress(after, count + len(taken))
        if len(taken) >= _FILE_RECORDS or size >= _FILE_BYTES:
            manifest = await asyncio.to_thread(_add_file, directory, manifest, taken, after)
            count, taken, size = count + len(taken), [], 0
    if after > manifest.number:
        manifest = await asyncio.to_thread(_add_file, directory, manifest, taken, after)
    return manifest


def read_manifest(directory: Path) -> Manifest | None:
    """Return the manifest of a directory; None if there is none. Raises ExportError."""
    try:
        manifest = msgspec.json.decode((directory / MANIFEST).read_bytes(), type=Manifest)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise ExportError(f"{directory / MANIFEST} is not a manifest: {error}") from None
    if manifest.format != _FORMAT:
        raise ExportError(f"{directory / MANIFEST} has the format {manifest.format}, not {_FORMAT}")
    return manifest


def read_file(directory: Path, file: ExportedFile) -> bytes:
    """Return the content of a file. Raises ExportError if the digest differs from the manifest's."""
    content = (directory / file.name).read_bytes()
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise ExportError(f"{directory / file.name} was changed: its SHA-256 is not that of the manifest")
    return content


def _begin(directory: Path, form: Format, filters: Filters) -> Manifest:
    directory.mkdir(parents=True, exist_ok=True)
    manifest = read_manifest(directory)
    if manifest is None:
        return Manifest(records=form, filters=filters)
    if (manifest.records, manifest.filters) != (form, filters):
        raise ExportError(f"{directory} has an export of another format or with other filters")
    return manifest


def _add_file(directory: Path, manifest: Manifest, taken: list[StoredRecord], number: int) -> Manifest:
    if taken:
        name = f"records-{taken[0].number:012}.{formats.SUFFIXES[manifest.records]}"
        path, unfinished = directory / name, directory / f"{name}.part"
        formats.write(unfinished, taken, manifest.records)
        content = unfinished.read_bytes()
        unfinished.rename(path)
        file = ExportedFile(
            name=name,
            first=taken[0].number,
            last=taken[-1].number,
            records=len(taken),
            bytes=len(content),
            sha256=hashlib.sha256(content).hexdigest(),
        )
        manifest = structs.replace(manifest, files=(*manifest.files, file))
    manifest = structs.replace(manifest, number=number)
    private_files.write(directory / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")
    return manifest


def _namespace_of(record: StoredRecord) -> str:
    """Return the namespace in the subject of an event; empty for objects without one."""
    subject = record.headers.get("ce_subject") or record.key
    # Keys of policies and the like begin with their kind.
    return keys.split(subject.rpartition(":")[2])[0]
