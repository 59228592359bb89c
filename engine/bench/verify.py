"""Benchmark: proof of a log, and of a tenth and a hundredth of it: the cost should be linear in its length.

The log has many small steps: a fixed number of Deployments are edited, ten at a time, or one at a time between the
health reports of all clusters, as in an installation with agents. The state does not grow, so the memory of a proof
should not grow either. The baseline is to read and decode the same records in one process.
"""

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Final, TypeVar

from engine.bench import inputs, processes, runs
from engine.bench.runs import Figures, Progress
from engine.log import sqlite, sqlite_reading
from engine.process import installation, log_locations, proofs
from engine.proof import verification
from engine.proof.rules import UNCHANGED
from engine.reconcilers import worker
from engine.simulation import member_fleet

_DEPLOYMENTS: Final = 1_000
_EDITED: Final = 10
_GRACE_S: Final = 40
_PARTS: Final = (100, 10, 1)
_COUNT_MIN: Final = 2_000

_ResultT = TypeVar("_ResultT")


def run(count: int, parallel: int, reporting: int = 0, progress: Progress = lambda _: None) -> Figures:
    """Record ``count`` records, then prove a hundredth, a tenth and all of them; return the figures.

    ``reporting`` is the number of clusters that report their health before each edit; 0 for none.

    Raises ValueError for too few records.
    """
    if count < _COUNT_MIN:
        raise ValueError(f"records: a hundredth of {count} can't be proved; use {_COUNT_MIN} or more")
    with runs.directory() as directory:
        progress(f"{count:,} records are written")
        asyncio.run(_record(count, directory, reporting))
        figures = asyncio.run(_measured(count, parallel, directory, progress))
        return {"reporting_clusters": reporting, **figures}


async def _record(count: int, directory: Path, reporting: int) -> None:
    """Record a log with a worker and simulated members, without views."""
    log = await sqlite.SqliteLog.open(directory, synchronous="OFF")
    engine = worker.Worker(log, installation.clock_ms)
    specs = inputs.members(reporting) if reporting else inputs.members()
    members = member_fleet.Members(log, installation.clock_ms, specs)
    reports = [spec.name for spec in specs] if reporting else []
    edits = 1 if reporting else _EDITED
    await engine.recover()
    await members.recover()
    await log.append([inputs.policy([spec.name for spec in specs[:2]])])
    edit = 0
    while log.last_number() < count:
        await log.append(
            [inputs.health_report(name, _GRACE_S) for name in reports]
            + [
                inputs.deployment(number % _DEPLOYMENTS, replicas=1 + number // _DEPLOYMENTS % 3)
                for number in range(edit, edit + edits)
            ]
        )
        edit += edits
        await engine.turn()
        await members.turn()
    await log.aclose()


async def _measured(count: int, parallel: int, directory: Path, progress: Progress) -> Figures:
    log_location = log_locations.LogLocation(str(directory))
    figures: Figures = {"records": count, "processes": parallel}
    took_s = 0.0
    for part in _PARTS:
        last = count // part
        progress(f"{last:,} records are proved")
        scope = verification.Scope(last=last)
        async with processes.peak_mb(lambda: processes.children(os.getpid())) as peak:
            took_s, report = await _timed(
                lambda scope=scope: proofs.verify(log_location, scope, processes=parallel)
            )
        figures |= {
            f"verify_{last}_per_s": round(last / took_s),
            f"verify_{last}_ms_per_step": round(took_s * 1_000 / report.steps, 3),
            f"verify_{last}_mb": round(peak[0]),
        }
    progress("the same records are audited, then read and decoded")
    audit_s, _ = await _timed(lambda: proofs.audit(log_location, UNCHANGED, processes=parallel))
    baseline_s, _ = await _timed(lambda: asyncio.run(_decode(directory)))
    return {
        **figures,
        "audit_per_s": round(count / audit_s),
        "baseline": "reading and decoding the same records in one process",
        "baseline_per_s": round(count / baseline_s),
        "ratio_verify": round(took_s / baseline_s, 2),
        "ratio_audit": round(audit_s / baseline_s, 2),
    }


async def _timed(work: Callable[[], _ResultT]) -> tuple[float, _ResultT]:
    """Run work in a thread; return its seconds and its result."""
    start = time.perf_counter()
    result = await asyncio.to_thread(work)
    return time.perf_counter() - start, result


async def _decode(directory: Path) -> None:
    async with aclosing(sqlite_reading.SqliteReader(directory)) as log:
        await runs.decode(log)
