"""Whole statuses of objects, as members report them in JSON. Pure."""

import msgspec

from events import limits, records
from events.json_values import Json


def decoded(text: str) -> Json | None:
    """Decode a whole status; None if it is not a JSON object (agents report only objects, other producers anything)."""
    if records.is_deeper(text.encode(), limits.RECORD_DEPTH_MAX):
        return None
    try:
        return msgspec.json.decode(text, type=Json)
    except (msgspec.MsgspecError, ValueError):
        return None
