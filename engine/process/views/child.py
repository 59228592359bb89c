"""The child process: folds the log's file up to the end that the parent announces."""

import asyncio
import contextlib
import fcntl
import os
import signal
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Final

from engine import diagnostics, private_files
from engine.log import port, sqlite_reading
from engine.log.kafka import address
from engine.process import interpreter_settings, views
from engine.text_lines import Lines
from events.validation import manifests
from projections import runner, store
from projections.port import ProjectionError, UnwritableError

_LOCK_FILE: Final = "views.lock"
_READ_BYTES: Final = 65_536
_INPUT: Final = 0
_OUTPUT: Final = 1
_END_S: Final = 10.0
_UNREADABLE: Final = (port.LogCorruptedError, port.LogCutError)
_log = diagnostics.logger(__name__)


def main(directory: Path) -> None:
    """Follow the log until standard input ends."""
    # A signal to the process group is meant for the parent, which stops this process by closing its input.
    for kind in (signal.SIGINT, signal.SIGTERM):
        signal.signal(kind, signal.SIG_IGN)
    interpreter_settings.tune()
    where = os.environ.get(views.LOG_VARIABLE)
    with _only_child(directory):
        asyncio.run(_follow(directory) if where is None else _follow_kafka(directory, address.parse(where)))


@contextlib.contextmanager
def _only_child(directory: Path) -> Generator[None]:
    """Wait for the lock of the views and hold it: the child of a killed parent keeps it until its batch is written."""
    with private_files.open_empty(directory / _LOCK_FILE) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


async def _follow(directory: Path) -> None:
    incoming = await _input()
    lines = Lines()
    # The log may not exist before the parent sends a number.
    number = _last(lines.take(await incoming.read(_READ_BYTES)))
    if number is None:
        return
    log = sqlite_reading.SqliteTail(directory, number)
    reading = asyncio.create_task(_read_ends(incoming, lines, log.move))
    await _project(log, directory, [reading])


async def _follow_kafka(directory: Path, at: address.Address) -> None:
    """Follow a log on Kafka as an independent reader; the parent only ends the process."""
    incoming = await _input()
    reading = asyncio.create_task(_read_ends(incoming, Lines(), lambda _: None))
    projecting = asyncio.create_task(_project_kafka(at, directory, reading))
    await asyncio.wait((reading, projecting), return_when=asyncio.FIRST_COMPLETED)
    # Let the projection finish its batch, but do not wait for brokers that do not answer.
    await asyncio.wait((projecting,), timeout=_END_S)
    if not projecting.done():
        projecting.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await projecting


async def _project_kafka(at: address.Address, directory: Path, reading: asyncio.Task[None]) -> None:
    from engine.log.kafka import numbered_log  # noqa: PLC0415  # most logs need no client of Kafka

    async with numbered_log.reading(at) as log:
        await _project(log, directory, [reading])


async def _project(log: runner.Source, directory: Path, until: Sequence[asyncio.Task[None]]) -> None:
    """Fold the log and report progress until one of the tasks in ``until`` ends."""
    folding = asyncio.create_task(_fold_and_report(log, directory / store.FILE))
    await asyncio.wait((folding, *until), return_when=asyncio.FIRST_COMPLETED)
    folding.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await folding


async def _fold_and_report(log: runner.Source, path: Path) -> None:
    try:
        projector = await _opened_at_last(log, path)
    except _UNREADABLE as error:
        # Opening the tables compares their last folded record with that of the log, which may be unreadable.
        _report_error(views.CORRUPTED, error)
        return
    _write_line(views.number(projector.folded))
    reporting = asyncio.create_task(_report_progress(projector))
    try:
        await _fold(projector)
    except ProjectionError as error:
        # A damaged page causes an error only when it is first read. Delete the tables and end: the next child rebuilds
        # them, and the parent reads them once they include all records that the deleted tables included.
        _log.warning("rebuilding views", error=str(error))
        private_files.remove_database(path)
    finally:
        reporting.cancel()
        projector.close()
        projector.store.close()


async def _input() -> asyncio.StreamReader:
    incoming = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(incoming)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, os.fdopen(_INPUT, "rb"))
    return incoming


async def _read_ends(incoming: asyncio.StreamReader, lines: Lines, move: Callable[[int], None]) -> None:
    """Call ``move`` with the newest log number that the parent process has announced, until the input ends."""
    while data := await incoming.read(_READ_BYTES):
        number = _last(lines.take(data))
        if number is not None:
            move(number)


def _last(lines: list[bytes]) -> int | None:
    return int(lines[-1]) if lines else None


async def _opened_at_last(log: runner.Source, path: Path) -> runner.Projector:
    """Return a projector with the opened tables; until they can be opened, report the reason and retry."""
    while True:
        try:
            return await _opened(log, path)
        except ProjectionError as error:
            _report_error(views.UNWRITABLE, error)
            await asyncio.sleep(port.AFTER_FAILURE_S)


async def _opened(log: runner.Source, path: Path) -> runner.Projector:
    """Open the stored tables; if they are damaged or of another log, rebuild them, since they are only a cache."""
    projector = runner.Projector(log, store.Store(path), manifests.check)
    try:
        await projector.fold_to(0)
    except UnwritableError:
        projector.close()
        projector.store.close()
        raise
    except ProjectionError as error:
        _log.warning("rebuilding views", error=str(error))
        projector.close()
        projector.store.close()
        private_files.remove_database(path)
        projector = runner.Projector(log, store.Store(path), manifests.check)
        await projector.fold_to(0)
    return projector


async def _fold(projector: runner.Projector) -> None:
    """Fold until the log cannot be read; retry forever if the tables cannot be written."""
    while True:
        try:
            await projector.run()
        except UnwritableError as error:
            _report_error(views.UNWRITABLE, error)
            await asyncio.sleep(port.AFTER_FAILURE_S)
        except _UNREADABLE as error:
            _report_error(views.CORRUPTED, error)
            return


async def _report_progress(projector: runner.Projector) -> None:
    reported = projector.folded
    while True:
        await projector.wait_folded(reported + 1)
        reported = projector.folded
        _write_line(views.number(reported))


def _report_error(prefix: bytes, error: Exception) -> None:
    _write_line(prefix + str(error).replace("\n", " ").encode() + b"\n")


def _write_line(line: bytes) -> None:
    # Short lines are written to a pipe atomically. A broken pipe means that the parent has ended; then the input of
    # this process ends too, which stops it.
    with contextlib.suppress(BrokenPipeError):
        os.write(_OUTPUT, line)
