"""Parts of JSON documents that may be absent: what is not there is empty."""

from collections.abc import Mapping
from typing import cast

Json = dict[str, object]


def part(fields: Mapping[str, object], *names: str) -> Json:
    """The object at a path of names."""
    found = cast("Json", fields)
    for name in names:
        inner = found.get(name)
        found = cast("Json", inner) if isinstance(inner, dict) else {}
    return found


def items(value: object) -> list[Json]:
    """The objects of a list."""
    return cast("list[Json]", value) if isinstance(value, list) else []


def condition(document: Json, kind: str) -> Json:
    """One of an object's conditions."""
    for each in items(part(document, "status").get("conditions")):
        if each.get("type") == kind:
            return each
    return {}


def texts(value: object) -> list[str]:
    """The values of a list, as text."""
    return [str(each) for each in cast("list[object]", value)] if isinstance(value, list) else []
