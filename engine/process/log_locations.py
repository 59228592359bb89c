"""Open a log for reading by its location: a data directory, a log file, or an address on Kafka."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Final, TypeVar

from msgspec import Struct

from engine.log import port, sqlite_reading, sqlite_table
from engine.log.kafka import address
from engine.reconcilers import snapshot_storage

_Result = TypeVar("_Result")


class LogLocation(Struct, frozen=True):
    """Place of a log: ``path`` of a directory or file, or ``address`` on Kafka, which may contain a password."""

    path: str = ""
    address: str = ""


def parse(text: str) -> LogLocation:
    """Return the location of a log from a user's text. Raises port.LogError if there is no log."""
    if text.startswith(_KAFKA):
        try:
            address.parse(text)
        except address.AddressError as error:
            raise port.LogError(str(error)) from None
        return LogLocation(address=text)
    path = Path(text)
    if not (path if path.is_file() else path / sqlite_table.FILE).exists():
        raise port.LogError(f"there is no log at {text}")
    return LogLocation(path=str(path.absolute()))


def of_server(directory: Path, address: str | None) -> LogLocation:
    """Return the location of a server's log: an address on Kafka, or else the server's data directory."""
    return LogLocation(str(directory)) if address is None else LogLocation(address=address)


@asynccontextmanager
async def opened(location: LogLocation) -> AsyncGenerator[port.NumberedLog]:
    """Open a log for reading; other processes may write it meanwhile."""
    if location.address:
        from engine.log.kafka import numbered_log  # noqa: PLC0415  # most logs need no client of Kafka

        async with numbered_log.reading(address.parse(location.address)) as log:
            yield log
        return
    async with aclosing(await asyncio.to_thread(sqlite_reading.SqliteReader, Path(location.path))) as reader:
        yield reader


def run_on(location: LogLocation, work: Callable[[port.NumberedLog], Awaitable[_Result]]) -> _Result:
    """Run ``work`` on a log, in an event loop of its own; return the result."""

    async def run() -> _Result:
        async with opened(location) as log:
            return await work(log)

    return asyncio.run(run())


@asynccontextmanager
async def snapshots(location: LogLocation) -> AsyncGenerator[snapshot_storage.SnapshotStorage]:
    """Open the snapshots beside a log for reading."""
    if location.address:
        from engine.log.kafka import side_topics  # noqa: PLC0415  # most logs need no client of Kafka

        topic = side_topics.SnapshotTopic(address.parse(location.address))
        try:
            yield topic
        finally:
            await topic.close()
        return
    path = Path(location.path)
    directory = path.parent if await asyncio.to_thread(path.is_file) else path
    yield snapshot_storage.SingleSnapshotStorage(snapshot_storage.SnapshotFiles(directory))


_KAFKA: Final = f"{address.SCHEME}://"
