"""Benchmark: time until a plan has predicted the effect of a change, and a drill the effects of failures.

A log of many Deployments is recorded. Changes are planned on it as for real clusters: a policy edit and a taint that
concern ``moved`` Deployments, then the failure of every cluster. The first plan rebuilds the engine from its
snapshot; later plans use the same engine, which reads the records that were added to the log since. The baseline
makes the same edit and taint in the running engine, in the same run.

Latency of decisions: the running engine decides on one Deployment after another, first without plans, then while
plans are made without a pause.
"""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from engine.bench import inputs, processes, runs, timing
from engine.bench.runs import Figures, Progress
from engine.log import sqlite
from engine.plans import questions
from engine.plans.predictions import Prediction
from engine.plans.questions import Failure, Input
from engine.process import installation
from engine.process.log_locations import LogLocation
from engine.process.plans.remote import PlanProcesses
from events.records import Record

_POLL_S: Final = 0.2
_DECIDED: Final = 100


def run(bindings: int, moved: int | None, clusters: int, progress: Progress = lambda _: None) -> Figures:
    """Run the benchmark in a temporary directory; return the figures. Raises ValueError for impossible numbers."""
    moved = max(bindings // 10, 1) if moved is None else moved
    if clusters % inputs.GROUP or clusters == inputs.GROUP:
        raise ValueError(f"clusters: {clusters} can't be grouped by {inputs.GROUP}; use 20, 30, …")
    if moved > bindings:
        raise ValueError(f"moved: {moved} are more than all {bindings} Deployments; use a smaller number")
    with runs.directory() as directory:
        return asyncio.run(_measured(_Scenario(clusters, bindings, moved), directory, progress))


class _Scenario:
    """Clusters in groups of ten; the first two clusters of the first group run the Deployments that are moved."""

    def __init__(self, clusters: int, bindings: int, moved: int) -> None:
        self.members = inputs.members(clusters)
        self.names = [member.name for member in self.members]
        self.bindings, self.moved = bindings, moved
        groups = [self.names[start : start + inputs.GROUP] for start in range(0, clusters, inputs.GROUP)]
        self.first, *self.others = groups

    def policies(self) -> list[Record]:
        others = [inputs.policy(names, group) for group, names in enumerate(self.others, 1)]
        return [inputs.policy(self.first[:2], 0), *others]

    def deployments(self) -> list[Record]:
        return [self.deployment(index) for index in range(self.bindings)]

    def deployment(self, index: int, replicas: int = 3) -> Record:
        group = 0 if index < self.moved else 1 + index % len(self.others)
        return inputs.deployment(index, replicas, group)

    def edit(self) -> Record:
        """The policy of the first group with one more cluster."""
        return inputs.policy(self.first[:3], 0)

    def taint(self) -> Record:
        return inputs.taint(self.first[0])


async def _measured(scenario: _Scenario, directory: Path, progress: Progress) -> Figures:
    progress(f"{scenario.bindings} Deployments in {len(scenario.names)} clusters are recorded")
    await _record(scenario, directory)
    async with contextlib.aclosing(PlanProcesses(LogLocation(str(directory)), (), list)) as planner:
        plans = _Plans(planner)
        async with processes.peak_mb(lambda: _pids(planner)) as peak:
            progress("the first plan")
            first_s, _ = await plans.timed(_change(scenario.edit()))
            progress("a policy edit and a taint")
            edit_s, _ = await plans.timed(_change(scenario.edit()))
            taint_s, tainted = await plans.timed(_change(scenario.taint()))
            async with contextlib.aclosing(await sqlite.SqliteLog.open(directory, synchronous="OFF")) as log:
                await log.append([scenario.deployment(0, replicas=2)])
            grown_s, _ = await plans.timed(_change(scenario.edit()))
        progress("the failure of each cluster")
        drill_s = await plans.drill_seconds(scenario.names, tainted.number + 1)
    progress("decisions without and during plans, then the same edit and taint, really made")
    async with installation.opened(directory, scenario.members) as running:
        while not running.members.names():  # noqa: ASYNC110  # nothing signals that the members are rebuilt
            await asyncio.sleep(_POLL_S)
        await running.await_idle()
        decided = await _decided(running, scenario, directory)
        live = await _measure_changes(running, scenario)
    return {
        "bindings": scenario.bindings,
        "clusters": len(scenario.names),
        "moved": scenario.moved,
        "peak_mb": round(peak[0]),
        "first_s": round(first_s, 2),
        "policy_s": round(edit_s, 2),
        "taint_s": round(taint_s, 2),
        "grown_s": round(grown_s, 2),
        "taint_moved": len(tainted.moved),
        f"drill_{len(scenario.names)}_s": round(drill_s, 2),
        "baseline": "making the same policy edit and taint",
        "baseline_policy_s": round(live[0], 2),
        "baseline_taint_s": round(live[1], 2),
        "ratio_policy": round(edit_s / live[0], 2),
        "ratio_taint": round(taint_s / live[1], 2),
        **decided,
    }


async def _record(scenario: _Scenario, directory: Path) -> None:
    async with installation.opened(directory, scenario.members, synchronous="OFF") as running:
        await running.log.append(scenario.policies())
        await inputs.append(running.log, scenario.deployments())
        await running.await_idle()


async def _measure_changes(running: installation.Installation, scenario: _Scenario) -> list[float]:
    """Make the edit, then the taint; return for each the seconds until all its consequences are decided."""

    async def change(record: Record) -> None:
        await running.log.append([record])
        await running.await_idle()

    return [
        await timing.seconds(lambda record=record: change(record))
        for record in (scenario.edit(), scenario.taint())
    ]


async def _decided(running: installation.Installation, scenario: _Scenario, directory: Path) -> Figures:
    """Measure how long the running engine takes to decide on an edit, without plans and while plans are made."""
    alone = await _latencies(running, scenario, 4)
    async with contextlib.aclosing(PlanProcesses(LogLocation(str(directory)), (), list)) as planner:
        planning_on = asyncio.create_task(_plan_on(_Plans(planner), scenario))
        during = await _latencies(running, scenario, 4 + _DECIDED)
        planning_on.cancel()
        (plans,) = await asyncio.gather(planning_on, return_exceptions=True)
    if not isinstance(plans, asyncio.CancelledError):
        raise plans
    figures = runs.delays("decided_", alone) | runs.delays("decided_during_plan_", during)
    delay_ms = figures["decided_during_plan_p50_ms"] - figures["decided_p50_ms"]
    return {**figures, "ratio_delay": round(delay_ms / figures["decided_p99_ms"], 2)}


async def _plan_on(plans: "_Plans", scenario: _Scenario) -> BaseException:
    """Plan the taint repeatedly until cancelled."""
    while True:
        await plans.timed(_change(scenario.taint()))


async def _latencies(running: installation.Installation, scenario: _Scenario, replicas: int) -> list[float]:
    """Edit Deployments one at a time; return the seconds until each decision is visible."""
    took: list[float] = []
    until = timing.Timing(running)
    for index in range(_DECIDED):
        record = scenario.deployment(index % scenario.bindings, replicas + index // scenario.bindings)
        took.append(await until.timed(1, lambda record=record: running.log.append([record])))
        await running.await_idle()
    return took


def _change(record: Record) -> questions.Question:
    return questions.Question(began_ms=installation.clock_ms(), inputs=(Input(record=record),))


class _Plans:
    def __init__(self, planner: PlanProcesses) -> None:
        self._planner = planner

    async def timed(self, question: questions.Question) -> tuple[float, Prediction]:
        start = time.perf_counter()
        answer = await self._planner.predict(question, lambda _: None)
        return time.perf_counter() - start, msgspec.json.decode(answer, type=Prediction)

    async def drill_seconds(self, names: Sequence[str], number: int) -> float:
        """Predict the failure of each cluster, ``AT_ONCE_MAX`` at a time as ``drill`` does; return the seconds."""
        limit = asyncio.Semaphore(questions.AT_ONCE_MAX)

        async def fail(name: str) -> None:
            question = questions.Question(
                began_ms=installation.clock_ms(), failures=(Failure(member=name),), number=number
            )
            async with limit:
                await self._planner.predict(question, lambda _: None)

        return await timing.seconds(lambda: asyncio.gather(*map(fail, names)))


def _pids(planner: PlanProcesses) -> list[int]:
    """Return the process ids of the processes that make plans."""
    keeper = planner.keeper
    return [] if keeper is None else processes.tree(keeper.process.pid)
