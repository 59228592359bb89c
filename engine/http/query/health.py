"""Liveness, readiness and Prometheus metrics of the server, and of processes without an API."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final

import anyio.to_thread
from prometheus_client import CollectorRegistry, ProcessCollector, disable_created_metrics, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from engine.http.query import cluster_metrics, response_types, shard_lag
from engine.http.services import Services
from engine.log.port import LogError
from events import topics
from projections import clusters, query

# The series ``_created`` would double the number of series of every counter and histogram.
disable_created_metrics()
_PROCESS: Final = ProcessCollector(registry=None)
"""Processor time, memory and open files of this process, under the names that every exporter uses."""


class _Measurements(Collector):
    """Metrics collected on the event loop, to be formatted in a thread."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics


def _vital_routes(
    is_ready: Callable[[], bool], reasons: Callable[[], Sequence[str]] = tuple[str, ...]
) -> list[Route]:
    """The routes ``/healthz`` and ``/readyz``; ``reasons`` lists why the process is not ready."""

    async def healthz(_request: Request) -> Response:
        return PlainTextResponse("ok")

    async def readyz(_request: Request) -> Response:
        if is_ready():
            return PlainTextResponse("ok")
        return PlainTextResponse("\n".join(["not ready yet", *reasons()]), 503)

    return [Route("/healthz", healthz), Route("/readyz", readyz)]


async def _exposed(metrics: Sequence[Metric]) -> Response:
    """Metrics in the Prometheus text format."""
    registry = CollectorRegistry()
    registry.register(_Measurements(metrics))
    registry.register(_PROCESS)
    body = await anyio.to_thread.run_sync(generate_latest, registry)
    return Response(body, media_type="text/plain; version=0.0.4")


def routes(services: Services) -> list[Route]:
    """The routes ``/healthz``, ``/readyz`` and ``/metrics``."""

    async def metrics(_request: Request) -> Response:
        # Metrics are needed most while the brokers do not answer or the views stall: do not query the brokers, and
        # measure stalled views as they are.
        with suppress(LogError):
            await services.views.wait_folded(services.log.last_number())
        counts = await services.peek(query.counts)
        kept = await services.peek(query.count_objects)
        unscheduled = await services.peek(query.unscheduled_bindings)
        members = await services.peek(lambda rows: cluster_metrics.of_clusters(clusters.stored_all(rows)))
        steps = await services.peek(query.shard_steps)
        lag = shard_lag.lag(services.log, services.views.folded, steps)
        others = [metric for collector in services.collectors for metric in collector.collect()]
        views = (*_of_views(lag), *_of_records(counts, kept, unscheduled), *members, *_of_shards(lag.shards))
        return await _exposed([*views, *others])

    vital = _vital_routes(lambda: not services.faults(), services.faults)
    return [*vital, Route("/metrics", metrics)]


def _of_views(lag: response_types.Lag) -> Iterable[Metric]:
    yield GaugeMetricFamily("reballast_log_records", "Records in the log.", value=lag.last_number)
    yield GaugeMetricFamily("reballast_projection_folded_records", "Records in the views.", value=lag.folded)
    yield GaugeMetricFamily(
        "reballast_projection_lag_records",
        "Records of the log that are not in the views yet.",
        value=lag.behind,
    )


def _of_records(
    counts: dict[str, int], kept: dict[str, int], unscheduled: dict[str, int]
) -> Iterable[Metric]:
    documents = GaugeMetricFamily("reballast_kept", "Documents in the views now.", labels=["what"])
    for label, count in kept.items():
        documents.add_metric([label], count)
    yield documents
    reasons = GaugeMetricFamily(
        "reballast_unscheduled_bindings",
        "Bindings whose last scheduling failed, by the reason of their condition Scheduled.",
        labels=["reason"],
    )
    for reason, count in unscheduled.items():
        reasons.add_metric([reason], count)
    yield reasons
    records = CounterMetricFamily("reballast_records", "Records folded, by sort and effect.", labels=["sort"])
    for kind, count in counts.items():
        records.add_metric([kind], count)
    yield records


def _of_shards(shards: Sequence[response_types.ShardLag]) -> Iterable[Metric]:
    """Metrics of each shard's progress, from its steps in the log; a change of the owner does not reset them."""
    step = CounterMetricFamily("reballast_shard_steps", "Valid steps.", labels=["shard"])
    term = CounterMetricFamily("reballast_shard_terms", "Ownerships that took a step.", labels=["shard"])
    ignored = CounterMetricFamily(
        "reballast_shard_ignored_steps",
        "Steps without effect, written by fenced owners.",
        labels=["shard"],
    )
    behind = GaugeMetricFamily(
        "reballast_shard_lag_records",
        "Records of the shard's own inputs after its last step.",
        labels=["shard", "topic"],
    )
    for shard in shards:
        name = str(shard.shard)
        step.add_metric([name], shard.step)
        term.add_metric([name], shard.term)
        ignored.add_metric([name], shard.ignored)
        for taken in shard.inputs:
            # Leave out topics that all shards read. A record there that does not affect this shard may wait long for
            # the shard's next step, but this is not a lag to alert on.
            if taken.topic in topics.OWN_TOPICS:
                behind.add_metric([name, taken.topic], taken.waiting)
    return [step, term, ignored, behind]


def monitoring_app(
    is_ready: Callable[[], bool],
    collectors: Sequence[Collector],
    reasons: Callable[[], Sequence[str]] = tuple[str, ...],
) -> Starlette:
    """The monitoring server of a process without an API.

    ``collectors`` are called on the event loop, ``reasons`` returns why the process is not ready. The server needs no
    token, because it exposes nothing secret; by default it listens on the loopback only.
    """

    async def metrics(_request: Request) -> Response:
        return await _exposed([metric for collector in collectors for metric in collector.collect()])

    return Starlette(routes=[*_vital_routes(is_ready, reasons), Route("/metrics", metrics)])
