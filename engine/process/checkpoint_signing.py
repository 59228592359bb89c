"""Append signed checkpoints of a log to a file or a topic, once or periodically."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from pathlib import Path
from typing import Protocol

import anyio
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec import Struct

from engine import diagnostics, private_files
from engine.log import port
from engine.log.kafka import address
from engine.proof import checkpoints

_log = diagnostics.logger(__name__)


class Sink(Protocol):
    """A file or topic to which checkpoints are appended, one line each."""

    async def lines(self) -> list[bytes]:
        """Return all lines. Raises OSError or port.LogError."""
        ...

    async def last(self) -> bytes:
        """Return the last line; empty if there is none. Raises OSError or port.LogError."""
        ...

    async def append(self, line: bytes) -> None:
        """Append a line durably. Raises OSError or port.LogError."""
        ...


class FileSink:
    """A file of lines."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def lines(self) -> list[bytes]:
        return await asyncio.to_thread(self._lines)

    async def last(self) -> bytes:
        lines = await self.lines()
        return lines[-1] if lines else b""

    async def append(self, line: bytes) -> None:
        await asyncio.to_thread(self._append, line)

    def _lines(self) -> list[bytes]:
        """Return the complete lines; a crash may have left an incomplete one at the end."""
        content = self._path.read_bytes() if self._path.exists() else b""
        return content[: content.rfind(b"\n") + 1].splitlines()

    def _append(self, line: bytes) -> None:
        with private_files.open_for_append(self._path) as file:
            file.write(line + b"\n")
            file.flush()
            os.fsync(file.fileno())


@asynccontextmanager
async def sink(where: str) -> AsyncGenerator[Sink]:
    """Open a file or the topic ``checkpoints`` at an address on Kafka. Raises address.AddressError."""
    if not where.startswith(f"{address.SCHEME}://"):
        yield FileSink(Path(where))
        return
    from engine.log.kafka import side_topics  # noqa: PLC0415  # most checkpoints need no client of Kafka

    async with aclosing(side_topics.LineTopic(address.parse(where), side_topics.CHECKPOINTS)) as topic:
        yield topic


async def extend(
    log: port.NumberedLog, sink: Sink, key: Ed25519PrivateKey, time_ms: int
) -> list[checkpoints.Checkpoint]:
    """Append checkpoints of the records after the last checkpoint; return the new ones.

    Raises CheckpointError if the last one was signed by another key, or does not match the log.
    """
    line = await sink.last()
    last = checkpoints.read([line], key.public_key())[0] if line else None
    made: list[checkpoints.Checkpoint] = []
    async for checkpoint in checkpoints.compute(log, time_ms, last):
        await sink.append(checkpoints.signed(checkpoints.encode(checkpoint), key))
        made.append(checkpoint)
    return made


class Schedule(Struct, frozen=True):
    """Make checkpoints every ``every_s`` seconds, signed by ``key``, in ``where``: a file or an address on Kafka."""

    key: Ed25519PrivateKey
    every_s: float
    where: str


async def run(
    schedule: Schedule | None,
    opened: Callable[[], AbstractAsyncContextManager[port.NumberedLog]],
    clock_ms: Callable[[], int],
    stopping: asyncio.Event,
) -> None:
    """Make checkpoints until the process stops, and one at the end; return at once if ``schedule`` is None.

    Failures are logged; the next checkpoint then includes the missing records.
    """
    if schedule is None:
        return
    while not stopping.is_set():
        await _extend(schedule, opened, clock_ms)
        with anyio.move_on_after(schedule.every_s):
            await stopping.wait()
    await _extend(schedule, opened, clock_ms)


async def _extend(
    schedule: Schedule,
    opened: Callable[[], AbstractAsyncContextManager[port.NumberedLog]],
    clock_ms: Callable[[], int],
) -> None:
    try:
        async with opened() as log, sink(schedule.where) as destination:
            made = await extend(log, destination, schedule.key, clock_ms())
    except (checkpoints.CheckpointError, port.LogError, OSError) as error:
        _log.error("checkpoint not signed", to=schedule.where, error=str(error))
        return
    if made:
        _log.info("checkpoint signed", number=made[-1].number, to=schedule.where)
