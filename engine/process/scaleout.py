"""Parts of Reballast on Kafka; each can run in any number of processes.

A **worker** owns shards: the consumer group assigns them, and its fencing producers make it the only writer
of their steps. A **replica** has the log in the order of the sequence, its own views, and the servers that read
them. Neither needs the other to run; both may be killed at any time.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from engine import diagnostics, private_files
from engine.log import port
from engine.log.kafka import (
    address,
    numbered_log,
    partition_followers,
    sequence,
    shard_assignment,
    shard_ownership,
    side_topics,
    topics,
)
from engine.process import interpreter_settings, replica
from engine.reconcilers import worker
from engine.reconcilers import worker_metrics as worker_figures
from engine.simulation import specs

KEEP_SECONDS: Final = 5.0
_log = diagnostics.logger(__name__)


class OwningWorker:
    """A worker with its log and its ownership of shards; create it with ``worker_on``."""

    def __init__(self, at: address.Address) -> None:
        self.log = partition_followers.FollowedLog(at)
        self.shards = shard_ownership.Shards(at, self.log, replica.clock_ms)
        self.snapshots = side_topics.SnapshotTopic(at)
        self.worker = worker.Worker(self.log, replica.clock_ms, (), storage=self.snapshots, owner=self.shards)
        self.figures = worker_figures.WorkerMetrics(self.worker, self.log, lambda: self.shards.fences)
        self._is_assigned = False

    def assign(self, shards: frozenset[int]) -> None:
        self._is_assigned = True
        _log.info("shards assigned", shards=sorted(shards))
        self.worker.assign(shards)
        self.log.wake()

    def is_ready(self) -> bool:
        """Whether the worker has an assignment of shards, owns all of them, and its last turn succeeded."""
        return self._is_assigned and self.worker.is_steady()

    def reasons(self) -> list[str]:
        """Return the error of each quarantined shard."""
        return [f"shard {shard}: {error}" for shard, error in self.worker.unreadable().items()]


@asynccontextmanager
async def worker_on(at: address.Address) -> AsyncGenerator[OwningWorker]:
    """Run a worker until the block ends; its shards then go to other workers."""
    interpreter_settings.tune()
    await topics.prepare(at)
    owning_worker = OwningWorker(at)
    try:
        await owning_worker.log.open()
        async with anyio.create_task_group() as following_log:
            following_log.start_soon(owning_worker.log.run)
            async with anyio.create_task_group() as working:
                working.start_soon(replica.run_part, "worker", owning_worker.worker.run())
                working.start_soon(shard_assignment.Assignment(at, owning_worker.assign).run)
                yield owning_worker
                working.cancel_scope.cancel()
            await _keep(owning_worker.worker)
            following_log.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await owning_worker.shards.aclose()
            await owning_worker.snapshots.close()
            await owning_worker.log.aclose()


async def _keep(stopped: worker.Worker) -> None:
    """Store snapshots for the next owners of the shards, within a time limit."""
    with anyio.move_on_after(KEEP_SECONDS, shield=True):
        try:
            await stopped.store_snapshot()
        except port.LogError as error:
            _log.warning("snapshot at shutdown failed", error=str(error))


@asynccontextmanager
async def replica_on(
    where: str, directory: Path, members: Sequence[specs.MemberSpec] = (), *, extends: bool = True
) -> AsyncGenerator[replica.Replica]:
    """Run a replica with its views in a directory, and with simulated members if any are given.

    ``extends``: whether it assigns sequence numbers to records that have none.
    """
    at = address.parse(where)
    await topics.prepare(at)
    await asyncio.to_thread(private_files.create_directory, directory)
    log = numbered_log.KafkaLog(at, extends=extends, directory=directory)
    started = replica.Replica(log, directory, members, where)
    started.collectors.append(SequenceMetrics(log.sequence_counts))
    try:
        await log.open()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(log.run)
            tasks.start_soon(replica.run_part, "views", started.views.run())
            await started.views.wait_folded(0)
            if members:
                tasks.start_soon(replica.run_part, "members", started.members.run())
                await started.wait_ready()
            yield started
            tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await started.views.close()
            await log.aclose()


class SequenceMetrics(Collector):
    """Prometheus metrics of a replica's log: the sequence, and this replica's appends to it."""

    def __init__(self, collect: Callable[[], sequence.Counts]) -> None:
        self._collect = collect

    def collect(self) -> Iterable[Metric]:
        counts = self._collect()
        yield CounterMetricFamily(
            "reballast_sequence_numbers", "Numbers that the sequence has assigned.", value=counts.numbers
        )
        yield CounterMetricFamily(
            "reballast_sequence_extents",
            "Extents in the sequence: ranges of offsets of a partition.",
            value=counts.extents,
        )
        yield GaugeMetricFamily(
            "reballast_sequence_unnumbered_records",
            "Offsets that this replica knows and that have no number yet.",
            value=counts.unnumbered,
        )
        yield CounterMetricFamily(
            "reballast_sequence_appends",
            "Appends of this replica to the sequence.",
            value=counts.appends,
        )
