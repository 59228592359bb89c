"""Access to untrusted JSON: a value of another type counts as absent."""

from events import json_values
from events.json_values import Json


def as_object(value: object) -> Json:
    """The object; an empty one for any other type."""
    return json_values.as_object(value) or {}


def as_list(value: object) -> list[object]:
    """The list; an empty one for any other type."""
    return json_values.as_list(value) or []


def as_text(value: object) -> str:
    """The text; an empty one for any other type."""
    return value if isinstance(value, str) else ""


def as_count(value: object) -> int:
    """The integer; 0 for any other type and for negative numbers."""
    return max(value, 0) if isinstance(value, int) and not isinstance(value, bool) else 0


def at(value: Json, *path: str) -> object:
    """The value at a path of field names; None if it does not exist."""
    current: object = value
    for name in path:
        current = as_object(current).get(name)
    return current
