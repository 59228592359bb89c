"""Decide which works members apply: only those that a valid step declares as its output.

Any producer may append to the topic ``works``. A step is valid if its number, digest and term continue
the chain of its shard's valid steps (``events.chain``).
"""

import asyncio
from collections.abc import Mapping
from typing import Final

from engine.log import port
from events import catalogue, codec, records, topics
from events.chain import Chain
from events.outputs import Judgement, Outputs

READ: Final = 500
"""Number of records to read and fold before other tasks run."""

_AWAITED_MAX = 100_000
"""Maximum number of declared works without a record; the oldest are dropped.

Steps declare works of all clusters, but only the partitions of simulated ones are read.
"""
_NONE: Final[Mapping[int, Chain]] = {}
_NO_ENDS: Final[port.Ends] = {}


class CountingWorks:
    """Follows the steps of all shards and judges each record of ``works`` once, in partition order.

    ``chains`` are the shards' chains as of the offsets ``ends``; later steps are read from there. Steps of a shard
    without a chain are read from the beginning of the log.
    """

    def __init__(
        self, log: port.Log, chains: Mapping[int, Chain] = _NONE, ends: port.Ends = _NO_ENDS
    ) -> None:
        self._log = log
        self._chains = {shard: chains.get(shard) or Chain(shard) for shard in range(topics.SHARDS)}
        self._outputs = Outputs((topics.WORKS,), self._chains)
        self._ends = {
            shard: ends.get((topics.DECISIONS, shard), 0) if shard in chains else 0 for shard in self._chains
        }
        self._foreign: set[tuple[int, int]] = set()

    async def follow(self, ends: port.Ends) -> list[records.StoredRecord]:
        """Read the steps up to these ends; return the works that were read before the valid steps that declare them."""
        works_due: list[records.StoredRecord] = []
        for shard, chain in self._chains.items():
            end = ends.get((topics.DECISIONS, shard), 0)
            while self._ends[shard] < end:
                start = self._ends[shard]
                batch = await self._log.read(topics.DECISIONS, shard, start, min(READ, end - start))
                for record in batch:
                    if record.headers.get("ce_type") == catalogue.STEP_TAKEN and self._take(chain, record):
                        works_due += self._take_due(shard)
                self._ends[shard] = port.behind(batch, end)
                await asyncio.sleep(0)  # let other tasks run: after a restart this reads all steps
        while len(self._outputs.awaited) > _AWAITED_MAX:
            del self._outputs.awaited[next(iter(self._outputs.awaited))]
        return works_due

    def judge(self, record: records.StoredRecord) -> bool:
        """Judge the next record of its partition; return whether members apply it.

        A work whose step has not been read yet is kept for ``follow``.
        """
        judgement = self._outputs.judge(record)
        if judgement is not Judgement.COUNTS:
            self._foreign.add((record.partition, record.offset))
        if judgement is Judgement.EARLY:
            self._outputs.keep(record)
        return judgement is Judgement.COUNTS

    def counts(self, record: records.StoredRecord) -> bool:
        """Whether members apply a record that was judged before."""
        return (record.partition, record.offset) not in self._foreign

    def _take(self, chain: Chain, record: records.StoredRecord) -> bool:
        data = codec.event_of(record)
        if data is None or not chain.take(record, data):
            return False
        self._outputs.declare(chain.shard)
        return True

    def _take_due(self, shard: int) -> list[records.StoredRecord]:
        counting = [
            record for record in self._outputs.due(shard) if self._outputs.judge(record) is Judgement.COUNTS
        ]
        self._foreign.difference_update((record.partition, record.offset) for record in counting)
        return counting
