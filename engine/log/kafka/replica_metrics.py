"""Prometheus metrics of a replica's log: the sequence and this replica's appends to it."""

from collections.abc import Callable, Iterable

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from engine.log.kafka import sequence


class SequenceFigures(Collector):
    """Prometheus collector of the counts that ``ask`` returns; call it on the event loop."""

    def __init__(self, collect: Callable[[], sequence.Counts]) -> None:
        self._collect = collect

    def collect(self) -> Iterable[Metric]:
        counts = self._collect()
        yield CounterMetricFamily(
            "reballast_sequence_numbers", "Numbers that the sequence has given.", value=counts.numbers
        )
        yield CounterMetricFamily(
            "reballast_sequence_extents", "Stretches of partitions in the sequence.", value=counts.extents
        )
        yield GaugeMetricFamily(
            "reballast_sequence_unnumbered_records",
            "Offsets that this replica has and the sequence has not.",
            value=counts.unnumbered,
        )
        yield CounterMetricFamily(
            "reballast_sequence_appends",
            "Times that this replica extended the sequence.",
            value=counts.appends,
        )
