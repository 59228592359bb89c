"""Benchmark: how the cost of each kind of input grows from size N to 10 N and 100 N.

Two costs are measured: processor time, and a reproducible count of operations. The count adds the executed lines of
Python and one operation for every 64 bytes of decision records. An exponent describes the growth from 10 N to 100 N:
1 for linear cost, 2 for quadratic cost.
"""

import asyncio
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import ClassVar, Final, Self

from msgspec import Struct

import engine
from engine import loop_share
from engine.bench import growth_inputs as inputs
from engine.bench.runs import Progress
from engine.bench.timing import Act
from engine.log import local, reading
from engine.proof import verification
from engine.reconcilers import replay, worker
from events import codec, keys, kube_objects, shapes, times, topics
from events.records import Envelope, Record, StoredRecord
from events.validation import manifests, verdicts
from projections.fold import Fold
from projections.store import Store

STEPS: Final = (1, 10, 100)
EXPONENT_MAX: Final = 1.1
PARTS: Final = ("decide", "recover", "verify", "views")

HEADINGS: Final = (
    "INPUT",
    "PART",
    "N",
    "10 N",
    "100 N",
    "EXPONENT",
    "N (s)",
    "10 N (s)",
    "100 N (s)",
    "EXPONENT",
)

_START_MS: Final = times.from_text("2026-01-01T00:00:00Z")
_UNIT_BYTES: Final = 64
_VIEWED: Final = 512
"""Number of records that the views fold per transaction."""

_ROOT: Final = str(Path(engine.__file__).parents[1])


class Cost(Struct, frozen=True):
    """Cost of one of ``PARTS``: operations, and seconds of processor time; 0 if not measured."""

    operations: int = 0
    seconds: float = 0.0


class Row(Struct, frozen=True, rename="camel"):
    """Costs of one of ``PARTS`` for one kind of input, at sizes N, 10 N and 100 N."""

    input: str
    part: str
    operations: list[int]
    exponent: float
    seconds: list[float]
    time_exponent: float


class Growth(Struct, frozen=True):
    """Costs of all ``PARTS`` for each kind of input, where N is ``size``."""

    size: int
    growth: list[Row]


