"""The trace of the current request, for the envelopes of the events that it writes.

A context variable, because no layer in between uses it; each request runs in a context of its own.
"""

from contextvars import ContextVar
from typing import Final

from events import tracing

CURRENT: Final[ContextVar[tracing.Trace]] = ContextVar("trace", default=tracing.NO_TRACE)
