"""Trace and user of the current request, for the envelopes of the events that it writes.

They are in a context variable, so that the layers between HTTP and envelope need not pass them; each request has its
own context.
"""

from contextvars import ContextVar
from typing import Final

from msgspec import Struct

from events import tracing


class Origin(Struct, frozen=True, gc=False):
    """Origin of a write; ``authtype`` and ``authid`` are the CloudEvents attributes, empty if no user wrote."""

    trace: tracing.Trace = tracing.NO_TRACE
    authtype: str = ""
    authid: str = ""


NO_ORIGIN: Final = Origin()
CURRENT: Final[ContextVar[Origin]] = ContextVar("origin", default=NO_ORIGIN)
