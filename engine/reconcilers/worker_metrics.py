"""Prometheus metrics of a worker: its measurements and the current state of its shards."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from engine.log import port
from engine.reconcilers import worker
from events import topics


class WorkerMetrics(Collector):
    """Metrics of a worker; ``fences`` returns how many of its ownerships other workers ended.

    Collect on the event loop, since turns change the shards.
    """

    def __init__(self, owner: worker.Worker, log: port.Log, fences: Callable[[], int] = lambda: 0) -> None:
        self._worker = owner
        self._log = log
        self._fences = fences

    def collect(self) -> Iterable[Metric]:
        yield from self._worker.measures.collect()
        yield CounterMetricFamily(
            "reballast_worker_fences", "Ownerships that another worker ended.", value=self._fences()
        )
        folds = self._worker.folds
        yield GaugeMetricFamily("reballast_worker_shards", "Shards owned.", value=len(folds))
        yield _by_shard("owns", "1 for each shard that is owned.", {f.state.shard: 1 for f in folds})
        unreadable = {f.state.shard: 0 for f in folds} | dict.fromkeys(self._worker.unreadable(), 1)
        yield _by_shard(
            "unreadable",
            "1 for a quarantined shard, whose records cannot be read; 0 for others.",
            unreadable,
        )
        bindings = {f.state.shard: len(f.state.bindings) for f in folds}
        yield _by_shard("bindings", "Bindings of each shard that is owned.", bindings)
        waiting = {f.state.shard: len(f.state.waiting) + len(f.state.reported) for f in folds}
        yield _by_shard("waiting_keys", "Keys that wait for a decision.", waiting)
        yield self._lag()

    def _lag(self) -> Metric:
        family = GaugeMetricFamily(
            "reballast_worker_lag_records",
            "Offsets of an input that are not processed yet; the partition is the shard, or 0 if all shards read it.",
            labels=["topic", "partition"],
        )
        ends, facts = self._log.ends(), self._worker.facts.ends
        if self._worker.folds:
            _add_lags(family, ends, facts, [(topic, 0) for topic in topics.FACT_TOPICS])
        for fold in self._worker.folds:
            _add_lags(family, ends, fold.ends, [(topic, fold.state.shard) for topic in topics.OWN_TOPICS])
        return family


def _add_lags(
    family: GaugeMetricFamily, ends: port.Ends, taken: Mapping[str, int], slots: Sequence[tuple[str, int]]
) -> None:
    for topic, partition in slots:
        lag = max(ends.get((topic, partition), 0) - taken[topic], 0)
        family.add_metric([topic, str(partition)], lag)


def _by_shard(name: str, documentation: str, values: Mapping[int, int]) -> Metric:
    family = GaugeMetricFamily(f"reballast_worker_{name}", documentation, labels=["shard"])
    for shard, value in values.items():
        family.add_metric([str(shard)], value)
    return family
