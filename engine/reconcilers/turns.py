"""Turns of a worker: their results, their measurements for Prometheus, and the pause after each.

Deciders have no clock, so latency is measured here, from the times in the inputs to the commit.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct
from prometheus_client import CollectorRegistry, Counter, Histogram, Metric
from prometheus_client.registry import Collector

from engine import loop_lag
from engine.deciders import shard_fold
from events import topics

_COMMIT_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
GATHER_S: Final = 0.05
"""Longest pause between turns in seconds."""

_BUSY_RECORDS: Final = 200
"""A worker that appends this many records within ``GATHER_S`` is busy; about twenty new bindings cause as many."""

_FULL_RECORDS: Final = 2_000
"""After a turn with this many records there is no pause."""


class Turn(Struct, frozen=True):
    """Result of a turn: counts of steps taken, records appended (rejections included), keys decided (``processed``).

    ``commit_s`` is the duration of the commit in seconds. ``waited_ms`` has, for each step that decided
    something, the time from its earliest input to its commit; inputs without a time are left out.
    """

    steps: int
    records: int
    processed: int
    rejections: int = 0
    commit_s: float = 0.0
    waited_ms: tuple[int, ...] = ()


def turn_of(steps: Sequence[shard_fold.Step], now_ms: int, commit_s: float) -> Turn:
    """Return the result of a turn with these committed steps."""
    waited_ms = (max(now_ms - step.since_ms, 0) for step in steps if step.since_ms)
    return Turn(
        steps=len(steps),
        records=sum(len(step.records) for step in steps),
        processed=sum(step.taken.processed for step in steps),
        rejections=sum(record.topic == topics.REJECTIONS for step in steps for record in step.records),
        commit_s=commit_s if steps else 0.0,
        waited_ms=tuple(waited_ms),
    )


class Measures(Collector):
    """Totals of a worker since its process started."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._turns = self._counter("turns", "Completed turns.")
        self._failures = self._counter("failed_turns", "Turns after which the shards were recovered.")
        self._steps = self._counter("steps", "Steps committed.")
        self._records = self._counter("records", "Records committed, including those of the steps.")
        self._keys = self._counter("decided_keys", "Bindings and rebalancers decided.")
        self._rejections = self._counter("rejections", "Inputs refused.")
        self._ownerships = self._counter("ownerships", "Shards taken over.")
        self._latency = Histogram(
            "reballast_worker_decision_latency_seconds",
            "Time from the earliest input of a step, by its recorded time, to the step's commit.",
            buckets=loop_lag.BUCKETS_S,
            registry=self.registry,
        )
        self._commit = Histogram(
            "reballast_worker_commit_seconds",
            "Duration of the commit of a turn.",
            buckets=_COMMIT_S,
            registry=self.registry,
        )

    def collect(self) -> Iterable[Metric]:
        return self.registry.collect()

    def count_turn(self, turn: Turn) -> None:
        """Count a completed turn."""
        self._turns.inc()
        if not turn.steps:
            return
        self._steps.inc(turn.steps)
        self._records.inc(turn.records)
        self._keys.inc(turn.processed)
        self._rejections.inc(turn.rejections)
        self._commit.observe(turn.commit_s)
        for waited_ms in turn.waited_ms:
            self._latency.observe(waited_ms / 1000)

    def count_failure(self) -> None:
        """Count a turn that did not complete."""
        self._failures.inc()

    def count_takeovers(self, shards: int) -> None:
        """Count shards taken over."""
        self._ownerships.inc(shards)

    def _counter(self, name: str, documentation: str) -> Counter:
        return Counter(f"reballast_worker_{name}", documentation, registry=self.registry)


class Pace:
    """Determines how long a worker waits for more inputs before its next turn, from the load of its last turns.

    A step has a fixed cost (its record, its commit, a wake-up of each reader), so under load few large steps decide
    more than many small ones. With little load the worker does not wait.
    """

    def __init__(self) -> None:
        self._began_s = 0.0
        self._records = 0
        self._is_busy = False

    def pause_s(self, records: int, now_s: float) -> float:
        """Return the seconds to wait after a turn that ended at ``now_s`` with this many records."""
        self._records += records
        if now_s - self._began_s >= GATHER_S:
            self._is_busy = self._records >= _BUSY_RECORDS
            self._began_s, self._records = now_s, 0
        if not self._is_busy or records >= _FULL_RECORDS:
            return 0.0
        return GATHER_S - (now_s - self._began_s)
