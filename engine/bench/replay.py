"""Benchmark: replay of a recorded log: recovery of shards, verification of steps, rebuild of views.

The baseline is to read and decode the same records in the same run.
"""

import asyncio
from pathlib import Path

from engine.bench import inputs, runs, timing
from engine.bench.runs import Figures
from engine.log import port, sqlite_reading
from engine.process import installation
from engine.proof import verification
from engine.reconcilers import replay
from events import topics
from events.validation import manifests
from projections import runner, store


def run(bindings: int) -> Figures:
    """Record the creation of ``bindings`` Deployments, then replay the log; figures are events per second."""
    with runs.directory() as directory:
        asyncio.run(_record(bindings, directory))
        return asyncio.run(_measure(bindings, directory))


async def _record(bindings: int, directory: Path) -> None:
    async with installation.opened(directory, inputs.members(), synchronous="OFF") as running:
        await running.log.append([inputs.policy()])
        await inputs.append(running.log, [inputs.deployment(index) for index in range(bindings)])
        await running.await_idle()


async def _measure(bindings: int, directory: Path) -> Figures:
    log = sqlite_reading.SqliteReader(directory)
    events = log.last_number()
    took = {
        "baseline": await timing.seconds(lambda: runs.decode(log)),
        "recover": await timing.seconds(lambda: replay.rebuild(log, range(topics.SHARDS))),
        "verify": await timing.seconds(lambda: verification.verify(log)),
        "views": await timing.seconds(lambda: _views(log)),
    }
    await log.aclose()
    result: Figures = {"bindings": bindings, "events": events}
    for name, seconds in took.items():
        result[f"{name}_per_s"] = round(events / seconds)
    for name in ("recover", "verify", "views"):
        result[f"ratio_{name}"] = round(took[name] / took["baseline"], 2)
    result["baseline"] = "reading and decoding the same records"
    return result


async def _views(log: port.NumberedLog) -> None:
    views = await asyncio.to_thread(store.Store)
    projector = runner.Projector(log, views, manifests.check)
    await projector.fold_to(log.last_number())
    projector.close()
    await asyncio.to_thread(views.close)
