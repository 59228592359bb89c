"""Assignment of shards to workers by a Kafka consumer group.

The group fetches nothing and commits no offsets. It only determines which worker should try to own a shard. The actual
owner is the worker that started the shard's transactional producer last.
"""

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
"""Milliseconds after which the shards of a silent worker are assigned to others; brokers accept no less by default."""

SESSION_VARIABLE: Final = "REBALLAST_SESSION_MS"
"""Environment variable that overrides ``SESSION_MS``."""

_HEARTBEATS: Final = 4
_POLL_MS: Final = 1_000
_log = diagnostics.logger(__name__)


class Assignment:
    """Calls ``on_change`` with the shards that this worker should own, whenever these shards change."""

    def __init__(self, address: Address, on_change: Callable[[frozenset[int]], None]) -> None:
        self._address = address
        self._on_change = on_change
        self._session_ms = clients.chosen_ms(SESSION_VARIABLE, SESSION_MS)

    async def run(self) -> None:
        """Take part in the group until cancelled, then leave it."""
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
                    # All partitions are paused, so nothing is returned; but a member that never polls is
                    # removed from the group.
                    await consumer.getmany(timeout_ms=_POLL_MS)
            except KafkaError as error:
                _log.warning("left the worker group; joining again", error=str(error))
                await asyncio.sleep(clients.AFTER_FAILURE_S)
            finally:
                await clients.close(consumer)


class _Listener(ConsumerRebalanceListener):
    def __init__(self, consumer: AIOKafkaConsumer, on_change: Callable[[frozenset[int]], None]) -> None:
        self._consumer = consumer
        self._on_change = on_change

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        """Do nothing: a worker owns a revoked shard until the next owner fences it, so each shard has an owner."""

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        self._consumer.pause(*assigned)
        self._on_change(frozenset(partition.partition for partition in assigned))
