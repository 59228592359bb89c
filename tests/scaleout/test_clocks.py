"""A worker with a wrong clock does not own shards."""

import pytest

from engine.log import port
from engine.log.kafka import shard_ownership
from engine.process.replica import clock_ms
from tests.scaleout import logs

pytestmark = pytest.mark.slow


async def test_correct_clock_is_accepted(kafka: str) -> None:
    await shard_ownership.check_clock(await logs.prepared(kafka), clock_ms)


# The offsets are far larger than the seconds that a slow broker takes to answer.
@pytest.mark.parametrize("off_ms", [-60_000, 60_000])
async def test_wrong_clock_is_refused_with_its_offset(kafka: str, off_ms: int) -> None:
    address = await logs.prepared(kafka)

    with pytest.raises(
        port.LogError, match=r"clock differs by [56]\d\.\d s from the brokers'; synchronize it"
    ):
        await shard_ownership.check_clock(address, lambda: clock_ms() + off_ms)
