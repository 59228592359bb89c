"""Check a worker's clock: if it is more than a second off the brokers', the worker owns nothing (design section 2).

A step's time is its owner's clock and never goes back. A clock that is ahead would advance the shard's time
for good and fire timers early.
"""

# aiokafka has annotations but no py.typed marker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from collections.abc import Callable
from typing import Final

from aiokafka.errors import KafkaError

from engine.log import port
from engine.log.kafka import clients
from engine.log.kafka.address import Address
from engine.log.kafka.topics import SNAPSHOTS

OFF_MS_MAX: Final = 1_000
_LOG_APPEND_TIME: Final = 1
_KEY: Final = b"clock"


async def check(address: Address, clock_ms: Callable[[], int]) -> None:
    """Compare a clock with the time that the brokers stamp on a record appended to the snapshot topic.

    Raises LogError if the clock is off or no broker answers.
    """
    producer = clients.producer(address)
    try:
        await producer.start()
        before_ms = clock_ms()
        metadata = await producer.send_and_wait(address.topic(SNAPSHOTS), b"", _KEY, 0)
        after_ms = clock_ms()
    except KafkaError as error:
        raise clients.failed("the brokers' time is not known", error) from error
    finally:
        await clients.stopped(producer)
    if metadata.timestamp_type != _LOG_APPEND_TIME or metadata.timestamp is None:
        return
    off_ms = max(before_ms - metadata.timestamp, metadata.timestamp - after_ms)
    if off_ms > OFF_MS_MAX:
        raise port.LogError(
            f"this machine's clock is {off_ms / 1000:.1f} s off the brokers'; set it, for example by NTP,"
            " before a worker runs here"
        )
