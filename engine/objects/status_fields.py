"""Values and health that a work requests from the status of its object."""

import msgspec

from events import json_paths, limits, shapes, status_values
from events.json_values import DECODING_ERRORS, Json


def values(status: Json, reading: shapes.Reading | None) -> dict[str, str]:
    """Return the requested status values by path; absent ones are left out, long ones truncated."""
    if reading is None:
        return {}
    result = {path: json_paths.text(status, path) for path in reading.values}
    return {path: text[: limits.STATUS_VALUE_CHARS_MAX] for path, text in result.items() if text is not None}


def whole(api_version: str, kind: str, status: Json, reading: shapes.Reading | None) -> str:
    """Return the whole status as JSON; empty if it is too long, or if members do not report it for this kind."""
    is_reported = status_values.is_whole(api_version, kind) and not (reading is not None and reading.values)
    if not status or not is_reported:
        return ""
    try:
        text = msgspec.json.encode(status, order="deterministic").decode()
    except DECODING_ERRORS:
        return ""
    return text if len(text) <= limits.STATUS_CHARS_MAX else ""


def is_healthy(status: Json, reading: shapes.Reading | None, *, otherwise: bool) -> bool:
    """Return the health of an object by the rule of its kind; ``otherwise`` if there is no rule."""
    rule = reading.health if reading else None
    return otherwise if rule is None else json_paths.text(status, rule.path) in rule.values
