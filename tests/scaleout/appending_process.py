"""Append batches over all shards until killed: ``python -m tests.scaleout.appending_process LOG NAME``.

Prints the number of each acknowledged batch. A record's id is ``NAME-batch-partition``.
"""

import asyncio
import sys

from engine.log.kafka import address, appends
from events import records, topics
from events.records import Record


def batch(name: str, number: int) -> list[Record]:
    """Return one record per shard."""
    return [
        records.record(topics.SPECS, shard, name, {"ce_id": f"{name}-{number}-{shard}"}, b"{}")
        for shard in range(topics.SHARDS)
    ]


async def main(log: str, name: str) -> None:
    """Append batches until the process is killed."""
    appender = appends.Appender(address.parse(log))
    await appender.open()
    number = 0
    while True:
        await appender.append(batch(name, number))
        print(number, flush=True)  # noqa: T201  # the test reads it
        number += 1


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
