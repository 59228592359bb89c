"""Reading of JSON whose form nobody promised: what is of another form counts as absent."""

from typing import cast

Json = dict[str, object]


def as_object(value: object) -> Json:
    """The object; an empty one for anything else."""
    return cast("Json", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[object]:
    """The list; an empty one for anything else."""
    return cast("list[object]", value) if isinstance(value, list) else []


def as_objects(value: object) -> list[Json]:
    """The objects of a list."""
    return [as_object(each) for each in as_list(value)]


def as_text(value: object) -> str:
    """The text; an empty one for anything else."""
    return value if isinstance(value, str) else ""


def as_count(value: object) -> int:
    """The whole number, 0 for anything else and for what is negative."""
    return max(value, 0) if isinstance(value, int) and not isinstance(value, bool) else 0


def at(value: Json, *path: str) -> object:
    """What stands at a path of field names; None where it leads nowhere."""
    found: object = value
    for name in path:
        found = as_object(found).get(name)
    return found
