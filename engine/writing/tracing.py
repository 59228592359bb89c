"""The trace of the current request, for the envelopes of the events that it writes.

A context variable, because no layer in between uses it; each request runs in a context of its own.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from events import tracing

_current: Final[ContextVar[tracing.Trace]] = ContextVar("trace", default=tracing.NO_TRACE)


def current() -> tracing.Trace:
    """The trace of the current request; ``NO_TRACE`` outside of one."""
    return _current.get()


@contextmanager
def traced(trace: tracing.Trace) -> Generator[None]:
    """Make ``trace`` the current one for the duration of the block."""
    token = _current.set(trace)
    try:
        yield
    finally:
        _current.reset(token)
