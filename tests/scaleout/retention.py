"""Delete records as retention does, and restore them as from a backup."""

# aiokafka has annotations, but no py.typed marker for type checkers.
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
"""Checkpoint file of format 0 with no entries: every partition starts at the first record in its files."""


async def delete_records(servers: str, topic: str, partition: int, before: int = ALL) -> None:
    """Delete the records of a partition before an offset; by default all."""
    admin = AIOKafkaAdminClient(bootstrap_servers=servers)
    await admin.start()
    try:
        topic_partition = TopicPartition(topic, partition)
        await admin.delete_records({topic_partition: RecordsToDelete(before_offset=before)})
    finally:
        await admin.close()


def restore(brokers: LocalBrokers) -> None:
    """Restore all deleted records of a single broker; their segment files were never removed."""
    (node,) = brokers.nodes
    brokers.stop(node.number)
    (node.data / _FIRSTS).write_text(_NONE)
    brokers.up(node.number)