class _Counter:
    """Context manager that measures processor time and, with ``is_on``, counts executed lines of this project."""

    _active: "ClassVar[_Counter | None]" = None

    def __init__(self, *, is_on: bool) -> None:
        self.operations = 0
        self._is_on = is_on
        self._began_s = 0.0
        self.seconds = 0.0

    def __enter__(self) -> Self:
        self._began_s = time.process_time()
        if self._is_on:
            sys.settrace(self.enter)
            _Counter._active = self
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_on:
            sys.settrace(None)
            _Counter._active = None
        self.seconds = time.process_time() - self._began_s

    def enter(self, frame: FrameType, _event: str, _argument: object) -> "_Trace | None":
        name = frame.f_code.co_filename
        # How often ``loop_share`` yields depends on time, so the count of its lines is not reproducible.
        return self._line if name.startswith(_ROOT) and name != loop_share.__file__ else None

    def _line(self, _frame: FrameType, _event: str, _argument: object) -> "_Trace":
        self.operations += 1
        return self._line

    @staticmethod
    def enter_in_thread(frame: FrameType, event: str, argument: object) -> "_Trace | None":
        """Trace function for new threads, since large records are processed in threads."""
        active = _Counter._active
        return None if active is None else active.enter(frame, event, argument)

    def cost(self, written: int) -> Cost:
        """Seconds without ``is_on``, else operations, including those for ``written`` bytes of decision records."""
        if not self._is_on:
            return Cost(seconds=self.seconds)
        return Cost(self.operations + written // _UNIT_BYTES)


_Trace = Callable[[FrameType, str, object], "_Trace | None"]


class _World:
    """A worker on a log in memory, with a constant clock."""

    def __init__(self) -> None:
        self.log = local.MemoryLog()
        self.worker = worker.Worker(self.log, lambda: _START_MS)
        self._appended = 0

    async def append(self, inputs_: Sequence[shapes.Event]) -> None:
        """Append inputs, and run the worker until nothing is left to decide."""
        await self.log.append([self._record(data) for data in inputs_])
        while True:
            turn = await self.worker.turn()
            if not turn.steps and not self.worker.is_behind():
                return

    async def records(self, after: int = 0) -> list[StoredRecord]:
        """All records after a sequence number."""
        return [record async for record in reading.of_all(self.log, after)]

    def _record(self, data: shapes.Event) -> Record:
        self._appended += 1
        manifest = kube_objects.read_head(data.manifest) if isinstance(data, shapes.ObjectApplied) else None
        key = verdicts.key_of(data, manifest)
        topic = data.event_type.topic
        head = Envelope(
            id=f"said-{self._appended}", source="/reballast/bench", type="", time=times.to_text(_START_MS)
        )
        partition = keys.partition_of(key, topics.TOPICS[topic].partitions)
        return codec.encode(data, head, partition=partition, key=key)


def run(size: int, only: str, warn: Progress) -> Growth:
    """Measure each kind of input whose name contains ``only``; raises ValueError if there is none."""
    names = [name for name in inputs.CASES if only in name]
    if not names:
        raise ValueError(
            f"no kind of input has {only!r} in its name; choose one of: {', '.join(inputs.CASES)}"
        )
    rows: list[Row] = []
    for name in names:
        warn(f"{name}: {', '.join(str(size * step) for step in STEPS)}")
        counted = [measure(name, size * step) for step in STEPS]
        timed = [measure(name, size * step, is_timed=True) for step in STEPS]
        for part in PARTS:
            operations = [costs[part].operations for costs in counted]
            spent_s = [costs[part].seconds for costs in timed]
            rows.append(Row(name, part, operations, exponent(operations), spent_s, exponent(spent_s)))
    return Growth(size, rows)


def table(growth: Growth) -> Iterator[tuple[str, ...]]:
    """The rows of a table with the columns ``HEADINGS``."""
    for row in growth.growth:
        operations = (f"{operation:,}" for operation in row.operations)
        seconds = (f"{second:.3f}" for second in row.seconds)
        yield (row.input, row.part, *operations, f"{row.exponent:.2f}", *seconds, f"{row.time_exponent:.2f}")


def exponent(costs: Sequence[float]) -> float:
    """Exponent of the growth between the last two costs; the second is for ten times the size of the first."""
    smaller, larger = costs[-2:]
    return math.log10(max(larger, 1e-9) / max(smaller, 1e-9))


def measure(name: str, size: int, *, is_timed: bool = False, parts: Sequence[str] = PARTS) -> dict[str, Cost]:
    """Cost of one kind of input at one size, by part: operations, or with ``is_timed`` seconds.

    Tracing slows the code down, so the two are never measured in one run.
    """
    threading.settrace(None if is_timed else _Counter.enter_in_thread)
    try:
        costs, records = asyncio.run(_measure(inputs.CASES[name], size, parts, is_counted=not is_timed))
    finally:
        threading.settrace(None)
    if "views" in parts:
        costs["views"] = _views(records, is_counted=not is_timed)
    return costs


async def _measure(
    case: inputs.Case, size: int, parts: Sequence[str], *, is_counted: bool
) -> tuple[dict[str, Cost], list[StoredRecord]]:
    world = _World()
    await world.append(case.before(size))
    start = world.log.last_number()
    portions = list(case.portions(size))
    with _Counter(is_on=is_counted) as counter:
        for portion in portions:
            await world.append(portion)
    written = sum(len(record.value) for record in await world.records(start))
    costs = {"decide": counter.cost(written)}
    if "recover" in parts:
        costs["recover"] = await _counted(
            lambda: replay.rebuild(world.log, range(topics.SHARDS)), is_counted=is_counted
        )
    if "verify" in parts:
        costs["verify"] = await _counted(lambda: verification.verify(world.log), is_counted=is_counted)
    return costs, await world.records()


async def _counted(work: Act, *, is_counted: bool) -> Cost:
    with _Counter(is_on=is_counted) as counter:
        await work()
    return counter.cost(0)


def _views(records: Sequence[StoredRecord], *, is_counted: bool) -> Cost:
    """Fold records in small batches, as a server's views do under low load."""
    store = Store()
    with _Counter(is_on=is_counted) as counter:
        with store.writing() as rows:
            fold = Fold(rows, manifests.check)
        for start in range(0, len(records), _VIEWED):
            with store.writing() as rows:
                for record in records[start : start + _VIEWED]:
                    fold.take(record)
                fold.flush(rows)
    store.close()
    return counter.cost(0)
