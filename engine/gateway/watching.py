"""What a process without a gateway shows to those who watch it: whether it lives, whether it is ready, its figures.

No token is asked for, since nothing here is a secret, and it listens on the loopback unless it is told otherwise.
"""

from collections.abc import Callable, Sequence

from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from engine.gateway import health


def create_app(
    is_ready: Callable[[], bool],
    collectors: Sequence[Collector],
    reasons: Callable[[], Sequence[str]] = tuple[str, ...],
) -> Starlette:
    """The server; ``collectors`` are asked on the event loop, ``reasons`` where it is not ready."""

    async def metrics(_request: Request) -> Response:
        return await health.exposed([metric for each in collectors for metric in each.collect()])

    return Starlette(routes=[*health.vital_routes(is_ready, reasons), Route("/metrics", metrics)])
