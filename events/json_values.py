"""Values of decoded JSON whose shape is not known."""

from typing import TypeAlias, cast

Json: TypeAlias = dict[str, object]
"""A JSON object."""


def as_object(value: object) -> Json | None:
    """Return the value if it is a JSON object, otherwise None."""
    return cast("Json", value) if isinstance(value, dict) else None


def as_list(value: object) -> list[object] | None:
    """Return the value if it is a list, otherwise None."""
    return cast("list[object]", value) if isinstance(value, list) else None


def as_objects(value: object) -> list[Json]:
    """Return the items of a list; items that are not objects become empty objects, other values an empty list."""
    return [as_object(item) or {} for item in as_list(value) or []]


def part(value: object, *names: str) -> Json:
    """Return the object at a path of field names; empty if any step is missing or not an object."""
    for name in names:
        value = cast("Json", value).get(name) if isinstance(value, dict) else None
    return as_object(value) or {}


def texts(value: object) -> list[str]:
    """Return the items of a list as text; empty if the value is not a list."""
    return [str(item) for item in as_list(value) or []]


def condition(document: Json, kind: str) -> Json:
    """Return the status condition of a type; empty if there is none."""
    for entry in as_objects(part(document, "status").get("conditions")):
        if entry.get("type") == kind:
            return entry
    return {}


def without_nulls(value: object) -> object:
    """Return the value without null fields, at any depth; null items of lists stay."""
    if isinstance(value, dict):
        fields = cast("Json", value)
        return {name: without_nulls(item) for name, item in fields.items() if item is not None}
    return [without_nulls(item) for item in cast("list[object]", value)] if isinstance(value, list) else value
