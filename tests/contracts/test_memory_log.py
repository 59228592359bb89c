"""The log contract, for the log in memory."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from engine.log import local, port
from tests.contracts import log_contract


class TestMemoryLog(log_contract.LogContract):
    @asynccontextmanager
    async def open(self) -> AsyncGenerator[port.NumberedLog]:
        log = local.MemoryLog()
        yield log
        await log.aclose()
