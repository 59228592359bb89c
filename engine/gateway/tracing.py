"""The trace of the current request, for the envelopes of the events that it writes.

A context variable, because no layer in between uses it; each request runs in a context of its own.
"""

from contextvars import ContextVar
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from events import tracing

_current: Final[ContextVar[tracing.Trace]] = ContextVar("trace", default=tracing.NO_TRACE)


def current() -> tracing.Trace:
    """The trace of the current request; ``NO_TRACE`` outside of one."""
    return _current.get()


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
        token = _current.set(tracing.trace(headers.get("traceparent", ""), states))
        try:
            await self._app(scope, receive, send)
        finally:
            _current.reset(token)
