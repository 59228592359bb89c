"""The plain loop of ``bench kafka``: ``python -m engine.bench.kafka_loop COUNT FILE``.

For each input it produces COUNT of the records in FILE, in one transaction per batch, without decoding
anything. It runs in a process of its own, as a worker does.
"""

# aiokafka has annotations but no py.typed marker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import asyncio
import itertools
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
import uvloop

from engine.log.kafka import address, clients
from events import topics

_TRANSACTION_RECORDS: Final = 500
Sample = tuple[bytes, bytes, list[tuple[str, bytes]]]
"""Key, value and headers of a record."""


def encode(samples: Sequence[Sample]) -> bytes:
    """Serialize sample records."""
    return msgspec.msgpack.encode(samples)


async def loop(where: str, count: int, samples: Sequence[Sample]) -> None:
    """Run until the process is killed."""
    at = address.parse(where)
    consumer, producer = clients.consumer(at), clients.producer(at, at.topic("bare"))
    await consumer.start()
    await producer.start()
    sources = [clients.partition(at, (topics.SPECS, shard)) for shard in range(topics.SHARDS)]
    consumer.assign(sources)
    for source in sources:
        consumer.seek(source, 0)
    endless, name = itertools.cycle(samples), at.topic(topics.DECISIONS)
    while True:
        batch = await consumer.getmany(timeout_ms=100, max_records=_TRANSACTION_RECORDS)
        if not batch:
            continue
        await producer.begin_transaction()
        sent: list[asyncio.Future[object]] = []
        for source, records in batch.items():
            for key, value, headers in itertools.islice(endless, len(records) * count):
                sent.append(await producer.send(name, value, key, source.partition, headers=headers))
        await asyncio.gather(*sent)
        await producer.commit_transaction()


if __name__ == "__main__":
    samples = msgspec.msgpack.decode(Path(sys.argv[2]).read_bytes(), type=list[Sample])
    uvloop.run(loop(os.environ["REBALLAST_LOG"], int(sys.argv[1]), samples))
