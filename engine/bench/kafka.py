"""What workers make of Kafka: inputs a second from their append to their last decision, and how long one takes.

Real processes on the brokers that the address names. The baseline is a bare loop of the same client library in the same
run: it consumes the same inputs and produces, in transactions, as many records of the same size as the worker did,
without looking into any of them.
"""

import asyncio
import os
import secrets
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

from engine.bench import inputs, processes
from engine.log.kafka import address, following
from engine.log.kafka import topics as preparing
from events import codec, decisions, topics

PACED: Final = 300
_PACE_S: Final = 0.01
_BATCH: Final = 500
_READ: Final = 2_000
_SECONDS_MAX: Final = 600
_DECIDED: Final = codec.catalogue.BY_STRUCT[decisions.ScheduleDecided].type
_STEP: Final = codec.catalogue.BY_STRUCT[decisions.StepTaken].type
_OUTPUTS: Final = (topics.DECISIONS, topics.WORKS)

Progress = Callable[[str], None]


def run(where: str, bindings: int, progress: Progress = lambda _: None) -> dict[str, object]:
    """One worker, then two, then the bare loop, each on topics of its own; raises LogError where no broker answers."""
    found: dict[str, object] = {"bindings": bindings}
    sizes = _Sizes()
    for workers in (1, 2):
        progress(f"{workers} worker{'s' if workers > 1 else ''}")
        measured = asyncio.run(_measure(_fresh(where), workers, bindings, sizes))
        found |= {f"workers_{workers}_{name}": value for name, value in measured.items()}
    progress("the bare loop, as baseline")
    found["baseline"] = "a bare consume-transform-produce loop of the same records, in transactions"
    found |= asyncio.run(_bare(_fresh(where), bindings, sizes))
    found["ratio"] = round(
        float(str(found["workers_1_inputs_per_s"])) / float(str(found["baseline_per_s"])), 2
    )
    return found


class _Sizes:
    """How many records follow from an input, and how large they are."""

    def __init__(self) -> None:
        self.per_input = 0
        self.bytes = 0


class _Watch:
    """Counts what stands behind the inputs, as any consumer sees it."""

    def __init__(self, log: following.FollowedLog) -> None:
        self._log = log
        self._read: dict[tuple[str, int], int] = {}
        self.decided = 0
        self.records = 0
        self.bytes = 0
        self.owned: set[int] = set()
        self.seen_s: dict[str, float] = {}

    async def until(self, is_enough: Callable[[], bool]) -> None:
        """Counts until that is enough."""
        async with asyncio.timeout(_SECONDS_MAX):
            while True:
                moves = self._log.moves()
                await self._count()
                if is_enough():
                    return
                await self._log.wait(moves)

    async def _count(self) -> None:
        for slot, end in list(self._log.ends().items()):
            while slot[0] in _OUTPUTS and self._read.get(slot, 0) < end:
                for record in await self._log.read(*slot, self._read.get(slot, 0), _READ):
                    self._read[slot] = record.offset + 1
                    self.records += 1
                    self.bytes += len(record.value)
                    kind = record.headers.get("ce_type")
                    if kind == _STEP:
                        self.owned.add(record.partition)
                    if kind == _DECIDED:
                        self.decided += 1
                        self.seen_s.setdefault(record.headers.get("ce_subject", ""), time.perf_counter())


async def _measure(where: str, workers: int, bindings: int, sizes: _Sizes) -> dict[str, object]:
    async with _watching(where) as (log, watch), _working(where, workers) as running:
        await log.append([*inputs.joined(), inputs.policy()])
        await watch.until(lambda: len(watch.owned) == topics.SHARDS)
        found = await _paced(log, watch)
        records, size, decided = watch.records, watch.bytes, watch.decided
        used_s = sum(processes.cpu_s(each.pid) for each in running)
        batch = [inputs.deployment(index) for index in range(bindings)]
        start = time.perf_counter()
        for first in range(0, bindings, _BATCH):
            await log.append(batch[first : first + _BATCH])
        await watch.until(lambda: watch.decided >= decided + bindings)
        found["inputs_per_s"] = round(bindings / (time.perf_counter() - start), 1)
        used_s = sum(processes.cpu_s(each.pid) for each in running) - used_s
        found["cpu_us_per_input"] = round(used_s / bindings * 1e6)
        sizes.per_input = max(round((watch.records - records) / bindings), 1)
        sizes.bytes = max((watch.bytes - size) // max(watch.records - records, 1), 1)
        found["memory_mb"] = round(sum(processes.resident_of(process.pid) for process in running), 1)
        decided = watch.decided
        start = time.perf_counter()
        await log.append([inputs.taint("member1")])
        await watch.until(lambda: watch.decided >= decided + bindings + PACED)
        found["taint_s"] = round(time.perf_counter() - start, 3)
        return found


async def _paced(log: following.FollowedLog, watch: _Watch) -> dict[str, object]:
    """How long a decision takes, at a hundred inputs a second."""
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
    took = sorted((watch.seen_s[key] - start) * 1_000 for key, start in began.items())
    return {"p50_ms": round(took[PACED // 2], 1), "p99_ms": round(took[PACED * 99 // 100], 1)}


async def _bare(where: str, bindings: int, sizes: _Sizes) -> dict[str, object]:
    async with _watching(where) as (log, watch):
        batch = [inputs.deployment(index) for index in range(bindings)]
        command = [sys.executable, "-m", "engine.bench.kafka_loop", str(sizes.per_input), str(sizes.bytes)]
        process = subprocess.Popen(command, env=_environment(where))  # noqa: S603, ASYNC220  # our own module
        try:
            await log.append([inputs.policy(), *batch[:_BATCH]])
            await watch.until(lambda: watch.records >= _BATCH * sizes.per_input)
            start, used_s, count = time.perf_counter(), processes.cpu_s(process.pid), bindings - _BATCH
            for first in range(_BATCH, bindings, _BATCH):
                await log.append(batch[first : first + _BATCH])
            await watch.until(lambda: watch.records >= bindings * sizes.per_input)
            took_s, used_s = time.perf_counter() - start, processes.cpu_s(process.pid) - used_s
            return {
                "baseline_per_s": round(count / took_s, 1),
                "baseline_cpu_us_per_input": round(used_s / count * 1e6),
            }
        finally:
            process.kill()
            await asyncio.to_thread(process.wait)


@asynccontextmanager
async def _watching(where: str) -> AsyncGenerator[tuple[following.FollowedLog, _Watch]]:
    at = address.parse(where)
    await preparing.prepare(at)
    log = following.FollowedLog(at)
    await log.open()
    await log.follow([(topic, shard) for topic in _OUTPUTS for shard in range(topics.SHARDS)])
    running = asyncio.create_task(log.run())
    try:
        yield log, _Watch(log)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await log.aclose()


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
    """The same brokers, topics of their own."""
    base, _, query = where.partition("?")
    scheme, _, rest = base.partition("://")
    servers = rest.partition("/")[0]
    return f"{scheme}://{servers}/bench-{secrets.token_hex(4)}" + (f"?{query}" if query else "")
