"""The records that a Kafka producer has not delivered yet, and how to give them up.

aiokafka has no public access to them, so an upgrade may break this module.
"""

# aiokafka has annotations but no py.typed marker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportPrivateUsage=false

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaTimeoutError
from aiokafka.producer.message_accumulator import MessageAccumulator, MessageBatch


def limit_delivery(client: AIOKafkaProducer, seconds: float) -> None:
    """Let records for a partition without a leader wait this long; call it before the client is started.

    By default aiokafka drops them after one request timeout, but an election may take longer.
    """
    _accumulator(client)._batch_ttl = seconds  # noqa: SLF001


def drop(client: AIOKafkaProducer) -> None:
    """Fail all records that no broker has confirmed, and send none of them again.

    Afterwards the client accepts no more records; stop it.
    """
    buffer = _accumulator(client)
    # Move the waiting batches to the pending ones: aiokafka removes each batch that ends from these.
    pending, waiting = buffer._pending_batches, buffer._batches  # noqa: SLF001
    pending.update(batch for batches in waiting.values() for batch in batches)
    waiting.clear()
    buffer.fail_all(KafkaTimeoutError())
    for batch in pending:
        drained = batch._drain_waiter  # noqa: SLF001
        if drained.done() and not drained.cancelled():
            drained.exception()  # otherwise asyncio logs it as never retrieved
    # The request of a failed batch may fail later; ``reenqueue`` would then expect the batch to be pending, and
    # the KeyError would end the task that sends.
    buffer.reenqueue = _ignore


def _accumulator(client: AIOKafkaProducer) -> MessageAccumulator:
    return client._message_accumulator  # noqa: SLF001


def _ignore(batch: MessageBatch) -> None:
    """Do not send the batch again."""
