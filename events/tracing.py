"""W3C trace context, copied from an input to the records that follow from it.

Reballast creates no spans. It passes the context on unchanged, so that a decision can be traced to the
request that caused it. A malformed context is dropped, as the W3C recommendation requires.
"""

import re
from typing import Final

from msgspec import Struct

_PARENT: Final = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_STATE: Final = re.compile(r"[ -~]{1,512}")
_PLAN_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PLAN: Final = "reballast=plan"
"""Entry of ``tracestate`` that marks the records which a planned change caused; their trace id is the plan's id."""


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


def of_plan(plan_id: str) -> Trace:
    """Return the trace of a planned change. Raises ValueError if the plan's id is not a UUID."""
    if not _PLAN_ID.fullmatch(plan_id):
        raise ValueError(f"{plan_id!r} is not the id of a plan")
    digits = plan_id.replace("-", "")
    return Trace(f"00-{digits}-{digits[:16]}-01", _PLAN)


def plan_of(trace: Trace) -> str:
    """Return the id of the plan whose change caused a record; empty if none did."""
    if _PLAN not in (member.strip() for member in trace.state.split(",")):
        return ""
    digits = trace.parent.split("-")[1]
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
