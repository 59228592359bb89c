"""Access to optional parts of JSON documents; an absent part is empty."""

from collections.abc import Mapping
from typing import cast

from events.json_values import Json


def part(fields: Mapping[str, object], *names: str) -> Json:
    """The object at a path of field names; empty if any step is missing or not an object."""
    document = cast("Json", fields)
    for name in names:
        inner = document.get(name)
        document = cast("Json", inner) if isinstance(inner, dict) else {}
    return document


def items(value: object) -> list[Json]:
    """The list of objects; empty if the value is not a list."""
    return cast("list[Json]", value) if isinstance(value, list) else []


def condition(document: Json, kind: str) -> Json:
    """The status condition of this type; empty if there is none."""
    for entry in items(part(document, "status").get("conditions")):
        if entry.get("type") == kind:
            return entry
    return {}


def texts(value: object) -> list[str]:
    """The values of a list as text; empty if the value is not a list."""
    return [str(each) for each in cast("list[object]", value)] if isinstance(value, list) else []
