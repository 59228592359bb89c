"""Monitoring server of a process without an API: liveness, readiness, metrics.

It needs no token, because it exposes nothing secret; by default it listens on the loopback only.
"""

from collections.abc import Callable, Sequence

from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from engine.http.query import health


def create_app(
    is_ready: Callable[[], bool],
    collectors: Sequence[Collector],
    reasons: Callable[[], Sequence[str]] = tuple[str, ...],
) -> Starlette:
    """The server; ``collectors`` are called on the event loop, ``reasons`` returns why the process is not ready."""

    async def metrics(_request: Request) -> Response:
        return await health.exposed([metric for collector in collectors for metric in collector.collect()])

    return Starlette(routes=[*health.vital_routes(is_ready, reasons), Route("/metrics", metrics)])
