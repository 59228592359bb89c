"""Import: append the records of an export to an empty log, which then has the same bytes at the same places."""

import asyncio
from pathlib import Path

from engine.exports import exporting, formats
from engine.exports.errors import ExportError
from engine.log import port

_BATCH = 500


async def load(log: port.NumberedLog, directory: Path, progress: exporting.Progress) -> int:
    """Append all records of an export to an empty log; return their number.

    Raises ExportError if the export is not whole, was changed, or would not give the same numbers and offsets.
    """
    manifest = await asyncio.to_thread(exporting.read_manifest, directory)
    if manifest is None:
        raise ExportError(f"{directory} has no {exporting.MANIFEST}")
    if manifest.records != "jsonl" or manifest.filters != exporting.EVERYTHING:
        raise ExportError(f"{directory} does not have all records: export it as jsonl, without filters")
    if log.last_number():
        raise ExportError(f"the log is not empty: it has {log.last_number()} records")
    count = 0
    for file in manifest.files:
        content = await asyncio.to_thread(exporting.read_file, directory, file)
        pairs = await asyncio.to_thread(formats.read, content)
        for start in range(0, len(pairs), _BATCH):
            batch = pairs[start : start + _BATCH]
            # Checked before the append: an imported record cannot be taken back.
            _check_numbers([stored.number for stored, _ in batch], count)
            appended = await log.append([record for _, record in batch])
            for (stored, _), now in zip(batch, appended, strict=True):
                if (stored.number, stored.position) != (now.number, now.position):
                    message = f"number {stored.number} ({stored.position}) would become {now.number} ({now.position})"
                    raise ExportError(f"{message}: delete the new log")
            count += len(batch)
            progress(count, count)
    return count


def _check_numbers(numbers: list[int], before: int) -> None:
    expected = list(range(before + 1, before + len(numbers) + 1))
    if numbers != expected:
        gap = next(want for want, number in zip(expected, numbers, strict=True) if want != number)
        raise ExportError(
            f"number {gap} is missing; a log on Kafka has gaps, and cannot be imported into a file"
        )
