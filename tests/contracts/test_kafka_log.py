"""The log contract, on real Kafka."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from engine.log.kafka import numbered_log
from tests.contracts.log_contract import LogContract
from tests.scaleout import logs

pytestmark = pytest.mark.slow


class TestKafkaLog(LogContract):
    @pytest.fixture(autouse=True)
    def _broker(self, kafka: str) -> None:
        self._servers = kafka

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[numbered_log.KafkaLog]:
        async with numbered_log.opened(await logs.prepared(self._servers)) as log:
            yield log
