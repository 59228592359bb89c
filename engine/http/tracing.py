"""The trace of a request from its W3C headers."""

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from engine.writing.tracing import traced
from events import tracing


class Traced:
    """ASGI middleware that sets the trace from the headers ``traceparent`` and ``tracestate``."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        # ``tracestate`` may be split over several headers.
        states = ",".join(headers.getlist("tracestate"))
        with traced(tracing.trace(headers.get("traceparent", ""), states)):
            await self._app(scope, receive, send)
