"""The trace that a request belongs to, for the envelopes of what it writes.

A context variable, since it concerns none of the layers in between; each request runs in a context of its own.
"""

from contextvars import ContextVar
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from events import tracing

_current: Final[ContextVar[tracing.Trace]] = ContextVar("trace", default=tracing.NO_TRACE)


def current() -> tracing.Trace:
    """The trace of the request that is being answered; none outside of one."""
    return _current.get()


class Traced:
    """Middleware that takes ``traceparent`` and ``tracestate`` of a request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Lets a request pass, in its trace."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        # A list may come in several headers.
        states = ",".join(headers.getlist("tracestate"))
        token = _current.set(tracing.trace(headers.get("traceparent", ""), states))
        try:
            await self._app(scope, receive, send)
        finally:
            _current.reset(token)
