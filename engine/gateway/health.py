"""Whether the server lives, whether it is ready, and its figures for Prometheus."""

from collections.abc import Iterable

import anyio.to_thread
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from engine.gateway.reading import Reader
from engine.gateway.services import Services
from projections import query


class _Figures(Collector):
    """Figures of one moment."""

    def __init__(self, last: int, folded: int, counts: dict[str, int], kept: dict[str, int]) -> None:
        self._gauges = {
            "log_records": last,
            "projection_folded_records": folded,
            "projection_lag_records": last - folded,
        }
        self._counts = counts
        self._kept = kept

    def collect(self) -> Iterable[Metric]:
        for name, value in self._gauges.items():
            yield GaugeMetricFamily(f"reballast_{name}", name.replace("_", " "), value=max(value, 0))
        kept = GaugeMetricFamily("reballast_kept", "Documents in the views now.", labels=["what"])
        for what, count in self._kept.items():
            kept.add_metric([what], count)
        yield kept
        records = CounterMetricFamily(
            "reballast_records", "Records folded, by sort and effect.", labels=["sort"]
        )
        for sort, count in self._counts.items():
            records.add_metric([sort], count)
        yield records


def routes(services: Services) -> list[Route]:
    """The routes for those who watch the process."""
    reader = Reader(services)

    async def healthz(_request: Request) -> Response:
        return PlainTextResponse("ok")

    async def readyz(_request: Request) -> Response:
        return PlainTextResponse("ok") if services.is_ready() else PlainTextResponse("not ready yet", 503)

    async def metrics(_request: Request) -> Response:
        counts = await reader.read(None, query.counts)
        kept = await reader.read(None, query.count_objects)
        registry = CollectorRegistry()
        registry.register(_Figures(services.log.last_number(), services.views.folded, counts, kept))
        body = await anyio.to_thread.run_sync(generate_latest, registry)
        return Response(body, media_type="text/plain; version=0.0.4")

    return [Route("/healthz", healthz), Route("/readyz", readyz), Route("/metrics", metrics)]
