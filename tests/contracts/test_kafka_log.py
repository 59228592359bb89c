"""The contract of a log, on real Kafka."""

import asyncio
import itertools
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import pytest

from engine.log.kafka import topics
from engine.log.kafka.address import Address
from engine.log.kafka.numbered import KafkaLog
from tests.contracts.log_contract import LogContract

pytestmark = pytest.mark.slow
_counter = itertools.count()


def address(servers: str) -> Address:
    """A log of its own on a broker."""
    return Address(servers=servers, prefix=f"t{secrets.token_hex(4)}.")


@asynccontextmanager
async def opened(at: Address) -> AsyncGenerator[KafkaLog]:
    await topics.prepare(at)
    log = KafkaLog(at)
    await log.open()
    running = asyncio.create_task(log.run())
    try:
        yield log
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        await log.aclose()


class TestKafkaLog(LogContract):
    @pytest.fixture(autouse=True)
    def _broker(self, kafka: str) -> None:
        self._servers = kafka

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[KafkaLog]:
        async with opened(address(self._servers)) as log:
            yield log
