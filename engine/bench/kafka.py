"""Benchmark: workers on Kafka; inputs per second from append to last decision, and latency of a decision.

Workers are real processes on the brokers that the address names. The baseline is a plain loop with the same
client library and event loop, in the same run. It consumes the same inputs and produces, in transactions and without
decoding, as many records as the worker did; these are copies of the worker's output.
"""

# aiokafka has annotations but no py.typed marker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

import asyncio
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

from engine.bench import inputs, kafka_loop, processes, runs, timing
from engine.bench.runs import Figures, Progress
from engine.log.kafka import address, appends, clients, partition_followers
from engine.log.kafka import topics as preparing
from engine.reconcilers import replay
from events import codec, decisions, topics
from events.records import StoredRecord

PACED: Final = 300
_PACE_S: Final = 0.01
_SAMPLES: Final = 3_000
_POLL_MS: Final = 200
_DECIDED: Final = decisions.ScheduleDecided.event_type.type.encode()
_STEP: Final = codec.catalogue.STEP_TAKEN.encode()
_OUTPUTS: Final = (topics.DECISIONS, topics.WORKS)


def run(where: str, bindings: int, progress: Progress = lambda _: None) -> Figures:
    """Measure one worker, two workers, and the plain loop, each on its own topics.

    Raises LogError without brokers, ValueError for too few bindings.
    """
    if bindings <= inputs.BATCH:
        reason = f"the first {inputs.BATCH} of the baseline are its warm-up"
        raise ValueError(f"bindings: {bindings} are too few, since {reason}; use more")
    figures: Figures = {"bindings": bindings}
    outputs = _Outputs()
    one_per_s = 0.0
    for workers in (1, 2):
        progress(f"{workers} worker{'s' if workers > 1 else ''}")
        measured = asyncio.run(_measure(_fresh(where), workers, bindings, outputs))
        one_per_s = one_per_s or measured["inputs_per_s"]
        figures |= {f"workers_{workers}_{name}": value for name, value in measured.items()}
    progress("the bare loop, as baseline")
    figures["baseline"] = "a bare consume-transform-produce loop of the same records, in transactions"
    bare = asyncio.run(_bare(_fresh(where), bindings, outputs))
    return figures | bare | {"ratio": round(one_per_s / bare["baseline_per_s"], 2)}


class _Outputs:
    """Number of output records per input, and samples of output records, from the last measurement of workers."""

    def __init__(self) -> None:
        self.per_input = 0
        self.some: list[kafka_loop.Sample] = []


class _Watch:
    """Consumer that counts output records; it decodes only their headers, to take little processor time."""

    def __init__(self, at: address.Address) -> None:
        self._slots = {
            clients.partition(at, (topic, shard)): topic
            for topic in _OUTPUTS
            for shard in range(topics.SHARDS)
        }
        self._consumer = clients.consumer(at)
        self.decided = 0
        self.records = 0
        self.some: list[kafka_loop.Sample] = []
        self.owned: set[int] = set()
        self.seen_s: dict[str, float] = {}

    async def open(self) -> None:
        """Start the consumer at the first records."""
        await self._consumer.start()
        self._consumer.assign(list(self._slots))
        for slot in self._slots:
            self._consumer.seek(slot, 0)

    async def close(self) -> None:
        await self._consumer.stop()

    async def until(self, is_enough: Callable[[], bool]) -> None:
        """Consume until the condition holds."""
        async with asyncio.timeout(runs.WAIT_S):
            while not is_enough():
                for slot, batch in (await self._consumer.getmany(timeout_ms=_POLL_MS)).items():
                    self.records += len(batch)
                    for record in batch:
                        if len(self.some) < _SAMPLES:
                            sample = (record.key or b"", record.value or b"", list(record.headers))
                            self.some.append(sample)
                        if self._slots[slot] == topics.DECISIONS and record.headers:
                            self._take(slot.partition, dict(record.headers))

    def _take(self, shard: int, headers: Mapping[str, bytes]) -> None:
        kind = headers["ce_type"]
        if kind == _STEP:
            self.owned.add(shard)
        elif kind == _DECIDED:
            self.decided += 1
            self.seen_s.setdefault(headers.get("ce_subject", b"").decode(), time.perf_counter())


async def _measure(where: str, workers: int, bindings: int, outputs: _Outputs) -> dict[str, float]:
    async with _watching(where) as (log, watch), _working(where, workers) as running:
        await log.append([*inputs.joined(), inputs.policy()])
        await watch.until(lambda: len(watch.owned) == topics.SHARDS)
        figures = await _paced(log, watch)
        records, decided = watch.records, watch.decided
        watch.some.clear()
        pids = [process.pid for process in running]
        used_s = processes.cpu_s(*pids)
        batch = [inputs.deployment(index) for index in range(bindings)]
        start = time.perf_counter()
        await inputs.append(log, batch)
        await watch.until(lambda: watch.decided >= decided + bindings)
        figures["inputs_per_s"] = round(bindings / (time.perf_counter() - start), 1)
        used_s = processes.cpu_s(*pids) - used_s
        figures["cpu_us_per_input"] = round(used_s / bindings * 1e6)
        outputs.per_input = max(round((watch.records - records) / bindings), 1)
        outputs.some = list(watch.some)
        figures["memory_mb"] = round(processes.resident_of(*pids), 1)
        decided = watch.decided
        start = time.perf_counter()
        await log.append([inputs.taint("member1")])
        await watch.until(lambda: watch.decided >= decided + bindings + PACED)
        figures["taint_s"] = round(time.perf_counter() - start, 3)
    return figures | await _replayed(where)


