"""W3C trace context, copied from an input to the records that follow from it.

Reballast creates no spans. It passes the context on unchanged, so that a decision can be traced to the
request that caused it. A malformed context is dropped, as the W3C recommendation requires.
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
    """Return the trace of these attributes; ``NO_TRACE`` if ``parent`` is malformed."""
    if not parent or not _PARENT.fullmatch(parent):
        return NO_TRACE
    return Trace(parent, state if _STATE.fullmatch(state) else "")
