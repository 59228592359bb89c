"""Benchmark: time from an input until the last decision that follows from it is visible in the views.

It runs the whole process: log with full sync, worker, three members and views. Times include reports of members;
they end when the views have folded the last decision. The baseline is to append the same records to the log
alone.
"""

import asyncio
import gc
from pathlib import Path
from typing import Final

from engine.bench import inputs, processes, runs, timing
from engine.bench.runs import Figures, Progress
from engine.log import reading, sqlite, sqlite_reading
from engine.process import installation
from events import rebalance_decisions, records

SINGLE: Final = 200
REBALANCED: Final = 600
REFERENCE: Final = {
    "applied_per_s": 24,
    "single_p50_ms": 55,
    "single_p99_ms": 100,
    "taint_600_s": 50,
    "rebalance_600_s": 15,
}
"""Figures of Karmada for the same load on the same kind of machine."""


async def measure(bindings: int, directory: Path, progress: Progress) -> Figures:
    """Apply, rebalance and taint ``bindings`` Deployments in one process; return the figures."""
    figures: Figures = {"bindings": bindings, "reference": REFERENCE}
    gc.collect()
    before_mb = processes.resident_mb()
    async with installation.opened(directory / "run", inputs.members()) as running:
        bench = _Bench(running)
        await running.log.append([inputs.policy()])
        await running.settled()
        progress("one Deployment at a time")
        figures |= await bench.single_deployment_latency()
        progress(f"{bindings} Deployments at once")
        applied_s = await bench.apply(bindings)
        figures |= {"apply_s": round(applied_s, 3), "applied_per_s": round(bindings / applied_s, 1)}
        await running.settled()
        figures["memory_mb_per_10k_bindings"] = round(
            (processes.resident_mb() - before_mb) * 10_000 / bindings, 1
        )
        progress(f"a rebalancer of {min(bindings, REBALANCED)} workloads")
        rebalance_s = round(await bench.rebalance(min(bindings, REBALANCED)), 3)
        figures["rebalance_s"] = rebalance_s
        await running.settled()
        progress("a NoExecute taint on member1")
        taint_s = round(await bench.taint(bindings), 3)
        figures["taint_s"] = taint_s
        await running.settled()
    progress("the log alone, as baseline")
    count, baseline_s = await append_alone(directory / "run", directory / "baseline")
    figures["records"] = count
    figures["records_per_binding"] = round(count / bindings, 1)
    total_s = applied_s + taint_s + rebalance_s
    figures["baseline"] = "appending all of these records to the log alone, 500 a commit"
    figures["baseline_s"] = round(baseline_s, 3)
    figures["ratio"] = round(total_s / baseline_s, 2)
    return figures


def run(bindings: int, progress: Progress = lambda _: None) -> Figures:
    """Run the benchmark in a temporary directory; return the figures."""
    with runs.directory() as directory:
        return asyncio.run(measure(bindings, directory, progress))


class _Bench:
    def __init__(self, running: installation.Installation) -> None:
        self._running = running
        self._timing = timing.Timing(running)

    async def single_deployment_latency(self) -> Figures:
        """Latency in an idle process: one Deployment at a time, until its decision is visible."""
        took_s: list[float] = []
        for index in range(SINGLE):
            record = inputs.deployment(-1 - index)
            took_s.append(
                await self._timing.timed(1, lambda record=record: self._running.log.append([record]))
            )
            await self._running.settled()
        return {**runs.delays("single_", took_s)}

    async def apply(self, count: int) -> float:
        # Encode the records beforehand: the producer's cost is not measured.
        records = [inputs.deployment(index) for index in range(count)]
        return await self._timing.timed(count, lambda: inputs.append(self._running.log, records))

    async def taint(self, count: int) -> float:
        # The taint also affects the Deployments of ``single_deployment_latency``, so their decisions are counted too.
        return await self._timing.timed(
            count + SINGLE, lambda: self._running.log.append([inputs.taint("member1")])
        )

    async def rebalance(self, count: int) -> float:
        return await self._timing.timed(
            1,
            lambda: self._running.log.append([inputs.rebalancer(count)]),
            rebalance_decisions.RebalanceFinished,
        )


async def append_alone(recorded: Path, directory: Path) -> tuple[int, float]:
    """Append the records of a log to a new one; return their number, and the seconds that the appends took."""
    source = sqlite_reading.SqliteReader(recorded)
    batch = [
        records.record(record.topic, record.partition, record.key, record.headers, record.value)
        async for record in reading.of_all(source)
    ]
    await source.aclose()
    log = await sqlite.SqliteLog.open(directory)
    took_s = await timing.seconds(lambda: inputs.append(log, batch))
    await log.aclose()
    return len(batch), took_s