class _CountingLog(partition_followers.FollowedLog):
    """Counts the records that are read."""

    count = 0

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        batch = await super().read(topic, partition, start, limit)
        self.count += len(batch)
        return batch


async def _replayed(where: str) -> dict[str, float]:
    """Recover all shards from the first record, without snapshots; return the number of records, and the rate."""
    at = address.parse(where)
    log = _CountingLog(at)
    await log.open()
    running = asyncio.create_task(log.run())
    facts = [(topic, 0) for topic in topics.FACT_TOPICS]
    own = [(topic, shard) for topic in topics.OWN_TOPICS for shard in range(topics.SHARDS)]
    await log.follow([*facts, *own])
    await log.unfollowed_ends([(topics.DECISIONS, shard) for shard in range(topics.SHARDS)])
    took_s = await timing.seconds(lambda: replay.rebuild(log, range(topics.SHARDS)))
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await log.aclose()
    return {"replayed_events": log.count, "replayed_per_s": round(log.count / took_s)}


async def _paced(log: appends.Appender, watch: _Watch) -> dict[str, float]:
    """Latency of decisions at a hundred inputs per second."""
    began: dict[str, float] = {}

    async def feed() -> None:
        for index in range(PACED):
            record = inputs.deployment(-1 - index)
            began[record.key] = time.perf_counter()
            await log.append([record])
            await asyncio.sleep(max(_PACE_S - (time.perf_counter() - began[record.key]), 0))

    feeding = asyncio.create_task(feed())
    await watch.until(lambda: watch.decided >= PACED)
    await feeding
    return runs.delays("", (watch.seen_s[key] - start for key, start in began.items()))


async def _bare(where: str, bindings: int, outputs: _Outputs) -> dict[str, float]:
    async with _watching(where) as (log, watch), _samples(outputs.some) as path:
        batch = [inputs.deployment(index) for index in range(bindings)]
        command = [sys.executable, "-m", "engine.bench.kafka_loop", str(outputs.per_input), path]
        process = subprocess.Popen(command, env=_environment(where))  # noqa: S603, ASYNC220  # our own module
        try:
            await log.append([inputs.policy(), *batch[: inputs.BATCH]])
            await watch.until(lambda: watch.records >= inputs.BATCH * outputs.per_input)
            start, used_s, count = time.perf_counter(), processes.cpu_s(process.pid), bindings - inputs.BATCH
            await inputs.append(log, batch[inputs.BATCH :])
            await watch.until(lambda: watch.records >= bindings * outputs.per_input)
            took_s, used_s = time.perf_counter() - start, processes.cpu_s(process.pid) - used_s
            return {
                "baseline_per_s": round(count / took_s, 1),
                "baseline_cpu_us_per_input": round(used_s / count * 1e6),
            }
        finally:
            process.kill()
            await asyncio.to_thread(process.wait)


@asynccontextmanager
async def _samples(samples: Sequence[kafka_loop.Sample]) -> AsyncGenerator[str]:
    """A temporary file of sample records for the plain loop."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(kafka_loop.encode(samples))
        file.flush()
        yield file.name


@asynccontextmanager
async def _watching(where: str) -> AsyncGenerator[tuple[appends.Appender, _Watch]]:
    at = address.parse(where)
    await preparing.prepare(at)
    appender, watch = appends.Appender(at), _Watch(at)
    await appender.open()
    await watch.open()
    try:
        yield appender, watch
    finally:
        await watch.close()
        await appender.close()


@asynccontextmanager
async def _working(where: str, count: int) -> AsyncGenerator[Sequence[subprocess.Popen[bytes]]]:
    command = [sys.executable, "-m", "engine.cli", "worker"]
    running = [
        subprocess.Popen(  # noqa: S603, ASYNC220  # our own command
            command, env=_environment(where), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for _ in range(count)
    ]
    try:
        yield running
    finally:
        for process in running:
            process.kill()
            await asyncio.to_thread(process.wait)


def _environment(where: str) -> dict[str, str]:
    return os.environ | {"REBALLAST_LOG": where}


def _fresh(where: str) -> str:
    """Return the address of the same brokers with a new topic prefix."""
    base, _, query = where.partition("?")
    scheme, _, rest = base.partition("://")
    servers = rest.partition("/")[0]
    return f"{scheme}://{servers}/bench-{secrets.token_hex(4)}" + (f"?{query}" if query else "")
