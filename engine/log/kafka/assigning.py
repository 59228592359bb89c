"""Which shards a worker is to own: a consumer group spreads them over the workers that are there.

The group does nothing else: it fetches nothing and commits nothing. Who owns a shard is decided by its producer; the
group only says who should try.
"""

# The library has annotations, but does not say so to type checkers.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUntypedBaseClass=false

import asyncio
from collections.abc import Callable
from typing import Final

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import KafkaError

from engine import diagnostics
from engine.log.kafka import clients, topics
from engine.log.kafka.address import Address

GROUP: Final = "workers"
SESSION_MS: Final = 6_000
"""A worker that is silent for so long has its shards given to others; brokers take no less by default."""

SESSION_VARIABLE: Final = "REBALLAST_SESSION_MS"
"""Names a variable of the environment that says it otherwise."""

_HEARTBEATS: Final = 4
_POLL_MS: Final = 1_000
_AFTER_FAILURE_S: Final = 0.5
_log = diagnostics.logger(__name__)


class Assignment:
    """Tells ``on_change`` which shards this worker is to own, whenever that changes."""

    def __init__(self, address: Address, on_change: Callable[[frozenset[int]], None]) -> None:
        self._address = address
        self._on_change = on_change
        self._session_ms = clients.chosen_ms(SESSION_VARIABLE, SESSION_MS)

    async def run(self) -> None:
        """Takes part in the group until it is cancelled, and leaves it then."""
        while True:
            consumer = clients.member(
                self._address,
                GROUP,
                self._session_ms,
                self._session_ms // _HEARTBEATS,
                StickyPartitionAssignor,
            )
            try:
                await consumer.start()
                consumer.subscribe(
                    [self._address.topic(topics.SNAPSHOTS)], listener=_Listener(consumer, self._on_change)
                )
                while True:
                    # Nothing comes, as all is paused; a member that never asks is taken for dead.
                    await consumer.getmany(timeout_ms=_POLL_MS)
            except KafkaError as error:
                _log.warning("the group of workers was left, joining again", error=str(error))
                await asyncio.sleep(_AFTER_FAILURE_S)
            finally:
                await clients.closed(consumer)


class _Listener(ConsumerRebalanceListener):
    def __init__(self, consumer: AIOKafkaConsumer, on_change: Callable[[frozenset[int]], None]) -> None:
        self._consumer = consumer
        self._on_change = on_change

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        """What is revoked is decided on until somebody else takes it over: so there is no gap."""

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        self._consumer.pause(*assigned)
        self._on_change(frozenset(each.partition for each in assigned))
