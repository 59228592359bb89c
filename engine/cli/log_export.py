"""``log export`` and ``log import``: write the log to files, and load such files into an empty log."""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, Token

from engine.cli import failures, log_checkpoint, next_commands, options, output, server_location
from engine.exports import log_files
from engine.exports.formats import ExportError, Format, MissingPackageError
from engine.log import port, sqlite
from engine.process import log_locations
from events import times, topics


def _read_instant(_type: object, tokens: Sequence[Token]) -> int:
    text = options.instant(tokens[0].value, time.time_ns() // 1_000_000)
    try:
        return times.from_text(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a time; write 10m (ago) or 2026-11-20T10:00:00Z") from None


def export(  # noqa: PLR0913  # the options of a command
    directory: Annotated[Path, Parameter(help="Directory for the files; created if it does not exist.")],
    /,
    *,
    form: Annotated[
        Format,
        Parameter(name="--format", help="File format; jsonl has every field and can be imported again."),
    ] = "jsonl",
    topic: Annotated[
        list[str], Parameter(negative=(), help=f"Only these topics: {', '.join(topics.TOPICS)}.")
    ] = [],  # noqa: B006  # cyclopts makes a new list for each call
    namespace: Annotated[
        list[str],
        Parameter(name=["--namespace", "-n"], negative=(), help="Only events about these namespaces."),
    ] = [],  # noqa: B006
    since: Annotated[
        int | None,
        Parameter(
            converter=_read_instant,
            metavar="TIME",
            help="Only events from this time on: 24h (ago) or RFC 3339.",
        ),
    ] = None,
    until: Annotated[
        int | None, Parameter(converter=_read_instant, metavar="TIME", help="Only events before this time.")
    ] = None,
    log: log_checkpoint.LogOption = "",
    server: options.Server = options.SERVER,
) -> int:
    if unknown := [name for name in topic if name not in topics.TOPICS]:
        raise failures.usage(f"unknown topic {unknown[0]!r}", f"topics: {', '.join(topics.TOPICS)}")
    filters = log_files.Filters(
        topics=tuple(topic), namespaces=tuple(namespace), since_ms=since, until_ms=until
    )
    with (
        failures.convert((ExportError, port.LogError), "choose another directory, or check the log"),
        failures.convert(MissingPackageError, "pip install pyarrow"),
        failures.convert(OSError, "choose another directory", where=directory),
        output.clear_progress_after(),
    ):
        manifest = asyncio.run(_export(log_checkpoint.location_of(log, server), directory, form, filters))
    if server.json:
        output.json(manifest)
    else:
        records = sum(file.records for file in manifest.files)
        size = sum(file.bytes for file in manifest.files)
        files = len(manifest.files)
        output.print_line(
            f"{records:,} records up to number {manifest.number:,} in {files} file{'s' * (files != 1)}, {size:,} bytes"
        )
    return failures.OK


async def _export(
    location: log_locations.LogLocation, directory: Path, form: Format, filters: log_files.Filters
) -> log_files.Manifest:
    async with log_locations.opened(location) as log:
        until = log.last_number()

        def show(number: int, count: int) -> None:
            output.progress(f"{number:,} of {until:,} records read, {count:,} exported")

        return await log_files.export(log, directory, form, filters, show)


def load(
    directory: Annotated[Path, Parameter(help="Directory that `log export` wrote.")],
    /,
    *,
    server: options.Server = options.SERVER,
) -> int:
    if not (directory / log_files.MANIFEST).exists():
        raise failures.Failure(
            f"{directory} contains no {log_files.MANIFEST}",
            "name a directory that `reballast log export` wrote",
        )
    data = (server.data or server_location.default_directory()).absolute()
    try:
        remedy = "import into a new directory: --data DIRECTORY"
        with failures.convert((ExportError, port.LogError), remedy), output.clear_progress_after():
            count = asyncio.run(_load(directory, data))
    except OSError as error:
        raise failures.Failure(f"{error.filename or data}: {error.strerror}") from None
    if server.json:
        output.json({"records": count, "data": str(data)})
    else:
        output.print_line(
            next_commands.hint(f"{count:,} records imported into {data}; prove them", "log verify")
        )
    return failures.OK


async def _load(directory: Path, data: Path) -> int:
    async with contextlib.aclosing(await sqlite.SqliteLog.open(data)) as log:
        return await log_files.load(
            log, directory, lambda count, _: output.progress(f"{count:,} records imported")
        )
