"""Benchmark: replay of a recorded log: recovery of shards, verification of steps, rebuild of views.

The baseline is to read and decode the same records in the same run.
"""

import asyncio
import time
from pathlib import Path

from engine.bench import inputs, runs
from engine.bench.runs import Figures
from engine.bench.timing import Act
from engine.log import port, reading, sqlite_reading
from engine.process import installation
from engine.proof import verification
from engine.reconcilers import replay
from events import codec, topics
from events.validation import manifests
from projections import runner, store

_BATCH = 500


def run(bindings: int) -> Figures:
    """Record the creation of ``bindings`` Deployments, then replay the log; figures are events per second."""
    with runs.directory() as directory:
        asyncio.run(_record(bindings, directory))
        return asyncio.run(_measure(bindings, directory))


async def _record(bindings: int, directory: Path) -> None:
    async with installation.opened(directory, inputs.members(), synchronous="OFF") as running:
        await running.log.append([inputs.policy()])
        for start in range(0, bindings, _BATCH):
            batch = [inputs.deployment(index) for index in range(start, min(start + _BATCH, bindings))]
            await running.log.append(batch)
        await running.settled()


async def _measure(bindings: int, directory: Path) -> Figures:
    log = sqlite_reading.SqliteReader(directory)
    events = log.last_number()
    took = {
        "baseline": await _timed(lambda: _decode(log)),
        "recover": await _timed(lambda: _recover(log)),
        "verify": await _timed(lambda: verification.verify(log)),
        "views": await _timed(lambda: _views(log)),
    }
    await log.aclose()
    result: Figures = {"bindings": bindings, "events": events}
    for name, seconds in took.items():
        result[f"{name}_per_s"] = round(events / seconds)
    for name in ("recover", "verify", "views"):
        result[f"ratio_{name}"] = round(took[name] / took["baseline"], 2)
    result["baseline"] = "reading and decoding the same records"
    return result


async def _timed(work: Act) -> float:
    start = time.perf_counter()
    await work()
    return time.perf_counter() - start


async def _decode(log: port.NumberedLog) -> None:
    async for record in reading.of_all(log):
        codec.decode(record)


async def _recover(log: port.NumberedLog) -> None:
    await replay.rebuild(log, range(topics.SHARDS))


async def _views(log: port.NumberedLog) -> None:
    views = await asyncio.to_thread(store.Store)
    projector = runner.Projector(log, views, manifests.check)
    await projector.fold_to(log.last_number())
    projector.close()
    await asyncio.to_thread(views.close)
