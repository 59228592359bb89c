"""The bare loop: ``python -m engine.bench.kafka_loop COUNT BYTES``, a process of its own as a worker is.

For each input so many records of so many bytes, in a transaction for each batch; nothing is looked into.
"""

# The library has annotations, but does not say so to type checkers.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import asyncio
import os
import sys
from typing import Final

from engine.log.kafka import address, clients
from events import topics

_BATCH: Final = 500


async def loop(where: str, count: int, size: int) -> None:
    """Goes on until it is killed."""
    at = address.parse(where)
    consumer, producer = clients.consumer(at), clients.producer(at, at.topic("bare"))
    await consumer.start()
    await producer.start()
    sources = [clients.partition(at, (topics.SPECS, shard)) for shard in range(topics.SHARDS)]
    consumer.assign(sources)
    for source in sources:
        consumer.seek(source, 0)
    value, name = b"x" * size, at.topic(topics.DECISIONS)
    while True:
        batch = await consumer.getmany(timeout_ms=100, max_records=_BATCH)
        if not batch:
            continue
        await producer.begin_transaction()
        sent: list[asyncio.Future[object]] = []
        for source, records in batch.items():
            for record in records:
                sent += [await producer.send(name, value, record.key, source.partition) for _ in range(count)]
        await asyncio.gather(*sent)
        await producer.commit_transaction()


if __name__ == "__main__":
    asyncio.run(loop(os.environ["REBALLAST_LOG"], int(sys.argv[1]), int(sys.argv[2])))
