"""Trace context as the W3C writes it, passed on from an input to whatever follows from it.

Reballast takes no part in a trace and makes no spans: it hands on what it got, unchanged, so that whoever reads a
decision can tell which request it came from. What is not well-formed is left out, as the recommendation says.
"""

import re
from typing import Final

from msgspec import Struct

_PARENT: Final = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_STATE: Final = re.compile(r"[ -~]{1,512}")


class Trace(Struct, frozen=True, gc=False):
    """The CloudEvents attributes ``traceparent`` and ``tracestate``; both are empty outside a trace."""

    parent: str = ""
    state: str = ""


NO_TRACE: Final = Trace()


def trace(parent: str, state: str = "") -> Trace:
    """The trace that these name; none where ``parent`` is not well-formed."""
    if not parent or not _PARENT.fullmatch(parent):
        return NO_TRACE
    return Trace(parent, state if _STATE.fullmatch(state) else "")
