"""Benchmark: a tenth of many clusters fail at once; time until the last affected workload is rescheduled.

It runs the whole process: log with full sync, worker, members and views. Workloads are divided into groups.
Each group has ten clusters of its own; the first of them fails (gets a NoExecute taint). The benchmark runs first with
a tenth of the bindings, to show how the time grows. The baseline is the time per binding that the first scheduling of
all bindings took, in the same run.
"""

import asyncio
import gc
import time
from pathlib import Path
from typing import Final

from engine.bench import inputs, processes, runs
from engine.bench.runs import Figures, Progress
from engine.bench.timing import Timing
from engine.process import installation

_PART: Final = 10
"""Divisor of the number of bindings in the first measurement."""


def run(clusters: int, bindings: int, progress: Progress = lambda _: None) -> Figures:
    """Measure with a tenth of the bindings, then with all of them; return the figures.

    Uses temporary directories. Raises ValueError if the number of clusters is not a multiple of ten, or for too few
    bindings.
    """
    if bindings < _PART:
        raise ValueError(f"bindings: a tenth of {bindings} can't be measured; use {_PART} or more")
    if clusters % inputs.GROUP:
        raise ValueError(f"clusters: {clusters} can't be grouped by {inputs.GROUP}; use a multiple of it")
    figures: Figures = {"clusters": clusters, "clusters_failed": clusters // inputs.GROUP}
    for count in (bindings // _PART, bindings):
        with runs.directory() as directory:
            figures |= asyncio.run(_measured(clusters, count, directory, progress))
    return figures


async def _measured(clusters: int, bindings: int, directory: Path, progress: Progress) -> Figures:
    gc.collect()
    before_mb = processes.resident_mb()
    groups = clusters // inputs.GROUP
    members = inputs.members(clusters)
    names = [member.name for member in members]
    async with installation.opened(directory / "run", members) as running:
        timing = Timing(running)
        progress(f"{clusters} clusters, {bindings} Deployments")
        await running.log.append([inputs.policy(names[group::groups], group) for group in range(groups)])
        await running.await_idle()
        records = [inputs.deployment(index, group=index % groups) for index in range(bindings)]
        applied_s = await timing.timed(bindings, lambda: inputs.append(running.log, records))
        await running.await_idle()
        progress(f"{groups} clusters fail")
        decided, number = timing.count(), running.log.last_number()
        start = time.perf_counter()
        await running.log.append([inputs.taint(name) for name in names[:groups]])
        await running.await_idle()
        took_s = time.perf_counter() - start
        decided = timing.count() - decided
        return {
            f"applied_{bindings}_per_s": round(bindings / applied_s, 1),
            f"moved_{bindings}": decided,
            f"moved_{bindings}_s": round(took_s, 2),
            f"moved_{bindings}_per_s": round(decided / took_s, 1),
            f"records_{bindings}": running.log.last_number() - number,
            f"memory_{bindings}_mb": round(processes.resident_mb() - before_mb, 1),
            f"ratio_{bindings}": round((took_s / max(decided, 1)) / (applied_s / bindings), 2),
        }
