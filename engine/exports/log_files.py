"""Export and import of a log as files: records in number order, and a manifest with the files' digests.

The manifest is replaced after each file, so an interrupted export continues after the last whole file, and a later
export appends the new records. An import appends the records of an export to an empty log, which then has the same
bytes at the same positions.
"""

import asyncio
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, structs

from engine import private_files
from engine.exports import formats
from engine.exports.formats import ExportError, Format
from engine.log import port
from events import attributes, keys, times
from events.records import StoredRecord

MANIFEST: Final = "manifest.json"
_FORMAT: Final = "reballast-export-1"
_FILE_RECORDS: Final = 50_000
_FILE_BYTES: Final = 64 * 1_048_576
_BATCH: Final = 500

Progress = Callable[[int, int], None]
"""Called with the sequence number of the last record that was read, and the count of records exported so far."""


class Filters(Struct, frozen=True, kw_only=True):
    """The records to export: of these topics and namespaces (empty: all), in a range of time.

    The range begins with ``since_ms`` and ends before ``until_ms``, in milliseconds since 1970; None is unlimited.
    """

    topics: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    since_ms: int | None = None
    until_ms: int | None = None

    @property
    def range_text(self) -> str:
        """The range of time in words, such as ``from 2026-11-20T10:00:00.000Z on``."""
        since, until = (None if at is None else times.to_text(at) for at in (self.since_ms, self.until_ms))
        return f"from {since or 'the beginning'} {f'to {until}' if until else 'on'}"

    def matches(self, record: StoredRecord) -> bool:
        """Whether a record is exported."""
        if self.topics and record.topic not in self.topics:
            return False
        subject = attributes.get(record, "subject") or record.key
        if self.namespaces and keys.namespace_of(subject) not in self.namespaces:
            return False
        if self.since_ms is None and self.until_ms is None:
            return True
        try:
            at_ms = times.from_text(attributes.get(record, "time"))
        except ValueError:
            return False
        is_from_then_on = self.since_ms is None or self.since_ms <= at_ms
        return is_from_then_on and (self.until_ms is None or at_ms < self.until_ms)


EVERYTHING: Final = Filters()


class ExportedFile(Struct, frozen=True, kw_only=True):
    """A file of an export: records with sequence numbers from ``first`` to ``last``, inclusive."""

    name: str
    first: int
    last: int
    records: int
    bytes: int
    sha256: str


class Manifest(Struct, frozen=True, kw_only=True):
    """The files of an export.

    ``number`` is the sequence number of the last record that the export has read, ``checksum`` that record's checksum.
    """

    format: str = _FORMAT
    records: Format
    filters: Filters
    number: int = 0
    checksum: str = ""
    files: tuple[ExportedFile, ...] = ()


async def export(
    log: port.NumberedLog, directory: Path, form: Format, filters: Filters, progress: Progress
) -> Manifest:
    """Export the records that follow those of the directory's manifest; return the new manifest.

    Raises OSError, port.LogError or ExportError. A directory with an export of another log is an ExportError.
    """
    manifest = await asyncio.to_thread(_begin, directory, form, filters)
    until = log.last_number()
    await _check_log(log, directory, manifest)
    after, taken, size = manifest.number, list[StoredRecord](), 0
    checksum = manifest.checksum
    count = sum(file.records for file in manifest.files)
    while after < until and (batch := await log.read_all(after, port.READ_RECORDS)):
        for record in batch:
            if filters.matches(record):
                taken.append(record)
                size += len(record.value)
        after, checksum = batch[-1].number, batch[-1].checksum.hex()
        progress(after, count + len(taken))
        if len(taken) >= _FILE_RECORDS or size >= _FILE_BYTES:
            manifest = await asyncio.to_thread(_add_file, directory, manifest, taken, (after, checksum))
            count, taken, size = count + len(taken), [], 0
    if after > manifest.number:
        manifest = await asyncio.to_thread(_add_file, directory, manifest, taken, (after, checksum))
    return manifest


def read_manifest(directory: Path) -> Manifest | None:
    """Return the manifest of a directory; None if there is none. Raises ExportError if it is unreadable."""
    try:
        manifest = msgspec.json.decode((directory / MANIFEST).read_bytes(), type=Manifest)
    except FileNotFoundError:
        return None
    except (msgspec.MsgspecError, ValueError) as error:
        raise ExportError(f"{directory / MANIFEST} is not a manifest: {error}") from None
    if manifest.format != _FORMAT:
        raise ExportError(f"{directory / MANIFEST} has the format {manifest.format}, not {_FORMAT}")
    return manifest


def read_file(directory: Path, file: ExportedFile) -> bytes:
    """Return the content of a file. Raises ExportError if the digest differs from the manifest's."""
    content = (directory / file.name).read_bytes()
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise ExportError(
            f"{directory / file.name} was changed: its SHA-256 differs from the one in the manifest"
        )
    return content


