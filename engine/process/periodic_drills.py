"""Periodic failure drills of a server, and their metrics for alerts."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import anyio
import msgspec
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from engine import diagnostics
from engine.http.services import Planner
from engine.log import port
from engine.plans import drills
from engine.plans.predictions import Prediction
from engine.plans.questions import PlanError, Question
from engine.process import stop_signals
from engine.writing.read_side import ReadSide
from events import times
from projections import query
from projections.port import ProjectionError

_CLUSTERS_MAX: Final = 100_000
_PREDICTION: Final = msgspec.json.Decoder(Prediction)
_log = diagnostics.logger(__name__)


class Drills(Collector):
    """Predicts the failure of each cluster, zone, region and provider in turn, every ``every_s`` seconds.

    ``latest`` receives the results of each drill.
    """

    def __init__(
        self,
        reads: ReadSide,
        planner: Planner,
        latest: drills.Latest,
        every_s: float,
        clock_ms: Callable[[], int],
    ) -> None:
        self._reads = reads
        self._planner = planner
        self._latest = latest
        self._every_s = every_s
        self._clock_ms = clock_ms

    async def run(self) -> None:
        """Drill until the process stops; a failed drill is logged, and the results of the previous drill remain."""
        stopping = self._reads.stopping
        while not stopping.is_set():
            try:
                await stop_signals.until_set(stopping, self.drill())
            except (PlanError, port.LogError, ProjectionError) as error:
                _log.warning("drill failed", error=str(error))
            with anyio.move_on_after(self._every_s):
                await stopping.wait()

    async def drill(self) -> None:
        """Predict all failures once. Raises PlanError, port.LogError and ProjectionError."""
        page = await self._reads.read(lambda rows: query.list_clusters(rows, limit=_CLUSTERS_MAX))
        results: list[drills.Result] = []
        began_ms, number = self._clock_ms(), None
        for outage in drills.outages(page.items):
            question = Question(began_ms=began_ms, failures=outage.failures, number=number)
            prediction = _PREDICTION.decode(await self._planner.predict(question, lambda _: None))
            results.append(drills.result(outage, prediction))
            number = prediction.number  # all questions use one number, so they share the rebuilt engine
        self._latest.results, self._latest.ended_ms = results, self._clock_ms()
        lost = [f"{result.outage.domain} {result.outage.name}" for result in results if result.missing]
        _log.info("drill finished", failures=len(results), not_absorbed=lost)

    def collect(self) -> Iterable[Metric]:
        return metrics(self._latest.results, self._latest.ended_ms)


def metrics(results: Sequence[drills.Result], ended_ms: int) -> Iterable[Metric]:
    """Return the metrics of a drill that ended at an instant, in milliseconds since 1970."""
    labels = ["domain", "name"]
    missing = GaugeMetricFamily(
        "reballast_drill_missing_replicas",
        "Replicas that could not be placed after this failure, by the last drill.",
        labels=labels,
    )
    moved = GaugeMetricFamily(
        "reballast_drill_moved_workloads", "Workloads that would move after this failure.", labels=labels
    )
    recovered = GaugeMetricFamily(
        "reballast_drill_recovered_seconds",
        "Time until all replicas run again after this failure; no value if some could not be placed.",
        labels=labels,
    )
    for result in results:
        names = [result.outage.domain, result.outage.name]
        missing.add_metric(names, result.missing)
        moved.add_metric(names, result.moved)
        if result.recovered_ms is not None:
            recovered.add_metric(names, result.recovered_ms / times.SECOND_MS)
    yield from (missing, moved, recovered)
    yield GaugeMetricFamily(
        "reballast_drill_timestamp_seconds",
        "When the last drill ended, in seconds since 1970; 0 before the first.",
        value=ended_ms / times.SECOND_MS,
    )
