"""JSON paths as kubectl writes them: ``{.spec.replicas}``, ``.conditions[?(@.type=="Ready")].status``, ``[*]``.

A small part of kubectl's language: names, quoted names, places, all items, items whose field has a value; with or
without braces. Columns, the state that failover preserves, and what tells whether a custom kind is well are written in
it. What goes beyond it (slices, unions, recursion, text beside the braces) finds nothing, and ``is_readable`` tells.
"""

import re
from functools import lru_cache
from typing import Final

import msgspec
from msgspec import Struct

from events.forms_schema import as_list, as_object

_PATH_CHARS_MAX: Final = 1024
_STEP: Final = re.compile(
    r"""\.(?P<name>(?:[^.\[\]\\{}*\s]|\\.)+)"""
    r"""|\[(?P<quote>['"])(?P<quoted>(?:[^'"\\]|\\.)*)(?P=quote)\]"""
    r"""|\[(?P<place>-?\d{1,9})\]"""
    r"""|\[(?P<all>\*)\]"""
    r"""|\[\?\(@\.(?P<field>[\w.-]+)\s*==\s*(?P<mark>['"])(?P<value>[^'"]*)(?P=mark)\)\]""",
    re.DOTALL,
)


class _Step(Struct, frozen=True, kw_only=True):
    """One step of a path: a name, a place, all items, or the items whose field has a value."""

    name: str | None = None
    place: int | None = None
    field: str = ""
    value: str = ""


def found(value: object, path: str) -> list[object]:
    """All that stands at a path; nothing where there is nothing, or the path can't be read."""
    steps = _steps(path)
    held = [] if steps is None else [value]
    for step in steps or ():
        held = [below for each in held for below in _below(each, step)]
    return held


def is_readable(path: str) -> bool:
    """Whether a path is written in the part of the language that is known here."""
    return _steps(path) is not None


def names(path: str) -> tuple[str, ...]:
    """The names that a path goes along; empty where it goes through lists, or can't be read."""
    steps = _steps(path) or ()
    found = tuple(step.name for step in steps if step.name is not None)
    return found if len(found) == len(steps) else ()


def text(value: object, path: str) -> str | None:
    """What stands at a path, as kubectl prints it: texts as they are, others as JSON, several with a space between.

    None where there is nothing but absence and ``null``.
    """
    held = [each for each in found(value, path) if each is not None]
    return " ".join(each if isinstance(each, str) else _json(each) for each in held) if held else None


def _json(value: object) -> str:
    return msgspec.json.encode(value, order="deterministic").decode()


@lru_cache(maxsize=1024)
def _steps(path: str) -> tuple[_Step, ...] | None:
    if len(path) > _PATH_CHARS_MAX:
        return None
    bare = path.strip().removeprefix("{").removesuffix("}").strip().removeprefix("$")
    bare = bare if bare.startswith((".", "[")) else f".{bare}"
    steps: list[_Step] = []
    place = 0
    while place < len(bare):
        step = _STEP.match(bare, place)
        if step is None:
            return None
        name = step["name"] if step["name"] is not None else step["quoted"]
        if name is not None:
            steps.append(_Step(name=re.sub(r"\\(.)", r"\1", name, flags=re.DOTALL)))
        elif step["place"] is not None:
            steps.append(_Step(place=int(step["place"])))
        else:
            steps.append(_Step(field=step["field"] or "", value=step["value"] or ""))
        place = step.end()
    return tuple(steps)


def _below(value: object, step: _Step) -> list[object]:
    if step.name is not None:
        held = as_object(value)
        return [held[step.name]] if held is not None and step.name in held else []
    items = as_list(value)
    if step.place is not None:
        inside = items is not None and -len(items) <= step.place < len(items)
        return [items[step.place]] if items is not None and inside else []
    if items is None:
        fields = as_object(value)
        items = list(fields.values()) if fields is not None and not step.field else []
    if not step.field:
        return items
    return [item for item in items if _at(item, step.field) == step.value]


def _at(value: object, path: str) -> object:
    held = value
    for name in path.split("."):
        held = (as_object(held) or {}).get(name)
    return held
