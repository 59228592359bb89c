"""A worker whose clock is off owns nothing."""

import pytest

from engine.log import port
from engine.log.kafka import clock_check
from engine.process.replica import clock_ms
from tests.scaleout import logs

pytestmark = pytest.mark.slow


async def test_a_clock_that_is_right_is_taken(kafka: str) -> None:
    await clock_check.check(await logs.prepared(kafka), clock_ms)


@pytest.mark.parametrize("off_ms", [-5_000, 5_000])
async def test_a_clock_that_is_off_is_refused_with_how_much(kafka: str, off_ms: int) -> None:
    address = await logs.prepared(kafka)

    with pytest.raises(port.LogError, match=r"clock is [45]\.\d s off the brokers'; set it"):
        await clock_check.check(address, lambda: clock_ms() + off_ms)
