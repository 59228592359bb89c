"""The trace of the current request, for the envelopes of the events that it writes.

A context variable, because the layers between HTTP and envelope do not use it; each request has its own context.
"""

from contextvars import ContextVar
from typing import Final

from events import tracing

CURRENT: Final[ContextVar[tracing.Trace]] = ContextVar("trace", default=tracing.NO_TRACE)
