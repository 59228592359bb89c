"""Values and health that a work requests from the status of its object."""

from events import json_paths, limits, shapes
from events.json_values import Json


def values(status: Json, reading: shapes.Reading | None) -> dict[str, str]:
    """Return the requested status values by path; absent ones are left out, long ones truncated."""
    if reading is None:
        return {}
    found = {path: json_paths.text(status, path) for path in reading.values}
    return {path: text[: limits.STATUS_VALUE_CHARS_MAX] for path, text in found.items() if text is not None}


def is_well(status: Json, reading: shapes.Reading | None, *, otherwise: bool) -> bool:
    """Return the health of an object by the rule of its kind; ``otherwise`` if there is no rule."""
    rule = reading.health if reading else None
    return otherwise if rule is None else json_paths.text(status, rule.path) in rule.values
