"""Records thrown away as retention does it, and restored as from a backup."""

# aiokafka has annotations, but does not say so to type checkers.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from typing import Final

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.records_to_delete import RecordsToDelete

from tests.brokers.processes import LocalBrokers

ALL: Final = -1
_FIRSTS: Final = "log-start-offset-checkpoint"
_NONE: Final = "0\n0\n"
"""Format 0, no lines: every partition begins with what its files hold."""


async def throw_away(servers: str, topic: str, partition: int, before: int = ALL) -> None:
    """Has the broker forget what stands in a partition before an offset."""
    admin = AIOKafkaAdminClient(bootstrap_servers=servers)
    await admin.start()
    try:
        place = TopicPartition(topic, partition)
        await admin.delete_records({place: RecordsToDelete(before_offset=before)})
    finally:
        await admin.close()


def restore(brokers: LocalBrokers) -> None:
    """Everything that one broker forgot is there again: its files hold it, as segments are never full here."""
    (node,) = brokers.nodes
    brokers.stop(node.number)
    (node.data / _FIRSTS).write_text(_NONE)
    brokers.up(node.number)
