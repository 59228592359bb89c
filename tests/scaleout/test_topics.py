"""Topics are created with the settings that the log needs, and refused if they could lose records."""

import secrets
from typing import Final

import pytest

from engine.log import port
from engine.log.kafka import topics
from engine.log.kafka.address import Address
from engine.log.kafka.clients import RECORD_BYTES_MAX
from tests.brokers import clients

pytestmark = pytest.mark.slow
GOOD: Final = {"retention.ms": "-1", "retention.bytes": "-1", "max.message.bytes": str(RECORD_BYTES_MAX)}


@pytest.fixture
def address(kafka: str) -> Address:
    return Address(servers=kafka, prefix=f"t{secrets.token_hex(4)}.")


async def test_topics_are_created_once_and_accepted_afterwards(address: Address) -> None:
    await topics.prepare(address)
    await topics.prepare(address)


@pytest.mark.parametrize(
    ("settings", "wrong"),
    [
        ({"retention.ms": "604800000"}, "retention.ms=604800000"),
        ({"retention.bytes": "1000000"}, "retention.bytes=1000000"),
        ({"cleanup.policy": "compact"}, "cleanup.policy=compact"),
        ({"max.message.bytes": "1000000"}, "max.message.bytes=1000000"),
    ],
)
async def test_settings_that_lose_records_are_refused_with_the_right_ones(
    address: Address, settings: dict[str, str], wrong: str
) -> None:
    name = address.topic("specs")
    await clients.create_topics(address.servers, {name: 12}, settings=GOOD | settings)

    with pytest.raises(port.LogError) as refused:
        await topics.prepare(address)

    assert f"topic {name} has {wrong}" in str(refused.value)
    (key,) = settings
    assert f"Set with kafka-configs --alter: {key}=" in str(refused.value)


async def test_other_partition_count_is_refused(address: Address) -> None:
    await clients.create_topics(address.servers, {address.topic("links"): 6}, settings=GOOD)

    with pytest.raises(
        port.LogError,
        match=r"links has 6 partitions but must have 12, which can't change; use another prefix",
    ):
        await topics.prepare(address)


async def test_missing_broker_is_reported() -> None:
    with pytest.raises(
        port.LogError, match=r"at 127\.0\.0\.1:1 were not prepared: KafkaConnectionError: [^K]*$"
    ):
        await topics.prepare(Address(servers="127.0.0.1:1"))
