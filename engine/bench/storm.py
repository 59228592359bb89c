"""Benchmark: time from an input until the last decision that follows from it is visible in the views.

It runs the whole process: log with full sync, worker, three members and views. Times include reports of members;
they end when the views have folded the last decision. The baseline is to append the same records to the log
alone.
"""

import asyncio
import gc
from contextlib import aclosing
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
        timed = timing.Timing(running).timed
        await running.log.append([inputs.policy()])
        await running.await_idle()
        progress("one Deployment at a time")
        figures |= runs.delays("single_", await _single(running))
        progress(f"{bindings} Deployments at once")
        # Encode the records beforehand: the producer's cost is not measured.
        deployments = [inputs.deployment(index) for index in range(bindings)]
        applied_s = await timed(bindings, lambda: inputs.append(running.log, deployments))
        figures |= {"apply_s": round(applied_s, 3), "applied_per_s": round(bindings / applied_s, 1)}
        await running.await_idle()
        figures["memory_mb_per_10k_bindings"] = round(
            (processes.resident_mb() - before_mb) * 10_000 / bindings, 1
        )
        rebalanced = min(bindings, REBALANCED)
        progress(f"a rebalancer of {rebalanced} workloads")
        rebalance_s = await timed(
            1,
            lambda: running.log.append([inputs.rebalancer(rebalanced)]),
            rebalance_decisions.RebalanceFinished,
        )
        figures["rebalance_s"] = round(rebalance_s, 3)
        await running.await_idle()
        progress("a NoExecute taint on member1")
        # The taint also affects the Deployments of ``_single``, so their decisions are counted too.
        taint_s = await timed(bindings + SINGLE, lambda: running.log.append([inputs.taint("member1")]))
        figures["taint_s"] = round(taint_s, 3)
        await running.await_idle()
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


async def _single(running: installation.Installation) -> list[float]:
    """Latencies in an idle process: one Deployment at a time, until its decision is visible."""
    timed = timing.Timing(running).timed
    took_s: list[float] = []
    for index in range(SINGLE):
        record = inputs.deployment(-1 - index)
        took_s.append(await timed(1, lambda record=record: running.log.append([record])))
        await running.await_idle()
    return took_s


async def append_alone(recorded: Path, directory: Path) -> tuple[int, float]:
    """Append the records of a log to a new one; return their number, and the seconds that the appends took."""
    source = sqlite_reading.SqliteReader(recorded)
    batch = [
        records.record(record.topic, record.partition, record.key, record.headers, record.value)
        async for record in reading.of_all(source)
    ]
    await source.aclose()
    async with aclosing(await sqlite.SqliteLog.open(directory)) as log:
        return len(batch), await timing.seconds(lambda: inputs.append(log, batch))
