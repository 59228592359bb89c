"""Verify or audit a log in several processes; each of them handles some of the shards."""

import asyncio
import multiprocessing
import queue
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.queues import Queue
from typing import Final, TypeAlias, TypeVar

from msgspec import Struct, structs

from engine.log import port
from engine.process import interpreter_settings, log_locations
from engine.proof import audit as audits
from engine.proof import verification
from engine.proof.rules import UNCHANGED, Rules
from engine.reconcilers import snapshots
from events import topics

_POLL_S: Final = 0.1
_REPORT_S: Final = 0.05


class Progress(Struct, frozen=True):
    """Progress of a proof: ``records`` is the last sequence number that all processes have read.

    ``until`` is the last number to read. ``steps`` is the total number of steps that the processes have read.
    """

    records: int
    until: int
    steps: int


Show: TypeAlias = Callable[[Progress], None]
_Result = TypeVar("_Result")
_Reading: TypeAlias = tuple[int, int, int]
"""Index of a process, sequence number of the last record that it has read, and count of its steps so far."""


class _Part(Struct, frozen=True):
    """The part of a log that one process verifies or audits, and how."""

    index: int
    location: log_locations.LogLocation
    scope: verification.Scope
    since_snapshot: bool = False
    rules: Rules = UNCHANGED


class EmptyScopeError(ValueError):
    """The log has no records in the part to prove."""


def verify(
    location: log_locations.LogLocation,
    scope: verification.Scope = verification.EVERYTHING,
    *,
    since_snapshot: bool = False,
    processes: int,
    show: Show | None = None,
) -> verification.Report:
    """Verify a part of a log, which may be written meanwhile.

    With ``since_snapshot`` verify only the steps after the newest snapshot, which is trusted. Raises LogError,
    EmptyScopeError.
    """
    whole = _Part(0, location, scope, since_snapshot)
    return verification.merged(_in_processes(_verified, whole, processes, show))


def audit(
    location: log_locations.LogLocation,
    changed: Rules,
    scope: verification.Scope = verification.EVERYTHING,
    *,
    processes: int,
    show: Show | None = None,
) -> audits.Audit:
    """Decide the steps of a log again with changed rules or the rules of this release, and compare.

    Raises LogError, EmptyScopeError.
    """
    merged = audits.merged(_in_processes(_audited, _Part(0, location, scope, rules=changed), processes, show))
    log_locations.run_on(location, lambda log: audits.explain(log, merged, changed))
    return merged


def _in_processes(
    work: Callable[[_Part], Coroutine[object, object, _Result]],
    whole: _Part,
    processes: int,
    show: Show | None,
) -> list[_Result]:
    """Divide the shards among processes that run ``work``; show their progress and return the result of each."""
    last = log_locations.run_on(whole.location, lambda log: log.newest())
    until = last if whole.scope.last is None else min(whole.scope.last, last)
    if whole.scope.first > max(until, 1):
        part = f"from {whole.scope.first}" if until == last else f"from {whole.scope.first} to {until}"
        raise EmptyScopeError(f"the log has no numbers {part}; it ends at number {last}")
    count = max(1, min(processes, topics.SHARDS))
    shares = [tuple(range(index, topics.SHARDS, count)) for index in range(count)]
    parts = [
        structs.replace(whole, index=index, scope=structs.replace(whole.scope, shards=shards, last=until))
        for index, shards in enumerate(shares)
    ]
    context = multiprocessing.get_context("spawn")
    readings: Queue[_Reading] = context.Queue()
    reached = {part.index: (0, 0) for part in parts}
    with ProcessPoolExecutor(len(parts), context, initializer=_begin, initargs=(readings,)) as pool:
        futures = [pool.submit(_run, work, part) for part in parts]
        try:
            while not all(future.done() for future in futures):
                _collect(readings, reached)
                if show is not None:
                    numbers, steps = zip(*reached.values(), strict=True)
                    show(Progress(min(numbers), until, sum(steps)))
            return [_result(future) for future in futures]
        finally:
            for future in futures:
                future.cancel()


def _result(future: Future[_Result]) -> _Result:
    try:
        return future.result()
    except BrokenProcessPool:
        raise port.LogError(
            "a process ended early, perhaps for lack of memory; use fewer --processes"
        ) from None


def _collect(readings: "Queue[_Reading]", reached: dict[int, tuple[int, int]]) -> None:
    """Update ``reached`` with the progress that processes have reported; wait at most ``_POLL_S`` for a report."""
    try:
        index, number, steps = readings.get(timeout=_POLL_S)
        while True:
            reached[index] = (number, steps)
            index, number, steps = readings.get_nowait()
    except queue.Empty:
        return


_readings: "Queue[_Reading] | None" = None
"""Queue to which this process sends its progress; None in the parent process."""


def _begin(readings: "Queue[_Reading]") -> None:
    global _readings  # noqa: PLW0603  # a queue can be given to a process only when it starts
    _readings = readings
    interpreter_settings.tune()


def _run(work: Callable[[_Part], Coroutine[object, object, _Result]], part: _Part) -> _Result:
    return asyncio.run(work(part))


async def _audited(part: _Part) -> audits.Audit:
    scope = part.scope
    async with log_locations.opened(part.location) as log:
        return await audits.audit(
            log, scope.shards, part.rules, first=scope.first, last=scope.last, progress=_progress(part)
        )


def _progress(part: _Part) -> verification.Progress:
    def report(number: int, steps: int) -> None:
        nonlocal last_s
        if _readings is not None and time.monotonic() - last_s > _REPORT_S:
            last_s = time.monotonic()
            _readings.put((part.index, number, steps))

    last_s = 0.0
    return report


async def _verified(part: _Part) -> verification.Report:
    progress = _progress(part)
    async with log_locations.opened(part.location) as log:
        if not part.since_snapshot:
            return await verification.verify(log, part.scope, progress=progress)
        reports: list[verification.Report] = []
        async with log_locations.snapshots(part.location) as storage:
            for store, shards in storage.of(part.scope.shards):
                snapshot = await snapshots.newest(log, store, shards, discards=False)
                if snapshot is None:
                    raise port.LogError(
                        "the log has no snapshot of this release; verify it without --since-snapshot"
                    )
                scope = structs.replace(part.scope, shards=tuple(shards))
                reports.append(await verification.verify(log, scope, snapshot=snapshot, progress=progress))
        return verification.merged(reports)
