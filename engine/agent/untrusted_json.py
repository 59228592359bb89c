"""Access to untrusted JSON: a value of another type counts as absent."""

from typing import cast

from events.json_values import Json


def as_object(value: object) -> Json:
    """The object; an empty one for any other type."""
    return cast("Json", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[object]:
    """The list; an empty one for any other type."""
    return cast("list[object]", value) if isinstance(value, list) else []


def as_objects(value: object) -> list[Json]:
    """The items of a list; those that are not objects become empty ones."""
    return [as_object(item) for item in as_list(value)]


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
