"""Whole statuses of objects, as members report them in JSON. Pure."""

import msgspec

from events import limits, records
from events.json_values import Json


def decoded(text: str) -> Json | None:
    """Decode a whole status; None if it is no JSON object or too deep: only agents are certain to report objects."""
    if records.is_deeper(text.encode(), limits.RECORD_DEPTH_MAX):
        return None
    try:
        return msgspec.json.decode(text, type=Json)
    except (msgspec.MsgspecError, ValueError):
        return None
