"""Prometheus metrics of the agents in a process, per cluster."""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct
from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector


class ClusterCounters(Struct):
    """Counters of one cluster. ``is_reachable``: the last call to its API got a response."""

    applied: int = 0
    drifts: int = 0
    removed: int = 0
    refused: int = 0
    throttled: int = 0
    unreachable: int = 0
    reports: int = 0
    is_reachable: bool = True


_COUNTERS: Final = {
    "applied": "Objects applied, corrections included.",
    "drifts": "Objects corrected after a change by another client.",
    "removed": "Objects removed, or released to the cluster.",
    "refused": "Failed attempts to apply a work.",
    "throttled": "Calls that the member's API throttled.",
    "unreachable": "Calls to the member's API without a response.",
    "reports": "Reports that the server accepted.",
}


class AgentCollector(Collector):
    """Prometheus collector of the agents' counters."""

    def __init__(self, clusters: Sequence[str]) -> None:
        self._counts = {name: ClusterCounters() for name in sorted(clusters)}

    def of(self, cluster: str) -> ClusterCounters:
        """The counters of a cluster; they survive restarts of its agent within the process."""
        return self._counts[cluster]

    def unreachable(self) -> list[str]:
        """Reasons why the process is not ready: one for each cluster whose API does not respond."""
        return [
            f"the API of {name} does not answer"
            for name, counts in self._counts.items()
            if not counts.is_reachable
        ]

    def collect(self) -> Iterable[Metric]:
        for field, documentation in _COUNTERS.items():
            counter = CounterMetricFamily(f"reballast_agent_{field}", documentation, labels=["cluster"])
            for name, counts in self._counts.items():
                counter.add_metric([name], getattr(counts, field))
            yield counter
        reachable = GaugeMetricFamily(
            "reballast_agent_reachable", "Whether the member's API answers.", labels=["cluster"]
        )
        for name, counts in self._counts.items():
            reachable.add_metric([name], counts.is_reachable)
        yield reachable
