"""A topic of lines beside the log, such as signed checkpoints: appended, and read from its end."""

# aiokafka has annotations but no py.typed marker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from typing import Final

from aiokafka.errors import KafkaError

from engine.log.kafka import clients, range_reads, topics
from engine.log.kafka.address import Address

CHECKPOINTS: Final = "checkpoints"
"""The topic of signed checkpoints, by its engine name."""


class LineTopic:
    """A topic of one partition whose records are lines; it is created when it is first used."""

    def __init__(self, address: Address, name: str) -> None:
        self._address = address
        self._slot = (name, 0)
        self._ranges = range_reads.Ranges(address)
        self._producer: clients.Producer | None = None
        self._is_prepared = False

    async def lines(self) -> list[bytes]:
        """Return all lines. Raises LogError."""
        begin, end = await self._bounds()
        return await self._read(begin, end)

    async def last(self) -> bytes:
        """Return the last line; empty if there is none. Raises LogError."""
        begin, end = await self._bounds()
        result: list[bytes] = []
        while not result and end > begin:
            # The last offsets may be control records.
            result = await self._read(end - 1, end)
            end -= 1
        return result[-1] if result else b""

    async def append(self, line: bytes) -> None:
        """Append a line; it is durable on return. Raises LogError."""
        await self._prepare()
        try:
            if self._producer is None:
                self._producer = await clients.started(clients.producer(self._address))
            await self._producer.send_and_wait(self._address.topic(self._slot[0]), line, partition=0)
        except KafkaError as error:
            raise clients.failed(f"topic {self._slot[0]} was not written", error) from error

    async def aclose(self) -> None:
        """Close the connections."""
        await self._ranges.close()
        if self._producer is not None:
            await clients.stopped(self._producer)

    async def _bounds(self) -> tuple[int, int]:
        await self._prepare()
        return await self._ranges.bounds(self._slot)

    async def _read(self, start: int, end: int) -> list[bytes]:
        result: list[bytes] = []
        while batch := await self._ranges.read(self._slot, start, end, end - start):
            result += [record.value for record in batch]
            start = batch[-1].offset + 1
        return result

    async def _prepare(self) -> None:
        if not self._is_prepared:
            await topics.prepare_one(self._address, self._slot[0])
            self._is_prepared = True
