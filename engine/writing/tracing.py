"""The trace of the current request, for the envelopes of the events that it writes.

It is a context variable, so that the layers between HTTP and envelope need not pass it; each request has its own
context.
"""

from contextvars import ContextVar
from typing import Final

from events import tracing

CURRENT: Final[ContextVar[tracing.Trace]] = ContextVar("trace", default=tracing.NO_TRACE)
