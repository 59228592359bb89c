"""The trace of a request from its W3C headers."""

from collections.abc import Generator
from contextlib import contextmanager

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from engine.writing.tracing import CURRENT
from events import tracing


@contextmanager
def traced(headers: Headers) -> Generator[None]:
    """Make the trace in ``traceparent`` and ``tracestate`` the current one for the duration of the block."""
    trace = tracing.NO_TRACE
    if parent := headers.get("traceparent"):
        # ``tracestate`` may be split over several headers.
        trace = tracing.trace(parent, ",".join(headers.getlist("tracestate")))
    token = CURRENT.set(trace)
    try:
        yield
    finally:
        CURRENT.reset(token)


class Traced:
    """ASGI middleware that sets the trace of each request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with traced(Headers(scope=scope)):
            await self._app(scope, receive, send)