def _begin(directory: Path, form: Format, filters: Filters) -> Manifest:
    directory.mkdir(parents=True, exist_ok=True)
    manifest = read_manifest(directory)
    if manifest is None:
        return Manifest(records=form, filters=filters)
    recorded = manifest.filters
    times_alike = structs.replace(filters, since_ms=recorded.since_ms, until_ms=recorded.until_ms)
    if manifest.records == form and recorded == times_alike != filters:
        message = f"{directory} contains an export of the events {recorded.range_text}"
        raise ExportError(f"{message}; give these times, since 24h is another time in each call")
    if (manifest.records, recorded) != (form, filters):
        raise ExportError(f"{directory} contains an export in another format or with other filters")
    return manifest


async def _check_log(log: port.NumberedLog, directory: Path, manifest: Manifest) -> None:
    """Raise ExportError if the log has another record, or none, in place of the last one that the export has read.

    A record that was deleted from the log is no error.
    """
    if not manifest.number:
        return
    try:
        records = await log.read_all(manifest.number - 1, 1)
    except port.LogCutError:
        return  # exported records may be deleted from the log
    if not records or (records[0].number, records[0].checksum.hex()) != (manifest.number, manifest.checksum):
        raise ExportError(
            f"{directory} contains an export of another log, whose record {manifest.number} is not in this log"
        )


def _add_file(
    directory: Path, manifest: Manifest, taken: list[StoredRecord], last: tuple[int, str]
) -> Manifest:
    """Write a file and the new manifest; ``last`` are the number and the checksum of the last record that was read."""
    if taken:
        name = f"records-{taken[0].number:012}.{formats.SUFFIXES[manifest.records]}"
        path, unfinished = directory / name, directory / f"{name}.part"
        count = formats.write(unfinished, taken, manifest.records)
        with unfinished.open("rb") as written:
            # Sync before the manifest names the file, since the next export continues after the files in the manifest.
            os.fsync(written.fileno())
            content = written.read()
        unfinished.rename(path)
        file = ExportedFile(
            name=name,
            first=taken[0].number,
            last=taken[-1].number,
            records=count,
            bytes=len(content),
            sha256=hashlib.sha256(content).hexdigest(),
        )
        manifest = structs.replace(manifest, files=(*manifest.files, file))
    manifest = structs.replace(manifest, number=last[0], checksum=last[1])
    private_files.write(directory / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)) + b"\n")
    return manifest


async def load(log: port.NumberedLog, directory: Path, progress: Progress) -> int:
    """Append all records of an export to an empty log; return their number.

    Raises ExportError if the export is incomplete or was changed, or if a record would get another number or offset.
    """
    manifest = await asyncio.to_thread(read_manifest, directory)
    if manifest is None:
        raise ExportError(f"{directory} contains no {MANIFEST}")
    if manifest.records != "jsonl" or manifest.filters != EVERYTHING:
        raise ExportError(
            f"{directory} does not contain all records: export the log as jsonl, without filters"
        )
    if log.last_number():
        raise ExportError(f"the log is not empty: it contains {log.last_number()} records")
    # Check all files before the first append, since an appended record cannot be deleted.
    await asyncio.to_thread(_check_files, directory, manifest)
    count = 0
    for file in manifest.files:
        content = await asyncio.to_thread(read_file, directory, file)
        pairs = await asyncio.to_thread(formats.read, content)
        for start in range(0, len(pairs), _BATCH):
            batch = pairs[start : start + _BATCH]
            appended = await log.append([record for _, record in batch])
            for (stored, _), now in zip(batch, appended, strict=True):
                if (stored.number, stored.position) != (now.number, now.position):
                    message = f"number {stored.number} ({stored.position}) would become {now.number} ({now.position})"
                    raise ExportError(f"{message}: delete the new log")
            count += len(batch)
            progress(count, count)
    return count


def _check_files(directory: Path, manifest: Manifest) -> None:
    """Raise ExportError if a file was changed, or if a record number up to the manifest's is in no file."""
    count = 0
    for file in manifest.files:
        content = read_file(directory, file)
        if (file.first, file.last) != (count + 1, count + file.records):
            _check_numbers([stored.number for stored, _ in formats.read(content)], count)
        count += file.records
    if count < manifest.number:
        raise ExportError(f"number {count + 1} is missing: {MANIFEST} names no file that contains it")


def _check_numbers(numbers: list[int], before: int) -> None:
    expected = list(range(before + 1, before + len(numbers) + 1))
    if numbers != expected:
        gap = next(want for want, number in zip(expected, numbers, strict=True) if want != number)
        raise ExportError(
            f"number {gap} is missing; a log on Kafka has gaps, and cannot be imported into a file"
        )
